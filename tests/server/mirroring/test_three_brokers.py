"""A target of three brokers: each copies what it leads, and a leader that is killed is replaced without a gap or a repeated record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.server.cluster.processes import three_brokers
from tests.server.mirroring.clusters import create_link, ends, link, promote, wait_equal, write
from tests.server.mirroring.user_quotas import limit, quotas
from tests.waiting import wait_until


@pytest.fixture
def source() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def targets() -> Iterator[list[Broker]]:
    settings: dict[str, str | int | bool] = {"default.replication.factor": 3, "min.insync.replicas": 2}
    with ZooKeeper(longest_session_ms=60_000) as server, three_brokers(settings, server) as brokers:
        yield brokers


def leaders(servers: str) -> dict[int, int]:
    with BlockingClient.to(servers) as client:
        found = client.topics_by_name(["orders"])["orders"]
        return {partition.index: partition.leader for partition in found.partitions.values()}


def test_a_killed_leader_is_replaced_and_the_copy_stays_equal(source: Broker, targets: list[Broker]) -> None:
    theirs = source.bootstrap_servers
    ours = ",".join(broker.bootstrap_servers for broker in targets)
    with BlockingClient.to(theirs) as client:
        client.create_topics([NewTopic("orders", 6, 1)])
    write(theirs, "orders", map(str, range(1000)))
    create_link(ours, theirs)
    wait_equal(theirs, ours, "orders")
    assert set(leaders(ours).values()) == {1, 2, 3}
    assert {(each.topic, each.partition) for each in link(ours).partitions} == {("orders", index) for index in range(6)}
    targets[0].kill()
    rest = ",".join(broker.bootstrap_servers for broker in targets[1:])
    write(theirs, "orders", map(str, range(1000, 2000)))
    wait_until(lambda: 1 not in leaders(rest).values(), "nobody took over", within_s=60)
    wait_equal(theirs, rest, "orders")
    targets[0].start()
    write(theirs, "orders", map(str, range(2000, 2100)))
    wait_equal(theirs, ours, "orders")
    promote(rest, ["orders"])
    write(rest, "orders", map(str, range(5000, 5100)))
    assert sum(ends(rest, "orders").values()) == 2200


def test_another_controller_knows_what_the_link_has_made(source: Broker, targets: list[Broker]) -> None:
    theirs = source.bootstrap_servers
    ours = ",".join(broker.bootstrap_servers for broker in targets)
    for user in ("alice", "bob"):
        limit(theirs, user, 1000)
    limit(ours, "carol", 7)
    create_link(ours, theirs, sync_client_quotas_enabled="true", refresh_topics_interval_seconds="1")
    wait_until(lambda: quotas(ours) == {"alice": 1000, "bob": 1000, "carol": 7}, "the quotas were not copied", within_s=30)
    with BlockingClient.to(ours) as client:
        client.topics_by_name([])
        controller = client.cluster.controller_id
    targets[controller - 1].kill()
    rest = ",".join(broker.bootstrap_servers for broker in targets if broker is not targets[controller - 1])
    limit(theirs, "bob", None)
    wait_until(lambda: quotas(rest) == {"alice": 1000, "carol": 7}, "the other controller did not remove it", within_s=60)
    assert quotas(theirs) == {"alice": 1000}
