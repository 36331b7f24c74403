"""A broker's memory and open files for its peers are bounded; the limits are met by peers that come over sockets."""

from __future__ import annotations

import select
import ssl
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.server import descriptors
from barnabas.server.connection import Connection
from barnabas.server.tls.outbox import TlsOutbox
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from tests.server.in_process import Client, running
from tests.server.test_limits import FETCH, METADATA, PRODUCE, TOPIC, fetch_request, produce_request, resident_mb, serves
from tests.server.wire import SIZE, Line, batch_of, framed
from tests.waiting import until, wait_until

LARGE = batch_of(900_000)
PRODUCE_TO_MANY, PRODUCE_PLAIN, LIST_OFFSETS = (0, 9), (0, 8), (2, 8)
FREE_SLACK_MB = 25.0  # growth of a working process that is no buffer of a request


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
        wait_until(lambda: serves(broker) and resident_mb(broker) - before < most_mb)


async def test_answers_that_nobody_reads_are_so_many_bytes_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNSENT_BYTES", 200_000)
    waiting: list[int] = []  # bytes at the moment of each pause; the kernel may take some right after
    pause = Connection.pause

    def noted(connection: Connection, reason: str) -> None:
        if reason == "unsent" and connection._outbox is not None:
            waiting.append(connection._outbox.waiting_bytes)
        pause(connection, reason)

    monkeypatch.setattr(Connection, "pause", noted)
    async with running([tmp_path]) as client:
        for number in range(20):
            await client.create(name=f"topic-{number}-" + "x" * 200)
        with Line(port_of(client), receive_buffer=4096) as line:
            line.socket.setblocking(False)

            def ask_on() -> bool:
                """Ask until there is no room; whether that is because nobody listens any more, and not because the broker is busy."""
                room = select.poll()
                room.register(line.socket, select.POLLOUT)
                while room.poll(300):
                    line.socket.send(framed(METADATA, MetadataRequest(topics=None)) * 1_000)
                return "unsent" in newest_connection(client).paused_for

            await client.in_thread(lambda: wait_until(ask_on))
            connection = newest_connection(client)
            assert connection._outbox is not None
            assert connection._outbox.waiting_bytes < limits.MAX_UNSENT_BYTES + 20_000
            assert waiting
            assert all(limits.MAX_UNSENT_BYTES < size < limits.MAX_UNSENT_BYTES + 20_000 for size in waiting)
            assert "unsent" in connection.paused_for


def is_sending(connection: Connection) -> bool:
    return connection._outbox is not None and connection._outbox.waiting_bytes > 0


def nested(api: tuple[int, int], elements: int) -> Message:
    """A request with so many elements in arrays within arrays, none of them longer than two thirds of the limit."""
    parts = [elements * 2 // 3, elements - elements * 2 // 3]
    if api in (PRODUCE_TO_MANY, PRODUCE_PLAIN):
        topics = [
            TopicProduceData(name=f"t{number}", partition_data=[PartitionProduceData()] * size)
            for number, size in enumerate(parts)
        ]
        return ProduceRequest(acks=1, timeout_ms=1_000, topic_data=topics)
    if api == LIST_OFFSETS:
        asked = [
            ListOffsetsTopic(name=f"t{number}", partitions=[ListOffsetsPartition()] * (size - 1))
            for number, size in enumerate(parts)
        ]
        return ListOffsetsRequest(topics=asked)
    wanted = [FetchTopic(topic=f"t{number}", partitions=[FetchPartition()] * (size - 1)) for number, size in enumerate(parts)]
    return FetchRequest(topics=wanted, session_epoch=-1)


@pytest.mark.parametrize("api", [PRODUCE_TO_MANY, PRODUCE_PLAIN, LIST_OFFSETS, FETCH])
async def test_arrays_within_arrays_have_so_many_elements_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: tuple[int, int]
) -> None:
    monkeypatch.setattr(limits, "MAX_REQUEST_ELEMENTS", 600)
    async with running([tmp_path]) as client:
        with Line(port_of(client)) as line:
            line.send(api, nested(api, 600))
            assert await client.in_thread(line.receive)
            line.send(api, nested(api, 601))
            assert await client.in_thread(line.is_closed)


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


async def test_connections_leave_descriptors_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "granted", lambda: 48)
    async with running([tmp_path]) as client, AsyncExitStack() as stack:
        lines = [stack.enter_context(Line(port_of(client))) for _ in range(40)]
        assert await client.in_thread(lambda: all(line.is_closed() for line in lines[26:]))
        assert len(client.broker.connections) == 27
        await client.create()
        assert await client.produce(b"v") == 0


async def test_readers_that_lag_leave_descriptors_to_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "granted", lambda: 48)
    value, partitions = b"x" * 500_000, 12
    async with running([tmp_path], **{"socket.send.buffer.bytes": "4096"}) as client, AsyncExitStack() as stack:
        await client.create(partitions, TOPIC)
        lines: list[Line] = []
        metrics = client.broker.metrics
        for partition in range(partitions):
            assert await client.produce(value, partition, name=TOPIC) == 0
            request = fetch_request(0)
            request.topics[0].partitions[0].partition = partition
            lines.append(stack.enter_context(Line(port_of(client), receive_buffer=4096)))
            lines[-1].send(FETCH, request)
            await until(lambda: metrics.connections_opened == 1 + len(lines) and is_sending(newest_connection(client)))
        held, open_files = client.broker.pinned_files, client.broker.logs.open_files
        assert open_files is not None
        assert len(held) == descriptors.most_held_files() < partitions
        assert len(client.broker.connections) == 1 + len(held)
        assert await client.produce(b"v", 0, name=TOPIC) == 0
        await until(lambda: len(open_files) + len(held) <= descriptors.most_open_segments())
        for line in lines[-len(held) :]:
            assert len(await client.in_thread(line.receive)) > len(value), "who waits longest has made way"


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
