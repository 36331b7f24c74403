"""Certificates that change while the broker runs, by their files or by its settings: new connections get them, open ones stay."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Producer

from barnabas.config.broker import BrokerConfig
from barnabas.protocol.messages import alter_configs as legacy
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.server import maintenance
from barnabas.server.tls.listeners import settings_of
from barnabas.testing.certificates import HOSTS, Certificates
from barnabas.tls.contexts import server_context
from barnabas.tls.pem import certificates_in
from tests.server.in_process import Client, running
from tests.waiting import WITHIN_S, until

BROKER, SET, DELETE = 4, 0, 1
INVALID_REQUEST = 42
LOCATION = "listener.name.ssl.ssl.keystore.location"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("reload") / "authority")


def settings(certificates: Certificates, store: Path) -> dict[str, str]:
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    return {**certificates.broker_settings, **listeners, "ssl.keystore.location": str(store)}


async def serial_of(client: Client, certificates: Certificates) -> tuple[int, asyncio.StreamWriter]:
    """The number of the certificate that a new connection gets, and the connection."""
    port = next(endpoint.port for endpoint in client.broker.endpoints if endpoint.listener == "SSL")
    context = ssl.create_default_context(cafile=certificates.ca_file)
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    shown = cast("dict[str, str]", writer.get_extra_info("peercert"))
    return int(shown["serialNumber"], 16), writer


async def alter(client: Client, changes: dict[str, str | None]) -> tuple[int, str]:
    configs = [
        AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        for name, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await client.ask((44, 1), request, IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code, answer.responses[0].error_message or ""


def reissued(
    certificates: Certificates,
    tmp_path: Path,
    *,
    name: str = "broker",
    hosts: tuple[str, ...] = HOSTS,
) -> Path:
    """Another certificate of the same authority."""
    authority = certificates.authority
    folder = tmp_path / f"new-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    again = type(authority)(folder, certificates.password, authority.certificate, authority.key)
    return again.issue(name, hosts=hosts).combined


async def test_changed_files_are_found(tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "CERTIFICATES_CHECK_MS", 20)
    store = tmp_path / "broker.pem"
    store.write_bytes(certificates.broker.combined.read_bytes())
    new = reissued(certificates, tmp_path)
    async with running([tmp_path / "data"], None, None, **settings(certificates, store)) as client:
        first, old = await serial_of(client, certificates)
        store.write_text("half a file")
        terms = client.broker.tls.of("SSL")
        new.replace(store)
        await until(lambda: terms.source.generation > 1)
        second, writer = await serial_of(client, certificates)
        assert first != second
        assert not old.transport.is_closing()
        assert len([c for c in client.broker.connections if c.listener == "SSL"]) == 2
        old.transport.abort()
        writer.transport.abort()


async def test_changed_settings_are_taken_at_once_or_refused(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "stores").mkdir()
    new = reissued(certificates, tmp_path / "stores")
    other_name = reissued(certificates, tmp_path / "stores", name="other")
    fewer_hosts = reissued(certificates, tmp_path / "stores", hosts=("localhost",))
    async with running([tmp_path / "data"], None, None, **settings(certificates, certificates.broker.combined)) as client:
        first, writer = await serial_of(client, certificates)
        writer.transport.abort()
        for value, said in (
            (str(tmp_path / "missing"), "No such file"),
            (certificates.ca_file, "there is no private key"),
            (str(other_name), "distinguished name of the old one (CN=broker); this one is CN=other"),
            (str(fewer_hosts), "IP:127.0.0.1"),
        ):
            code, message = await alter(client, {LOCATION: value})
            assert (code, said in message) == (INVALID_REQUEST, True), message
        code, message = await alter(client, {"ssl.keystore.location": str(new)})
        assert (code, "per-listener" in message) == (INVALID_REQUEST, True)
        assert await alter(client, {LOCATION: str(new)}) == (0, "")
        second, writer = await serial_of(client, certificates)
        writer.transport.abort()
        assert second != first
        assert await alter(client, {LOCATION: None}) == (0, "")
        third, writer = await serial_of(client, certificates)
        writer.transport.abort()
        assert third == first


async def test_certificates_change_under_load_and_nothing_is_lost(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "stores").mkdir()
    stores = [str(reissued(certificates, tmp_path / "stores")) for _ in range(2)]
    async with running([tmp_path / "data"], None, None, **settings(certificates, certificates.broker.combined)) as client:
        port = next(endpoint.port for endpoint in client.broker.endpoints if endpoint.listener == "SSL")
        done = asyncio.Event()
        rounds = 10

        def produce(number: int) -> int:
            """By a producer of its own, so by connections of their own; how many records were acknowledged."""
            failed: list[object] = []
            producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", **certificates.client_settings()})
            for index in range(200):
                producer.produce(
                    "load", f"{number} {index}", on_delivery=lambda error, _: failed.append(error) if error else None
                )
            assert producer.flush(WITHIN_S) == 0
            return 200 - len(failed)

        async def change() -> None:
            for turn in itertools.count():
                if done.is_set():
                    return
                assert (await alter(client, {LOCATION: stores[turn % 2]}))[0] == 0

        changing = asyncio.ensure_future(change())
        counts = [await asyncio.to_thread(produce, number) for number in range(rounds)]
        done.set()
        await changing
        assert counts == [200] * rounds
        partition = client.broker.partitions.require("load", 0)
        assert partition.log.log_end_offset == rounds * 200
        assert client.broker.tls.of("SSL").source.generation > 2


async def test_the_other_way_to_change_settings_is_looked_at_as_well(tmp_path: Path, certificates: Certificates) -> None:
    async with running([tmp_path / "data"], None, None, **settings(certificates, certificates.broker.combined)) as client:
        for name, value in ((LOCATION, str(tmp_path / "missing")), ("ssl.enabled.protocols", "TLSv1.7")):
            config = legacy.AlterableConfig(name=name, value=value)
            resource = legacy.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
            answer = await client.ask((33, 2), legacy.AlterConfigsRequest(resources=[resource]), legacy.AlterConfigsResponse)
            assert answer.responses[0].error_code == INVALID_REQUEST, name


async def test_a_store_that_is_gone_keeps_no_broker_from_its_start(tmp_path: Path, certificates: Certificates) -> None:
    """The setting was made while the broker ran. The value of the start replaces it, so that it can be set again."""
    (tmp_path / "stores").mkdir()
    new = reissued(certificates, tmp_path / "stores")
    given = settings(certificates, certificates.broker.combined)
    async with running([tmp_path / "data"], None, None, **given) as client:
        assert await alter(client, {LOCATION: str(new)}) == (0, "")
        changed, writer = await serial_of(client, certificates)
        writer.transport.abort()
    new.unlink()
    async with running([tmp_path / "data"], None, None, **given) as client:
        first, writer = await serial_of(client, certificates)
        writer.transport.abort()
        assert first != changed
        assert await alter(client, {LOCATION: None}) == (0, "")


def test_each_certificate_of_a_trust_store_is_believed(certificates: Certificates) -> None:
    """A client's own certificate stands there, and not the authority's."""
    near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
    own = certificates.client("pinned")
    given = {**certificates.broker_settings, "ssl.client.auth": "required", "ssl.truststore.type": "PEM"}
    given |= {"ssl.truststore.certificates": certificates_in(own.combined.read_text())[0]}
    given = {name: value for name, value in given.items() if not name.startswith("ssl.truststore.loc")}
    at_server = server_context(settings_of(BrokerConfig.from_properties(given)[0], "SSL"))
    at_client = ssl.create_default_context(cafile=certificates.ca_file)
    at_client.load_cert_chain(own.combined)
    server = at_server.wrap_bio(near, far, server_side=True)
    client = at_client.wrap_bio(far, near, server_hostname="localhost")
    ends = {server, client}
    for _ in range(10):
        for end in (server, client):
            with suppress(ssl.SSLWantReadError):
                if end in ends:
                    end.do_handshake()
                    ends.discard(end)
    assert ends == set()
