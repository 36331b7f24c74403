"""Clients that a TLS listener accepts and refuses; refused ones cost nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from barnabas import limits
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.server.broker import Broker
from barnabas.server.connection import Connection
from barnabas.server.tls.protocol import TlsProtocol
from barnabas.testing.certificates import Certificates
from tests.server.in_process import running
from tests.server.wire import framed
from tests.waiting import until

HELLO = framed((18, 3), ApiVersionsRequest(client_software_name="test", client_software_version="1"))
ALERTS_OF_NO_CERTIFICATE = {"TLSv1.2": "HANDSHAKE_FAILURE", "TLSv1.3": "CERTIFICATE_REQUIRED"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("handshakes") / "authority")


@contextlib.asynccontextmanager
async def serving(folder: Path, certificates: Certificates, **settings: str) -> AsyncIterator[Broker]:
    """A broker in this process with a plain listener and one with TLS."""
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    async with running([folder], None, None, **(listeners | certificates.broker_settings | settings)) as client:
        client.line.socket.close()
        yield client.broker


def port_of(broker: Broker, listener: str = "SSL") -> int:
    return next(endpoint.port for endpoint in broker.endpoints if endpoint.listener == listener)


def context_of(certificates: Certificates, version: str = "TLSv1.3", client: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificates.ca_file)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
    if client is not None:
        files = certificates.client(client)
        context.load_cert_chain(files.certificate, files.key)
    return context


async def ask(broker: Broker, context: ssl.SSLContext) -> int:
    """How many bytes an answer to ApiVersions has; raises what the client gets."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context)
    try:
        writer.write(HELLO)
        size = int.from_bytes(await reader.readexactly(4), "big")
        return len(await reader.readexactly(size))
    finally:
        writer.transport.abort()


async def until_shaken(broker: Broker, handshakes: int) -> None:
    await until(lambda: broker.metrics.tls_handshakes == handshakes)


@contextlib.asynccontextmanager
async def plain(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@pytest.fixture
def short_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_TIMEOUT_S", 0.1)


async def test_principals_are_the_names_of_certificates(tmp_path: Path, certificates: Certificates) -> None:
    rules = {"listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=service-(.*)$/$1/U,RULE:^CN=nobody$//,DEFAULT"}
    async with serving(tmp_path, certificates, **rules) as broker:
        found: dict[Connection, str] = {}
        for name in (None, "service-billing", "alice"):
            context = context_of(certificates, client=name)
            _, writer = await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context)
            wanted = len(found) + 1
            await until_shaken(broker, wanted)
            (connection,) = (c for c in broker.connections if c.listener == "SSL" and c not in found)
            found[connection] = connection.principal
            writer.transport.abort()
        assert list(found.values()) == ["User:ANONYMOUS", "User:BILLING", "User:CN=alice"]


async def test_groups_are_in_certificates_where_a_setting_says_so(tmp_path: Path) -> None:
    units = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, name) for name in ("finance", "Ops, Europe")]
    subject = x509.Name([*units, x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
    authority = Certificates(tmp_path / "authority")
    files = authority.authority.issue("alice", subject=subject)
    found = []
    for settings in ({"ssl.principal.groups.attribute": "OU"}, {}):
        async with serving(tmp_path / f"data{len(settings)}", authority, **settings) as broker:
            context = context_of(authority)
            context.load_cert_chain(files.certificate, files.key)
            _, writer = await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context)
            await until_shaken(broker, 1)
            (connection,) = (c for c in broker.connections if c.listener == "SSL")
            found.append(connection.groups)
            writer.transport.abort()
    assert found == [("Group:finance", "Group:Ops, Europe"), ()]


async def test_a_name_without_a_rule_does_not_get_in(tmp_path: Path, certificates: Certificates) -> None:
    async with serving(tmp_path, certificates, **{"ssl.principal.mapping.rules": "RULE:^CN=bob$/bob/"}) as broker:
        with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
            await ask(broker, context_of(certificates, client="alice"))
        assert await ask(broker, context_of(certificates, client="bob"))
        assert broker.metrics.tls_handshakes_failed == 1


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("who", ["nobody", "stranger", "expired"])
async def test_a_wrong_certificate_is_answered_with_an_alert(
    tmp_path: Path, certificates: Certificates, version: str, who: str
) -> None:
    context = context_of(certificates, version)
    if who == "stranger":
        other = Certificates(tmp_path / "other").client("alice")
        context.load_cert_chain(other.certificate, other.key)
    elif who == "expired":
        expired = Certificates(tmp_path / "expired").authority  # the same authority class, moved to another folder below
        late = type(expired)(tmp_path, certificates.password, certificates.authority.certificate, certificates.authority.key)
        files = late.issue("late", days=-1)
        context.load_cert_chain(files.certificate, files.key)
    alert = {"nobody": ALERTS_OF_NO_CERTIFICATE[version], "stranger": "UNKNOWN_CA", "expired": "CERTIFICATE_EXPIRED"}[who]
    settings = {"listener.name.ssl.ssl.client.auth": "required"}
    async with serving(tmp_path / "data", certificates, **settings) as broker:
        with pytest.raises(ssl.SSLError) as caught:
            await ask(broker, context)
        assert alert in str(caught.value)
        assert (broker.metrics.tls_handshakes, broker.metrics.tls_handshakes_failed) == (0, 1)
        await until(lambda: not broker.connections)
        assert await ask(broker, context_of(certificates, version, "alice"))


async def test_plain_text_on_a_tls_listener_closes_it(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, certificates) as broker:
        async with plain(port_of(broker)) as (reader, writer):
            writer.write(HELLO)
            assert len(await reader.read()) <= 7, "an alert at most"
        assert "does the other side speak TLS?" in caplog.text
        await until(lambda: not broker.connections)
        assert await ask(broker, context_of(certificates))


async def test_tls_on_a_plain_listener_closes_it(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, certificates) as broker:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await asyncio.open_connection("127.0.0.1", port_of(broker, "PLAINTEXT"), ssl=context_of(certificates))
        assert "it looks like a TLS handshake" in caplog.text


@pytest.mark.usefixtures("short_handshakes")
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00", bytes.fromhex("160301020001")])
async def test_a_handshake_that_does_not_end_is_dropped(tmp_path: Path, certificates: Certificates, sent: bytes) -> None:
    async with serving(tmp_path, certificates) as broker, plain(port_of(broker)) as (reader, writer):
        writer.write(sent)
        assert await reader.read() == b""
        assert not broker.connections
        assert broker.metrics.tls_handshakes_failed == 1


async def test_an_endless_handshake_is_dropped(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that announces the most that OpenSSL takes, record by record."""
    monkeypatch.setattr(limits, "MAX_TLS_HANDSHAKE_BYTES", 1_000)
    async with serving(tmp_path, certificates) as broker, plain(port_of(broker)) as (reader, writer):
        writer.write(b"\x16\x03\x01\x02\x00\x01\x01\xff\xff" + bytes(1_000))
        await reader.read()
        await until(lambda: not broker.connections)
        assert broker.metrics.tls_handshakes_failed == 1


async def test_half_open_handshakes_count_as_connections(tmp_path: Path, certificates: Certificates) -> None:
    async with serving(tmp_path, certificates, **{"max.connections": "2"}) as broker, contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(plain(port_of(broker)))
        await until(lambda: len(broker.connections) == 2)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context_of(certificates))
        assert broker.metrics.connections_refused == 1


def in_memory(context: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    return context.wrap_bio(incoming, outgoing, server_hostname="localhost"), incoming, outgoing


async def apply_instructions(
    step: Callable[[], object],
    ends: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    bios: tuple[ssl.MemoryBIO, ssl.MemoryBIO],
    piece: int,
) -> None:
    """Do what needs bytes of the other side, which gets ours in pieces, each in a packet of its own."""
    (reader, writer), (incoming, outgoing) = ends, bios
    while True:
        try:
            step()
        except ssl.SSLWantReadError:
            done = False
        else:
            done = True
        data = outgoing.read()
        for at in range(0, len(data), piece):
            writer.write(data[at : at + piece])
            await writer.drain()
            await asyncio.sleep(0)
        if done:
            return
        incoming.write(await reader.read(1 << 16))


@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
async def test_records_come_in_pieces_of_any_size(tmp_path: Path, certificates: Certificates, piece: int) -> None:
    """The client's bytes one by one, and all of them, with requests behind its last word of the handshake, at once."""
    async with serving(tmp_path, certificates) as broker, plain(port_of(broker)) as ends:
        tls, incoming, outgoing = in_memory(context_of(certificates, client="alice"))
        bios = incoming, outgoing
        await apply_instructions(tls.do_handshake, ends, bios, piece)
        answers = b""

        def exchange() -> None:
            nonlocal answers
            while len(answers) < wanted:
                answers += tls.read(1 << 16)

        count, wanted = 40, 4
        for number in range(count):
            tls.write(framed((18, 3), ApiVersionsRequest(client_software_name="t", client_software_version="1"), number))
        await apply_instructions(exchange, ends, bios, piece)
        size = int.from_bytes(answers[:4], "big") + 4
        wanted = count * size
        await apply_instructions(exchange, ends, bios, piece)
        assert [int.from_bytes(answers[at + 4 : at + 8], "big") for at in range(0, wanted, size)] == list(range(count))


async def test_a_goodbye_and_a_sudden_end_both_close_the_connection(tmp_path: Path, certificates: Certificates) -> None:
    async with serving(tmp_path, certificates) as broker:
        for says_goodbye in (True, False):
            async with plain(port_of(broker)) as ends:
                tls, incoming, outgoing = in_memory(context_of(certificates))
                await apply_instructions(tls.do_handshake, ends, (incoming, outgoing), 1 << 16)
                await until(lambda: broker.connections)
                if says_goodbye:
                    with contextlib.suppress(ssl.SSLWantReadError):
                        tls.unwrap()
                    ends[1].write(outgoing.read())
                else:
                    tls.write(HELLO)
                    ends[1].write(outgoing.read()[:10])
                    ends[1].write_eof()
                await until(lambda: not broker.connections)
                said = await ends[0].read()
                assert bool(said) == says_goodbye, "a goodbye is answered with one"
        assert broker.metrics.tls_handshakes == 2


async def test_bytes_that_are_no_record_close_an_open_connection(tmp_path: Path, certificates: Certificates) -> None:
    async with serving(tmp_path, certificates) as broker, plain(port_of(broker)) as ends:
        tls, incoming, outgoing = in_memory(context_of(certificates))
        await apply_instructions(tls.do_handshake, ends, (incoming, outgoing), 1 << 16)
        ends[1].write(b"\x17\x03\x03\x00\x20" + bytes(32))
        await ends[0].read()
        await until(lambda: not broker.connections)
        assert await ask(broker, context_of(certificates))


async def test_what_a_closed_connection_leaves_is_nobody_elses(tmp_path: Path, certificates: Certificates) -> None:
    """A request that ends its connection, and behind it more than was decrypted by then."""
    async with serving(tmp_path, certificates) as broker:
        _, writer = await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context_of(certificates))
        unknown = b"\x7f\xff" + bytes(1_000)
        writer.write((len(unknown)).to_bytes(4, "big") + unknown[:-1])
        await until(lambda: broker.receiver.queued_bytes)
        writer.write(unknown[-1:] + bytes(100_000))
        await until(lambda: not broker.connections)
        assert await ask(broker, context_of(certificates))
        writer.transport.abort()


async def test_a_connection_that_is_closed_within_the_turn_of_another_takes_nothing_from_it(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, certificates) as broker:
        context = context_of(certificates)
        ends = [await asyncio.open_connection("127.0.0.1", port_of(broker), ssl=context) for _ in range(2)]
        await until(lambda: broker.metrics.tls_handshakes == 2)
        (reader, writer), (_, other) = ends
        sizes = []
        port = other.get_extra_info("sockname")[1]
        victim = next(connection for connection in broker.connections if connection.peer_port == port)
        dispatch = broker.dispatch

        def closing(connection: Connection, data: memoryview, position: int, stop: int) -> int:
            victim.close()
            return dispatch(connection, data, position, stop)

        monkeypatch.setattr(broker, "dispatch", closing)
        count = 2_000
        writer.write(HELLO[:-1])
        await until(lambda: broker.receiver.queued_bytes)
        writer.write(HELLO[-1:] + (count - 1) * HELLO)
        for _ in range(count):
            sizes.append(int.from_bytes(await reader.readexactly(4), "big"))
            await reader.readexactly(sizes[-1])
        assert sizes == [sizes[0]] * count, "an answer that lost bytes, or has some of another's"
        assert victim.closed
        for _, each in ends:
            each.transport.abort()


async def test_a_connection_that_is_over_leaves_nothing_to_the_garbage_collector(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL keeps 14 kB for a connection. The collector knows nothing of them, so it would free them late."""
    made: list[weakref.ref[TlsProtocol]] = []
    connection_made = TlsProtocol.connection_made

    def noting(self: TlsProtocol, transport: asyncio.BaseTransport) -> None:
        made.append(weakref.ref(self))
        connection_made(self, transport)

    monkeypatch.setattr(TlsProtocol, "connection_made", noting)
    async with serving(tmp_path, certificates) as broker:
        gc.disable()
        try:
            assert await ask(broker, context_of(certificates))
            await until(lambda: not any(reference() for reference in made))
        finally:
            gc.enable()
        assert len(made) == 1


async def test_mutated_handshakes_do_no_harm(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_TIMEOUT_S", 0.5)
    tls, _, outgoing = in_memory(context_of(certificates))
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    chance = random.Random(7)
    count = 300
    async with serving(tmp_path, certificates) as broker:

        async def attempt() -> None:
            data = bytearray(hello[: chance.randrange(1, len(hello) + 1)])
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            async with plain(port_of(broker)) as (reader, writer):
                writer.write(bytes(data) + chance.randbytes(chance.randrange(50)))
                writer.write_eof()
                with contextlib.suppress(ConnectionError):
                    await reader.read()

        for _ in range(count // 20):
            await asyncio.gather(*(attempt() for _ in range(20)))
        await until(lambda: not broker.connections)
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
        monkeypatch.setattr(limits, "TLS_HANDSHAKE_TIMEOUT_S", 60)
        assert await ask(broker, context_of(certificates))
        assert broker.metrics.tls_handshakes == 1
