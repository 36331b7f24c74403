"""Both clients over TLS: their errors about a server that they refuse, and records in both directions."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed
from barnabas.client.results import NewTopic
from barnabas.errors import ConfigError
from barnabas.protocol.records.batch import build_batch
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from barnabas.tls.client import ClientTls
from barnabas.tls.settings import client_settings

VALUE = os.urandom(900_000)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(
        {"listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", "auto.create.topics.enable": "false"}, tls=True
    ) as broker:
        yield broker


def config(broker: Broker, **options: str) -> ClientConfig:
    changed = {name.replace("_", "."): value for name, value in options.items()}
    common = {"bootstrap.servers": broker.bootstrap_servers, "default.api.timeout.ms": "10000"}
    return ClientConfig.from_options({**common, **broker.certificates.client_settings("alice"), **changed})


def batch() -> bytes:
    return bytes(build_batch([(None, VALUE)], timestamp_ms=1))


def test_the_blocking_client(broker: Broker) -> None:
    with BlockingClient(config(broker)) as client:
        client.create_topics([NewTopic("blocking", 1, 1)])
        for _ in range(5):
            client.produce("blocking", 0, batch())
        assert VALUE in bytes(client.fetch("blocking", 0, 3).records)


async def test_the_asynchronous_client(broker: Broker) -> None:
    async with AsyncClient(config(broker)) as client:
        await client.create_topics([NewTopic("asynchronous", 1, 1)])
        for _ in range(5):
            await client.produce("asynchronous", 0, batch())
        assert VALUE in bytes((await client.fetch("asynchronous", 0, 3)).records)


@pytest.fixture
def refusals(broker: Broker, tmp_path: Path) -> dict[str, tuple[dict[str, str], str]]:
    """Settings, and what is said with them."""
    stranger = Certificates(tmp_path / "stranger")
    return {
        "authority": ({"ssl_ca_location": stranger.ca_file}, "certificate not taken: "),
        "plain": ({"bootstrap_servers": broker.listeners["PLAINTEXT"]}, ""),
    }


@pytest.mark.parametrize("wrong", ["authority", "plain"])
def test_the_blocking_client_says_what_is_wrong(
    broker: Broker, refusals: dict[str, tuple[dict[str, str], str]], wrong: str
) -> None:
    options, said = refusals[wrong]
    with BlockingClient(config(broker, **options)) as client, pytest.raises(ConnectionFailed) as caught:
        client.connection_to(-1)
    assert said in caught.value.reason


@pytest.mark.parametrize("wrong", ["authority", "plain"])
async def test_the_asynchronous_client_says_what_is_wrong(
    broker: Broker, refusals: dict[str, tuple[dict[str, str], str]], wrong: str
) -> None:
    options, said = refusals[wrong]
    async with AsyncClient(config(broker, **options)) as client:
        with pytest.raises(ConnectionFailed) as caught:
            await client._connection_to(-1)
    assert said in caught.value.reason


def test_the_name_of_the_server_is_checked_unless_told_not_to(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "authority")
    store = certificates.authority.issue("elsewhere", hosts=["elsewhere.example"])
    settings = {**certificates.broker_settings, "ssl.keystore.location": str(store.combined)}
    with Broker({"listeners": "SSL://127.0.0.1:0", **settings}) as broker:
        options = {"bootstrap.servers": broker.bootstrap_servers, **certificates.client_settings()}
        with (
            BlockingClient(ClientConfig.from_options(options)) as client,
            pytest.raises(ConnectionFailed, match="IP address mismatch"),
        ):
            client.connection_to(-1)
        for unchecked in ("", "none"):
            lax = {**options, "ssl.endpoint.identification.algorithm": unchecked}
            with BlockingClient(ClientConfig.from_options(lax)) as client:
                assert client.topics() == {}


def test_settings_are_refused_when_they_are_read() -> None:
    options = {"bootstrap.servers": "h:1", "security.protocol": "SSL", "ssl.ca.location": "missing"}
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location"):
        ClientConfig.from_options(options)


def test_settings_travel_to_other_processes(broker: Broker) -> None:
    tls = ClientTls(client_settings(broker.certificates.client_settings("alice")))
    assert pickle.loads(pickle.dumps(tls)) == tls
    assert {config(broker): 1}[config(broker)] == 1
