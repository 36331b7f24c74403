"""From the moment at which a message was meant to leave a producer to the moment at which a consumer has it.

One thread is both: it has messages to send on a schedule made beforehand, over one connection to the leader of each
partition, and keeps one fetch waiting at every broker. As Kafka's producer does, a connection has at most `IN_FLIGHT` requests without an
answer; what comes due meanwhile goes along in one batch. The n-th message of a partition has the offset n, so its time follows from the
offsets that a fetch brings. Answers to the producer are checked and timed as well.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Protocol

from bench.consume import walk_partitions
from bench.latency import STALLED_S, percentile, wake_in_time
from bench.wire import BATCH_HEAD, AnswerReader, AnswerShape, BadAnswer, fetch_frame, produce_frame, record_batch

IN_FLIGHT = 5  # max.in.flight.requests.per.connection of Kafka's producer
MAX_MESSAGES = 100  # in a batch: with 100 bytes each they are about its batch.size
VALUE_BYTES = 100
MAX_BYTES = 1024 * 1024
_I32 = Struct(">i")

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """Milliseconds, in order: of messages until they were acknowledged, and until they were consumed."""

    acknowledged: array[float]
    consumed: array[float]

    def figures(self) -> dict[str, float]:
        """Percentiles of both."""
        both = {"": self.consumed, "acknowledged_": self.acknowledged}
        return {f"{name}p{p:g}_ms": percentile(values, p) for name, values in both.items() for p in (50.0, 99.0, 99.9)}


class _Readable(Protocol):
    socket: socket.socket

    def ready(self) -> None: ...


class _Producer:
    """The connection to the leader of one partition.

    Args:
        meant: when each message of the partition was meant to leave, filled here.
        acknowledged: takes the milliseconds until each was.
    """

    def __init__(
        self, address: Address, topic: str, partition: int, acks: int, meant: array[float], acknowledged: array[float]
    ) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._target = topic, partition, acks
        self._answers = AnswerReader(self.socket, AnswerShape(topic, 1))
        self._meant = meant
        self._acknowledged = acknowledged
        self._ends: deque[int] = deque()  # of the requests in flight: how many messages were sent then
        self._sent = self._answered = 0

    def due(self, meant: float) -> None:
        """A message is to leave."""
        self._meant.append(meant)
        self._send()

    def _send(self) -> None:
        waiting = min(len(self._meant) - self._sent, MAX_MESSAGES)
        if waiting and len(self._ends) < IN_FLIGHT:
            topic, partition, acks = self._target
            self.socket.sendall(produce_frame(topic, partition, _batch(waiting), acks=acks))
            self._sent += waiting
            self._ends.append(self._sent)

    def ready(self) -> None:
        answers, now = self._answers.receive()
        for _ in range(answers):
            end = self._ends.popleft()
            self._acknowledged.extend((now - meant) * 1000 for meant in self._meant[self._answered : end])
            self._answered = end
            self._send()


@cache
def _batch(messages: int) -> bytes:
    return record_batch(messages, VALUE_BYTES)


class _Consumer:
    """The fetch that waits at one broker for all partitions that it leads.

    Args:
        meant: when each message was meant to leave, by partition.
    """

    def __init__(self, address: Address, topic: str, partitions: Sequence[int], meant: Sequence[array[float]]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.latencies: array[float] = array("d")
        self._topic = topic
        self._offsets = dict.fromkeys(partitions, 0)
        self._meant = meant
        self._buffer = bytearray()

    def fetch(self) -> None:
        self.socket.sendall(fetch_frame(self._topic, self._offsets, max_bytes=MAX_BYTES, partition_max_bytes=MAX_BYTES))

    def ready(self) -> None:
        """Take in what came; a whole answer is followed by the next fetch."""
        piece = self.socket.recv(MAX_BYTES)
        if not piece:
            raise BadAnswer("the server closed the connection")
        self._buffer += piece
        if len(self._buffer) < 4 or len(self._buffer) < 4 + _I32.unpack_from(self._buffer)[0]:
            return
        now = time.perf_counter()
        for index, records in walk_partitions(memoryview(self._buffer)[4:]):
            self._take(index, records, now)
        self._buffer = bytearray()
        self.fetch()

    def _take(self, index: int, records: memoryview, now: float) -> None:
        position = 0
        while position + BATCH_HEAD.size <= len(records):
            head = BATCH_HEAD.unpack_from(records, position)
            offset, size = head[0], head[1] + 12
            if position + size > len(records):
                return
            if offset != self._offsets[index]:
                raise BadAnswer(f"partition {index} answered offset {offset}, expected {self._offsets[index]}")
            after = offset + head[12]
            self.latencies.extend((now - meant) * 1000 for meant in self._meant[index][offset:after])
            self._offsets[index] = after
            position += size


def measure(leaders: Sequence[Address], topic: str, *, acks: int, rate: int, seconds: float) -> EndToEnd:
    """Send `rate` messages a second for `seconds` to all partitions in turn, and consume them.

    Args:
        leaders: where each partition of the topic is led; the topic is empty.
    """
    wake_in_time()
    acknowledged: array[float] = array("d")
    meant: list[array[float]] = [array("d") for _ in leaders]
    lines = [_Producer(leader, topic, i, acks, meant[i], acknowledged) for i, leader in enumerate(leaders)]
    consumers = [
        _Consumer(address, topic, [p for p, at in enumerate(leaders) if at == address], meant)
        for address in dict.fromkeys(leaders)
    ]
    try:
        _run(lines, consumers, rate, int(rate * seconds))
    finally:
        for each in _all(lines, consumers):
            each.socket.close()
    consumed = array("d", sorted(latency for consumer in consumers for latency in consumer.latencies))
    return EndToEnd(array("d", sorted(acknowledged)), consumed)


def _run(lines: Sequence[_Producer], consumers: Sequence[_Consumer], rate: int, total: int) -> None:
    by_descriptor: dict[int, _Readable] = {each.socket.fileno(): each for each in _all(lines, consumers)}
    for consumer in consumers:
        consumer.fetch()
    began = time.perf_counter() + 0.01
    sent = 0
    while sum(len(consumer.latencies) for consumer in consumers) < total:
        now = time.perf_counter()
        while sent < total and began + sent / rate <= now:
            lines[sent % len(lines)].due(began + sent / rate)
            sent += 1
        wait = began + sent / rate - time.perf_counter() if sent < total else STALLED_S
        readable, _, _ = select.select(by_descriptor, (), (), max(wait, 0))
        if not readable and sent == total:
            raise BadAnswer(f"no answer for {STALLED_S:g} s")
        for descriptor in readable:
            by_descriptor[descriptor].ready()


def _all(lines: Sequence[_Producer], consumers: Sequence[_Consumer]) -> list[_Readable]:
    return [*lines, *consumers]
