"""What a broker keeps in memory, and open, for its peers has an end; the limits are met by peers that come over sockets."""

from __future__ import annotations

import select
import ssl
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.server.connection import Connection
from barnabas.server.tls.outbox import TlsOutbox
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from tests.server.in_process import Client, running
from tests.server.test_limits import FETCH, METADATA, PRODUCE, TOPIC, fetch_request, produce_request, resident_mb, serves
from tests.server.wire import SIZE, Line, batch_of, framed
from tests.waiting import until, wait_until

LARGE = batch_of(900_000)
FREE_SLACK_MB = 25.0  # of a process that works: what is no buffer of a request


def port_of(client: Client) -> int:
    return client.broker.endpoints[0].port


def newest_connection(client: Client) -> Connection:
    return list(client.broker.connections)[-1]


async def test_so_many_buffers_of_large_requests_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT_FRAME_BUFFERS", 2)
    frame = framed(PRODUCE, produce_request(LARGE))
    async with running([tmp_path]) as client:
        await client.create(name=TOPIC)
        receiver = client.broker.receiver

        def begin(lines: list[Line]) -> None:
            for line in lines:
                line.socket.sendall(frame[: len(frame) // 2])

        def end(lines: list[Line]) -> None:
            for line in lines:
                line.socket.sendall(frame[len(frame) // 2 :])
                assert line.receive()

        with ExitStack() as stack:
            lines = [stack.enter_context(Line(port_of(client))) for _ in range(6)]
            await client.in_thread(lambda: begin(lines))
            await until(lambda: receiver.queued_bytes >= 6 * len(LARGE))
            await client.in_thread(lambda: end(lines))
        assert len(receiver._spare) == 2


def test_memory_of_large_requests_is_given_back() -> None:
    start = SIZE.pack(60_000_000) + bytes(59_000_000)
    with Broker() as broker:
        before = resident_mb(broker)
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(Line(broker)).socket.sendall(start)
            assert serves(broker)
            assert resident_mb(broker) - before > 150
        most_mb = limits.KEPT_FREE_BYTES / 1e6 + FREE_SLACK_MB
        wait_until(lambda: serves(broker) and resident_mb(broker) - before < most_mb, within_s=10)


async def test_answers_that_nobody_reads_are_so_many_bytes_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNSENT_BYTES", 200_000)
    async with running([tmp_path]) as client:
        for number in range(20):
            await client.create(name=f"topic-{number}-" + "x" * 200)
        with Line(port_of(client), receive_buffer=4096) as line:
            line.socket.setblocking(False)

            def ask_on() -> bool:
                """Ask until nobody listens."""
                while select.select((), (line.socket,), (), 0.3)[1]:
                    line.socket.send(framed(METADATA, MetadataRequest(topics=None)) * 1_000)
                return True

            assert await client.in_thread(ask_on)
            connection = newest_connection(client)
            outbox = connection._outbox
            assert outbox is not None
            assert limits.MAX_UNSENT_BYTES < outbox.waiting_bytes < limits.MAX_UNSENT_BYTES + 20_000
            assert "unsent" in connection._paused_for


async def test_so_many_files_of_segments_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_OPEN_SEGMENTS", 4)
    async with running([tmp_path]) as client:
        await client.create(partitions=12)
        for partition in range(12):
            assert await client.produce(b"%d" % partition, partition) == 0
        open_files = client.broker.logs.open_files
        assert open_files is not None
        await until(lambda: len(open_files) <= 4)
        for partition in range(12):
            assert await client.fetch(partition) == (0, [b"%d" % partition])
        await until(lambda: len(open_files) <= 4)


async def test_a_reader_over_tls_that_does_not_read_holds_one_stretch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TLS_GATHERED_BYTES", 48_000)
    certificates = Certificates(tmp_path / "authority")
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    async with running([tmp_path / "data"], None, None, **(listeners | certificates.broker_settings)) as client:
        await client.create(name=TOPIC)
        for _ in range(3):
            await client.in_thread(lambda: client.line.ask(PRODUCE, produce_request(LARGE), ProduceResponse))
        port = next(endpoint.port for endpoint in client.broker.endpoints if endpoint.listener == "SSL")
        with Line(port, receive_buffer=4096) as line:
            context = ssl.create_default_context(cafile=certificates.ca_file)
            with closing(
                await client.in_thread(lambda: context.wrap_socket(line.socket, server_hostname="127.0.0.1"))
            ) as line.socket:
                await client.in_thread(lambda: line.send(FETCH, fetch_request(0, max_bytes=4_000_000)))
                outbox = newest_connection(client)._outbox
                assert isinstance(outbox, TlsOutbox)
                await until(lambda: outbox._sealed and outbox._blocked)
                assert len(outbox._sealed) < 1.02 * limits.TLS_GATHERED_BYTES
                answer = decode(FetchResponse, FETCH[1], await client.in_thread(line.receive), 5)
                assert len(answer.responses[0].partitions[0].records or b"") == 3 * len(LARGE)
