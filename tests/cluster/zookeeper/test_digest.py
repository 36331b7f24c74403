"""A ZooKeeper that takes nobody who does not say who it is, and what others see there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from barnabas.cluster.store.interface import ABSENT, Put, StoreUnavailable
from barnabas.cluster.zookeeper.access import ZooKeeperAccess
from barnabas.cluster.zookeeper.address import parse_address
from barnabas.cluster.zookeeper.store import ZooKeeperStore
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.testing.zookeeper import ZooKeeper

DEMANDING = {"zookeeper.enforce.auth.enabled": "true", "zookeeper.enforce.auth.schemes": "digest"}


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeper]:
    with ZooKeeper(properties=DEMANDING) as running:
        yield running


def test_what_is_written_is_for_its_user_alone(server: ZooKeeper) -> None:
    address = parse_address(f"{server.address}/kafka/one")
    with ZooKeeperStore(address, access=ZooKeeperAccess(digest="barnabas:geheim", is_private=True)) as store:
        store.commit([Put("/users/alice", b"keys", ABSENT), Put("/brokers/1", b"here", ABSENT, ephemeral=True)])
    with ZooKeeperStore(address, access=ZooKeeperAccess(digest="barnabas:geheim", is_private=True)) as store:
        assert [entry.path for entry in store.list("/")] == ["/users/alice"]
        store.commit([Put("/users/alice", b"others", 0), Put("/users/bob", b"more", ABSENT)])
        other = KazooClient(server.hosts, auth_data=[("digest", "eve:geheim")])
        other.start()
        try:
            for path in ("/kafka/one", "/kafka/one/users", "/kafka/one/users/alice"):
                for forbidden in (other.get, other.get_children, lambda path: other.set(path, b"x"), other.delete):
                    with pytest.raises(NoAuthError):
                        forbidden(path)
            with pytest.raises(NoAuthError):
                other.create("/kafka/one/users/eve", b"")
        finally:
            other.stop()
            other.close()


def test_another_user_can_do_nothing(server: ZooKeeper) -> None:
    address = parse_address(f"{server.address}/kafka/two")
    with ZooKeeperStore(address, access=ZooKeeperAccess(digest="barnabas:geheim", is_private=True)) as store:
        store.commit([Put("/users/alice", b"keys", ABSENT)])
    with pytest.raises(StoreUnavailable, match="NoAuthError"):
        ZooKeeperStore(address, access=ZooKeeperAccess(digest="barnabas:falsch", is_private=True)).close()


def test_without_a_digest_there_is_no_getting_in(server: ZooKeeper) -> None:
    with pytest.raises(StoreUnavailable):
        ZooKeeperStore(parse_address(server.address), connection_timeout_ms=500).close()


def test_it_is_a_setting_that_is_not_shown() -> None:
    config, warnings = BrokerConfig.from_properties({"zookeeper.connect": "a:1", "zookeeper.digest": "barnabas:geheim"})
    assert (config.zookeeper_digest, warnings) == ("barnabas:geheim", ())
    assert "geheim" not in repr(config)
    for bad in ("geheim", ":geheim", "geheim:"):
        with pytest.raises(ConfigError) as caught:
            BrokerConfig.from_properties({"zookeeper.digest": bad})
        assert "geheim" not in str(caught.value)
