"""Both shells against a server that speaks just enough, and breaks on demand."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.client.asynchronous import AsyncClient, AsyncConnection
from barnabas.client.blocking import LEAST_FETCH_BYTES, BlockingClient, PartitionReader
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, TimedOut
from barnabas.client.plans import Call
from barnabas.client.wire import api_of
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.request_headers import has_flexible_response_header, read_request_header
from tests.client.fakes import TOPIC_ID, metadata
from tests.pipelines.batches import batch
from tests.waiting import WITHIN_S

REQUESTS: dict[int, type[Message]] = {
    api_of(cls).key: cls for cls in (ApiVersionsRequest, MetadataRequest, ListOffsetsRequest, FetchRequest)
}
HANG, CLOSE, GARBAGE = object(), object(), object()


class Server:
    """Answers with what `behave` returns for a request; it may also hang, close the connection or send nonsense."""

    def __init__(self) -> None:
        self.behave: Callable[[Message], Any] = self.well
        self.connections = 0
        self.wrong_hellos = 0  # number of wrong answers to send: answers to no request of the client
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    def well(self, request: Message) -> Any:
        if isinstance(request, MetadataRequest):
            answer = metadata({("t", 0): 1})
            for broker in answer.brokers:
                broker.port = self.port
            return answer
        if isinstance(request, ListOffsetsRequest):
            item = ListOffsetsPartitionResponse(partition_index=0, offset=5)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[item])])
        assert isinstance(request, FetchRequest)
        offset = request.topics[0].partitions[0].fetch_offset
        records = batch(offset - offset % 10, [(None, b"%d" % i) for i in range(10)]) if offset < 100 else b""
        data = PartitionData(partition_index=0, high_watermark=100, records=records)
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                answer = self._answer(frame)
                if answer is CLOSE:
                    return
                if answer is not HANG:
                    writer.write(answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def _answer(self, frame: bytes) -> Any:
        key, version, correlation_id, _, start = read_request_header(memoryview(frame))
        flexible = has_flexible_response_header(key, version)
        request = decode(REQUESTS[key], version, frame, start)
        if key == 18:
            if self.wrong_hellos:
                self.wrong_hellos -= 1
                correlation_id += 1
            keys = [ApiVersion(api_key=k, min_version=0, max_version=api_of(c).last_version) for k, c in REQUESTS.items()]
            body = struct.pack(">i", correlation_id) + encode(ApiVersionsResponse(api_keys=keys), version)
            return struct.pack(">i", len(body)) + body
        answer = self.behave(request)
        if answer in (HANG, CLOSE):
            return answer
        if answer is GARBAGE:
            return struct.pack(">ii", 2**31 - 1, 0)
        body = struct.pack(">i", correlation_id) + (b"\0" if flexible else b"") + encode(answer, version)
        return struct.pack(">i", len(body)) + body

    def failing_once(self, kind: type[Message], how: object) -> None:
        """Do `how` at the first request of this kind, then be well."""
        seen: list[Message] = []

        def behave(request: Message) -> Any:
            if isinstance(request, kind) and not seen:
                seen.append(request)
                return how
            return self.well(request)

        self.behave = behave


@pytest.fixture
def server() -> Iterator[Server]:
    """Runs in a thread, since the blocking client blocks."""
    it, ready, stop = Server(), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def run() -> None:
        listening = await asyncio.start_server(it.serve, "127.0.0.1", 0)
        it.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        listening.close()
        for writer in it._writers:
            writer.transport.abort()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    ready.wait()
    yield it
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def config(server: Server, **settings: Any) -> ClientConfig:
    defaults = {"request_timeout_ms": 20_000, "default_api_timeout_ms": 60_000, "retry_backoff_ms": 1}
    return ClientConfig((("127.0.0.1", server.port),), **{**defaults, **settings})


def offset_blocking(server: Server, **settings: Any) -> int:
    with BlockingClient(config(server, **settings)) as client:
        return client.list_offsets({("t", 0): -1})["t", 0].offset


def offset_async(server: Server, **settings: Any) -> int:
    async def ask() -> int:
        async with AsyncClient(config(server, **settings)) as client:
            return (await client.list_offsets({("t", 0): -1}))["t", 0].offset

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [offset_blocking, offset_async])


@both
def test_a_question_and_its_answer(server: Server, ask: Callable[..., int]) -> None:
    assert ask(server) == 5
    assert server.connections == 1


@both
@pytest.mark.parametrize("how", [HANG, CLOSE, GARBAGE])
@pytest.mark.parametrize("kind", [MetadataRequest, ListOffsetsRequest])
def test_a_connection_that_fails_is_made_anew(server: Server, ask: Callable[..., int], how: object, kind: type[Message]) -> None:
    server.failing_once(kind, how)
    if how is HANG:
        assert ask(server, request_timeout_ms=200) == 5
        assert server.connections >= 2  # a slow machine times out more often
    else:
        assert ask(server) == 5
        assert server.connections == 2


@both
def test_a_connection_that_begins_with_nonsense_is_made_anew(server: Server, ask: Callable[..., int]) -> None:
    server.wrong_hellos = 1
    assert ask(server) == 5
    assert server.connections == 2


async def test_each_request_has_its_own_time_to_be_answered(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection has one timer for all of them: it goes off for the oldest, and is set anew if that was answered."""
    loop = asyncio.get_running_loop()
    real, ahead_s = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real() + ahead_s)

    async def at(seconds: float) -> None:
        """Let what is due by then happen."""
        nonlocal ahead_s
        ahead_s = seconds
        for _ in range(3):
            await asyncio.sleep(0)

    server.behave = lambda request: HANG if isinstance(request, ListOffsetsRequest) else server.well(request)
    connection = await AsyncConnection.open(("127.0.0.1", server.port), config(server, request_timeout_ms=1_000_000))
    answered = connection.request_at_once(Call(MetadataRequest()))
    assert answered is not None
    await answered
    await at(800)
    hanging = connection.request_at_once(Call(ListOffsetsRequest()))
    assert hanging is not None
    await at(1_500)
    assert connection.lost is None, "it has the time of a request that was answered"
    await at(2_500)
    assert isinstance(connection.lost, TimedOut)
    with pytest.raises(TimedOut):
        await hanging


@both
def test_nobody_there(ask: Callable[..., int]) -> None:
    nobody = Server()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        nobody.port = taken.getsockname()[1]
        with pytest.raises(TimedOut, match=f"last error: no connection to 127.0.0.1:{nobody.port}"):
            ask(nobody, default_api_timeout_ms=20)


@both
def test_a_broker_that_never_answers(server: Server, ask: Callable[..., int]) -> None:
    server.behave = lambda _: HANG
    with pytest.raises(TimedOut, match=r"no metadata within 50 ms; last error: no answer of 127.0.0.1:"):
        ask(server, request_timeout_ms=20, default_api_timeout_ms=50)


async def test_requests_of_many_tasks_share_a_connection(server: Server) -> None:
    async with AsyncClient(config(server)) as client:
        answers = await asyncio.gather(*(client.fetch("t", 0, offset) for offset in range(0, 100, 10)))
        assert [struct.unpack(">q", answer.records[:8])[0] for answer in answers] == list(range(0, 100, 10))
    assert server.connections == 1


async def test_a_request_that_was_given_up_still_tells_that_nobody_answers(server: Server) -> None:
    connection = await AsyncConnection.open(("127.0.0.1", server.port), config(server, request_timeout_ms=50))
    server.behave = lambda _: HANG
    asked = asyncio.ensure_future(connection.request(Call(MetadataRequest())))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert connection.lost is None
    connection._timeout_ms = 60_000  # the time-out of the second request, which fails together with the first
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(TimedOut):
            await connection.request(Call(MetadataRequest()))
    assert isinstance(connection.lost, TimedOut)


async def test_a_closed_connection_fails_what_is_in_flight(server: Server) -> None:
    client = AsyncClient(config(server, default_api_timeout_ms=0))
    await client.topics_by_name(["t"])
    server.behave = lambda _: CLOSE
    with pytest.raises(TimedOut) as caught:
        await client.fetch("t", 0, 0)
    assert isinstance(caught.value.__cause__, ConnectionFailed)
    await client.close()


def read_all(client: BlockingClient, start: int, end: int) -> list[int]:
    reader = PartitionReader(client, "t", 0, start, end)
    bases = []
    while reader.offset < end:
        answer = reader.read()
        bases.append(struct.unpack(">q", answer.records[:8])[0])
    reader.close()
    return bases


@pytest.mark.parametrize("how", [None, HANG, CLOSE, GARBAGE])
def test_reading_ahead_survives_a_lost_answer(server: Server, how: object) -> None:
    with BlockingClient(config(server, request_timeout_ms=200)) as client:
        assert read_all(client, 5, 30) == [0, 10, 20]
        if how is not None:
            server.failing_once(FetchRequest, how)
        assert read_all(client, 0, 100) == list(range(0, 100, 10))


def test_a_reader_asks_for_about_what_is_left(server: Server) -> None:
    """Each answer of the server has ten offsets in one batch. Their size is known from the first answer on."""
    asked = []

    def behave(request: Message) -> Any:
        if isinstance(request, FetchRequest):
            asked.append(request.topics[0].partitions[0].partition_max_bytes)
        return server.well(request)

    server.behave = behave
    with BlockingClient(config(server, fetch_bytes=1 << 20)) as client:
        read_all(client, 0, 100)
    assert asked[0] == 128_000, "100 records that nothing is known of"
    assert asked[1:] == [LEAST_FETCH_BYTES] * 9


def test_reading_ahead_follows_a_moved_leader(server: Server) -> None:
    moved = PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    refusal = FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[moved])])
    fetches = 0

    def behave(request: Message) -> Any:
        nonlocal fetches
        fetches += isinstance(request, FetchRequest)
        return refusal if isinstance(request, FetchRequest) and fetches == 3 else server.well(request)

    server.behave = behave
    with BlockingClient(config(server)) as client:
        assert read_all(client, 0, 100) == list(range(0, 100, 10))


def test_leaving_early_leaves_nothing_in_flight(server: Server) -> None:
    with BlockingClient(config(server)) as client:
        reader = PartitionReader(client, "t", 0, 0, 100)
        reader.read()
        reader.close()
        assert client.list_offsets({("t", 0): -1})["t", 0].offset == 5
