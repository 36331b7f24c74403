"""`python -m bench.steps`: the time of each step of a produce and of a fetch, for the tables of docs/internals/hot-path.md.

The steps are called one by one on a broker in this process, thousands of times. The client is a connection that drops its
answers. A figure is the median of the rounds, in microseconds of one call.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count, cycle
from typing import Any, cast
from uuid import UUID

import uvloop

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.config.broker import BrokerConfig
from barnabas.protocol.codec import decode_request, encode
from barnabas.protocol.fetch import FetchedData, write_fetch_answer
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.produce import PartitionAnswer, read_produce, write_produce_answer
from barnabas.protocol.request_headers import read_request_header, write_request_header
from barnabas.server.broker import Broker
from barnabas.server.connection import Connection
from barnabas.server.environment import Environment
from barnabas.server.fastpath.recogniser import use
from barnabas.server.fetching.request_template import FetchTemplate
from barnabas.server.outbox import Outbox
from barnabas.server.page_cache import at_hand
from barnabas.server.receiver import Receiver
from barnabas.storage.file_region import FileRegion
from bench.wire import produce_frame, record_batch

TOPIC, VALUE_BYTES = "steps", 100
SPREAD_TOPIC, SPREAD = "steps-spread", 8  # a topic, and its number of partitions
ROUNDS, CALLS = 15, 400
MANY = 50  # records per batch
RUN = 64  # requests that arrive together
OLDER_BYTES = 200_000
FETCH, FETCH_VERSION, PRODUCE_VERSION = 1, FetchRequest.LAST_VERSION, 9


class _Sink(Outbox):
    """An outbox that accepts everything at once."""

    __slots__ = ()

    def flush(self) -> None:
        self._items.clear()
        self.waiting_bytes = 0


class _Transport:
    """The transport of a connection."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return {"socket": self, "outbox": _Sink, "peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def fileno(self) -> int:
        return -1

    def abort(self) -> None:
        """Does nothing."""


def _median_us(calls: Callable[[], None], count: int) -> float:
    """The median microseconds of one call; `calls` makes `count` calls."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        calls()
        taken.append((time.perf_counter_ns() - began) / count / 1_000)
    return statistics.median(taken)


def each_us(call: Callable[[], object], count: int = CALLS) -> float:
    def calls() -> None:
        for _ in range(count):
            call()

    return _median_us(calls, count)


def _in_turn(call: Callable[[Any], object], given: Sequence[Any], make: Callable[[Any], Any] | None = None) -> float:
    """As `each_us`, for calls with different arguments; with `make`, a part of each argument is built before the clock starts."""
    rest = cycle(given)

    def round_us() -> float:
        ready = [next(rest) if make is None else make(next(rest)) for _ in range(CALLS)]
        began = time.perf_counter_ns()
        for each in ready:
            call(each)
        return (time.perf_counter_ns() - began) / CALLS / 1_000

    return statistics.median(round_us() for _ in range(ROUNDS))


class Steps:
    """The steps on one broker."""

    def __init__(self, broker: Broker, topic_id: UUID) -> None:
        self._broker = broker
        self._topic_id = topic_id
        found = broker.partitions.get(TOPIC, 0)
        assert found is not None
        assert found.is_leader
        self._partition: Any = found

    def connection(self) -> Connection:
        receiver = Receiver(self._broker.config.socket_request_max_bytes, 0)
        connection = Connection(self._broker, receiver, "PLAINTEXT", self._broker.loop)
        connection.connection_made(cast(asyncio.BaseTransport, _Transport()))
        return connection

    def dispatch(self, connection: Connection, framed: memoryview) -> None:
        """Handle a request; `framed` begins with its size."""
        self._broker.dispatch(connection, framed, 0, len(framed))
        outbox = connection._outbox
        assert outbox is not None
        outbox.flush()

    # --- produce

    def produce(self, records: int) -> list[tuple[str, float]]:
        batch = record_batch(records, VALUE_BYTES)
        framed = produce_frame(TOPIC, 0, batch, acks=1)
        # each call needs a fresh copy, because the broker writes base offset and leader epoch into the frame
        received = bytearray(framed)
        whole = memoryview(received)
        frame = whole[4:]
        body = read_request_header(frame).body
        head = read_produce(frame, body, PRODUCE_VERSION)
        records_at = next(iter(head.topics))[1][0].records
        assert records_at is not None
        partition, now_ms = self._partition, int(time.time() * 1000)
        told = [(TOPIC.encode(), [PartitionAnswer(0, 0, 0, -1, 0)])]
        connection, repeating = self.connection(), self.connection()

        def append() -> None:
            received[:] = framed
            partition.append_as_leader(records_at, now_ms)

        def general() -> None:
            received[:] = framed
            connection.recognisers.clear()
            self.dispatch(connection, whole)

        def learnt() -> None:
            received[:] = framed
            self.dispatch(repeating, whole)

        return [
            ("header", each_us(lambda: read_request_header(frame))),
            ("topics, partitions, views of the records", each_us(lambda: read_produce(frame, body, PRODUCE_VERSION))),
            ("the partition by its name", each_us(lambda: self._broker.partitions.by_name_bytes(TOPIC.encode()))),
            ("check, number, write", each_us(append)),
            ("the answer's bytes", each_us(lambda: write_produce_answer(PRODUCE_VERSION, 1, told))),
            ("the general way in all, and learning", each_us(general)),
            ("learnt", each_us(learnt)),
            ("a run of one", self.run([framed])),
            (f"a run of {RUN}, each", self.run([framed] * RUN)),
            (f"{RUN} to {SPREAD} partitions in turn, each", self.run(self._spread(batch))),
        ]

    def _spread(self, batch: bytes) -> list[bytes]:
        return [produce_frame(SPREAD_TOPIC, number % SPREAD, batch, acks=1) for number in range(RUN)]

    def run(self, frames: Sequence[bytes]) -> float:
        connection = self.connection()
        for framed in set(frames):
            self.dispatch(connection, memoryview(bytearray(framed)))
        fresh = b"".join(frames)
        data = memoryview(bytearray(fresh))

        def call() -> None:
            data[:] = fresh
            position = 0
            while position < len(data):
                position = self._broker.dispatch(connection, data, position, position + len(frames[0]))
            outbox = connection._outbox
            assert outbox is not None
            outbox.flush()

        return each_us(call, max(CALLS // len(frames), 1)) / len(frames)

    # --- fetch

    def _request(self, offset: int, size: int, session_id: int = 0, epoch: int = -1) -> FetchRequest:
        wanted = FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=offset, last_fetched_epoch=-1, partition_max_bytes=size
        )
        topics = [FetchTopic(topic_id=self._topic_id, partitions=[wanted])]
        return FetchRequest(
            replica_id=-1,
            session_id=session_id,
            session_epoch=epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 24,
            topics=topics,
        )

    def _frame(self, request: FetchRequest) -> bytes:
        return bytes(4) + write_request_header(FETCH, FETCH_VERSION, 1, "steps") + bytes(encode(request, FETCH_VERSION))

    def region(self, offset: int, size: int) -> FileRegion:
        found = self._partition.read(offset, size, minimum_one=True, is_verified_later=True)
        assert isinstance(found, FileRegion)
        return found

    def fetch(self, offsets: Sequence[int], size: int) -> list[tuple[str, float]]:
        """The steps of a consumer that fetches at these offsets in turn."""
        broker = self._broker
        frames = [self._frame(self._request(offset, size)) for offset in offsets]
        request, frame = self._request(offsets[0], size), memoryview(frames[0])[4:]
        body = read_request_header(frame).body

        region = self.region(offsets[0], size)
        answer = [(self._topic_id, [FetchedData(0, 0, 1, 1, 0, region)])]
        connection, repeating = self.connection(), self.connection()
        template = FetchTemplate(broker)
        template._patience = 0  # makes it learn nothing
        use(connection.recognisers, template)

        def dispatch(frame: bytes) -> None:
            self.dispatch(connection, memoryview(frame))

        def repeat(frame: bytes) -> None:
            self.dispatch(repeating, memoryview(frame))

        sessions = broker.fetch_sessions
        return [
            ("header", each_us(lambda: read_request_header(frame))),
            ("the request", each_us(lambda: decode_request(FetchRequest, FETCH_VERSION, frame, body))),
            ("session, or none", each_us(lambda: sessions.open(request, FETCH_VERSION, 0))),
            ("offset to region", _in_turn(lambda offset: self.region(offset, size), offsets)),
            ("in memory, and trusted?", each_us(lambda: at_hand(broker.files, region, may_copy=True))),
            ("the answer's bytes", each_us(lambda: write_fetch_answer(FETCH_VERSION, 1, answer))),
            ("the general way in all", _in_turn(dispatch, frames)),
            ("learnt", _in_turn(repeat, frames)),
            ("in a session", self._in_session(offsets, size)),
        ]

    def _in_session(self, offsets: Sequence[int], size: int) -> float:
        connection = self.connection()
        self.dispatch(connection, memoryview(self._frame(self._request(offsets[0], size, 0, 0))))
        sessions = self._broker.fetch_sessions
        session_id = max(sessions._sessions)
        epochs = count(1)

        def frame_at(offset: int) -> bytes:
            return self._frame(self._request(offset, size, session_id, next(epochs)))

        taken = _in_turn(lambda frame: self.dispatch(connection, memoryview(frame)), offsets, frame_at)
        sessions.remove(session_id)
        return taken

    # --- a waiting fetch that a new record answers

    async def wait(self, *, has_session: bool) -> list[tuple[str, float]]:
        """The steps of waiting fetches, and of the loop iterations that answer them."""
        consumer, producer = self.connection(), self.connection()
        log, sessions = self._partition.log, self._broker.fetch_sessions
        framed = produce_frame(TOPIC, 0, record_batch(1, VALUE_BYTES), acks=1)
        received = bytearray(framed)
        known, epochs = (0, count(-1, 0)) if not has_session else (0, count(0))
        asking, producing, waking = list[float](), list[float](), list[float]()
        for _ in range(ROUNDS * CALLS // 10):
            frame = memoryview(self._frame(self._request(log.log_end_offset, 1 << 20, known, next(epochs))))
            received[:] = framed
            clock = [time.perf_counter_ns()]
            self.dispatch(consumer, frame)
            clock.append(time.perf_counter_ns())
            self.dispatch(producer, memoryview(received))
            clock.append(time.perf_counter_ns())
            await asyncio.sleep(0)
            clock.append(time.perf_counter_ns())
            for taken, begin, end in zip((asking, producing, waking), clock, clock[1:], strict=False):
                taken.append((end - begin) / 1_000)
            known = known or (max(sessions._sessions) if has_session else 0)
        if known:
            sessions.remove(known)
        steps = [("it begins to wait", asking), ("a record is written", producing), ("it is woken and answered", waking)]
        return [(name, statistics.median(taken)) for name, taken in steps]


async def _measure() -> list[tuple[str, Sequence[str], list[list[tuple[str, float]]]]]:
    with tempfile.TemporaryDirectory(prefix="barnabas-steps-") as folder:
        properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": folder, "offsets.topic.num.partitions": "1"}
        config, _ = BrokerConfig.from_properties(properties)
        broker = Broker(config, asyncio.get_running_loop(), Environment())
        await broker.start()
        try:
            async with AsyncClient.to(f"127.0.0.1:{broker.endpoints[0].port}") as client:
                await client.create_topics([NewTopic(TOPIC, 1), NewTopic(SPREAD_TOPIC, SPREAD)])
                topic_id = (await client.topics())[TOPIC].topic_id
            steps = Steps(broker, topic_id)
            produce = [steps.produce(1), steps.produce(MANY)]
            log = steps._partition.log
            batches = OLDER_BYTES // len(record_batch(MANY, VALUE_BYTES))
            # Each fetch starts at the end of the previous one, like those of a consumer.
            first = steps.region(log.log_end_offset // 2, OLDER_BYTES).base_offset
            older = range(first, log.log_end_offset - MANY * 1_000, MANY * batches)
            fetch = [steps.fetch([log.log_end_offset - MANY], 1 << 20), steps.fetch(older, OLDER_BYTES)]
            waits = [await steps.wait(has_session=has_session) for has_session in (False, True)]
            return [
                ("produce", ("1 record", f"{MANY} records"), produce),
                ("fetch", ("the last batch", "200 kB of older ones"), fetch),
                ("waiting", ("no session", "in a session"), waits),
            ]
        finally:
            await broker.stop()


def main() -> int:
    for title, heads, columns in uvloop.run(_measure()):
        print(f"{title:45}" + "".join(f"{head + ', us':>26}" for head in heads))
        for row in zip(*columns, strict=True):
            print(f"  {row[0][0]:43}" + "".join(f"{figure:26.1f}" for _, figure in row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
