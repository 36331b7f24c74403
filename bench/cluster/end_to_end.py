"""The delay of a message: from its planned time of sending to the time at which a consumer has it.

One thread is both producer and consumer. It sends messages by a fixed schedule, and each of its consumers always has a waiting
fetch. A producer's connection has at most `IN_FLIGHT` requests without an answer, like Kafka's producer. Messages that become
due during this time go into one batch. A consumer's connection has a fetch session, like Kafka's consumer: the first request
names all partitions, later ones name changes.

The n-th message of a partition has the offset n, so its time follows from the offsets in a fetch response. The answers to the
producer are also checked and timed. If the partitions contain messages at the start, the time until the consumers have caught
up is recorded too.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, zip_longest
from struct import Struct
from typing import Protocol

from bench.consume import walk_topics
from bench.latency import SLACK_S, STALLED_S, percentile, wake_in_time
from bench.wire import (
    BATCH_HEAD,
    NEW_SESSION,
    NO_SESSION,
    AnswerReader,
    AnswerShape,
    BadAnswer,
    fetch_topics_frame,
    produce_frame,
    record_batch,
)

IN_FLIGHT = 5  # max.in.flight.requests.per.connection of Kafka's producer
BATCH_BYTES, MAX_MESSAGES = 16_384, 100  # of one batch; Kafka's default batch.size
VALUE_BYTES = 100
MAX_BYTES = 1024 * 1024
BUFFER_BYTES = 2 * MAX_BYTES + 64 * 1024  # a response may contain a batch that is larger than requested
SESSION_AT = 15  # position of the session id in a fetch response
_I32 = Struct(">i")

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """The milliseconds until each message was acknowledged, and until it was consumed; both sorted.

    Fields:
        caught_up: the number of messages, and the seconds, until the consumers had caught up with the producers.
    """

    acknowledged: array[float]
    consumed: array[float]
    caught_up: tuple[int, float] = (0, 0.0)

    def figures(self) -> dict[str, float]:
        """Percentiles of both."""
        both = {"": self.consumed, "acknowledged_": self.acknowledged}
        return {f"{name}p{p:g}_ms": percentile(values, p) for name, values in both.items() for p in (50.0, 99.0, 99.9)}


@dataclass(slots=True)
class Stream:
    """A partition, with its sent and its planned messages; it has `waiting` messages at the start.

    Topics that are measured together have names of the same length, so their answers have the same length.
    """

    address: Address
    topic: str
    partition: int = 0
    waiting: int = 0
    meant: array[float] = field(default_factory=lambda: array("d"))
    sent: int = 0
    answered: int = 0
    is_pending: bool = False


class _Readable(Protocol):
    socket: socket.socket

    def ready(self) -> None: ...


class _Producer:
    """One connection, to the leader of its streams.

    Args:
        acknowledged: gets the milliseconds until each message was acknowledged.
    """

    def __init__(self, streams: Sequence[Stream], acks: int, value_bytes: int, acknowledged: array[float]) -> None:
        self.socket = socket.create_connection(streams[0].address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._acks, self._value_bytes = acks, value_bytes
        self._most = max(1, min(MAX_MESSAGES, BATCH_BYTES // value_bytes))
        self._answers = AnswerReader(self.socket, AnswerShape(streams[0].topic, 1))
        self._acknowledged = acknowledged
        self._pending: deque[Stream] = deque()
        # requests in flight: stream, and how many of its messages were sent with the request
        self._ends: deque[tuple[Stream, int]] = deque()

    def due(self, stream: Stream, meant: float) -> None:
        """A message is due at the time `meant`."""
        stream.meant.append(meant)
        if not stream.is_pending:
            stream.is_pending = True
            self._pending.append(stream)
        self._send()

    def _send(self) -> None:
        while self._pending and len(self._ends) < IN_FLIGHT:
            stream = self._pending.popleft()
            messages = min(len(stream.meant) - stream.sent, self._most)
            self.socket.sendall(_frame(stream.topic, stream.partition, messages, self._value_bytes, self._acks))
            stream.sent += messages
            self._ends.append((stream, stream.sent))
            stream.is_pending = stream.sent < len(stream.meant)
            if stream.is_pending:
                self._pending.append(stream)

    def ready(self) -> None:
        answers, now = self._answers.receive()
        for _ in range(answers):
            stream, end = self._ends.popleft()
            self._acknowledged.extend((now - meant) * 1000 for meant in stream.meant[stream.answered : end])
            stream.answered = end
        self._send()


@lru_cache(maxsize=1_000)
def _frame(topic: str, partition: int, messages: int, value_bytes: int, acks: int) -> bytes:
    """A produce request; it is built before, because building takes longer than sending."""
    return produce_frame(topic, partition, _batch(messages, value_bytes), acks=acks)


@cache
def _batch(messages: int, value_bytes: int) -> bytes:
    return record_batch(messages, value_bytes)


class _Consumer:
    """The waiting fetch at one broker, for some streams that this broker leads."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.socket = socket.create_connection(streams[0].address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.latencies: array[float] = array("d")
        self.counts_from = 0.0  # messages that are due before this time do not count
        self.came = 0
        self._streams = {(stream.topic, stream.partition): stream for stream in streams}
        self._offsets: dict[str, dict[int, int]] = {}
        for stream in streams:
            self._offsets.setdefault(stream.topic, {})[stream.partition] = 0
        self._asked: Mapping[str, dict[int, int]] = self._offsets  # in a session, only the changed partitions
        self._session = NEW_SESSION
        # shared by all responses, because allocating 1 MB takes longer than reading 1 MB
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0

    def fetch(self) -> None:
        self.socket.sendall(
            fetch_topics_frame(self._asked, max_bytes=MAX_BYTES, partition_max_bytes=MAX_BYTES, session=self._session)
        )

    def ready(self) -> None:
        """Receive bytes; after a whole answer, send the next fetch."""
        got = self.socket.recv_into(self._buffer[self._filled :])
        if not got:
            raise BadAnswer("the server closed the connection")
        self._filled += got
        end = _I32.size + _I32.unpack_from(self._buffer)[0] if self._filled >= _I32.size else len(self._buffer)
        if not _I32.size <= end <= len(self._buffer) or self._filled > end:
            raise BadAnswer(f"an answer of {end} bytes, {self._filled} of them at once, where {len(self._buffer)} fit")
        if self._filled < end:
            return
        now = time.perf_counter()
        changed: dict[str, dict[int, int]] = {}
        for topic, index, records in walk_topics(self._buffer[_I32.size : end]):
            self._take(self._streams[topic, index], records, now)
            changed.setdefault(topic, {})[index] = self._offsets[topic][index]
        self._filled = 0
        session_id = _I32.unpack_from(self._buffer, SESSION_AT)[0]
        self._session = (session_id, self._session[1] + 1) if session_id else NO_SESSION
        self._asked = changed if session_id else self._offsets
        self.fetch()

    def _take(self, stream: Stream, records: memoryview, now: float) -> None:
        offsets = self._offsets[stream.topic]
        position = 0
        while position + BATCH_HEAD.size <= len(records):
            head = BATCH_HEAD.unpack_from(records, position)
            offset, size = head[0], head[1] + 12
            if position + size > len(records):
                return
            if offset != offsets[stream.partition]:
                raise BadAnswer(f"partition {stream.partition} answered offset {offset}, expected {offsets[stream.partition]}")
            after = offset + head[12]
            first, last = max(offset - stream.waiting, 0), max(after - stream.waiting, 0)
            self.latencies.extend((now - meant) * 1000 for meant in stream.meant[first:last] if meant >= self.counts_from)
            self.came += head[12]
            offsets[stream.partition] = after
            position += size


def measure(leaders: Sequence[Address], topic: str, *, acks: int, rate: int, seconds: float) -> EndToEnd:
    """Send `rate` messages a second for `seconds` to all partitions in turn, and consume them.

    Each partition has a connection of its own for sending. The consumer has one connection to each broker.

    Args:
        leaders: the address of each partition's leader; the topic is empty.
    """
    streams = [Stream(address, topic, partition) for partition, address in enumerate(leaders)]
    by_broker = [[stream for stream in streams if stream.address == address] for address in dict.fromkeys(leaders)]
    return measure_streams([[stream] for stream in streams], by_broker, acks=acks, rate=rate, seconds=seconds)


def measure_streams(
    producers: Sequence[Sequence[Stream]],
    consumers: Sequence[Sequence[Stream]],
    *,
    acks: int,
    rate: int,
    seconds: float,
    value_bytes: int = VALUE_BYTES,
    warm_up_s: float = 0.0,
) -> EndToEnd:
    """As `measure`, with given streams for each connection; the streams of a connection have the same address. The schedule
    begins `warm_up_s` earlier, and the result has only messages that are due after that."""
    wake_in_time()
    acknowledged: array[float] = array("d")
    lines = {_Producer(streams, acks, value_bytes, acknowledged): streams for streams in producers}
    readers = [_Consumer(streams) for streams in consumers]
    try:
        caught_up = _run(lines, readers, rate, int(rate * seconds), int(rate * warm_up_s))
    finally:
        for each in _descriptors(chain(lines, readers)).values():
            each.socket.close()
    consumed = array("d", sorted(chain.from_iterable(reader.latencies for reader in readers)))
    return EndToEnd(array("d", sorted(acknowledged)), consumed, caught_up)


def _run(
    lines: Mapping[_Producer, Sequence[Stream]], consumers: Sequence[_Consumer], rate: int, counted: int, uncounted: int
) -> tuple[int, float]:
    by_descriptor = _descriptors(chain(lines, consumers))
    rows = zip_longest(*([(line, stream) for stream in streams] for line, streams in lines.items()))
    turns = [turn for row in rows for turn in row if turn is not None]  # alternates between the connections
    waiting = sum(stream.waiting for _, stream in turns)
    began = time.perf_counter() + 0.01
    for consumer in consumers:
        consumer.counts_from = began + uncounted / rate
        consumer.fetch()
    sent, total, caught_up = 0, uncounted + counted, (0, 0.0)
    descriptors = list(by_descriptor)
    while sum(consumer.came for consumer in consumers) < waiting + total:
        now = time.perf_counter()
        while sent < total and began + sent / rate <= now:
            line, stream = turns[sent % len(turns)]
            line.due(stream, began + sent / rate)
            sent += 1
        wait = began + sent / rate - time.perf_counter() if sent < total else STALLED_S
        readable, _, _ = select.select(descriptors, (), (), max(wait, 0))
        if not readable and sent == total:
            raise BadAnswer(f"no answer for {STALLED_S:g} s")
        for descriptor in readable:
            by_descriptor[descriptor].ready()
        if waiting and not caught_up[0]:
            came = sum(consumer.came for consumer in consumers)
            if came >= waiting + sent - rate * SLACK_S:
                caught_up = came, time.perf_counter() - began
    return caught_up


def _descriptors(each: Iterable[_Readable]) -> dict[int, _Readable]:
    return {one.socket.fileno(): one for one in each}
