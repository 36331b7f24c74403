"""From the moment at which a message was meant to leave a producer to the moment at which a consumer has it.

One thread is both: it sends one-record requests on a schedule made beforehand, over `CONNECTIONS` connections, each to the leader of its
partition, and keeps one fetch waiting at every broker. The n-th message of a partition has the offset n, so its time follows from the
offsets that a fetch brings. Answers to the producer are checked and timed as well.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

from bench.consume import walk_partitions
from bench.latency import STALLED_S, Line, percentile, wake_in_time
from bench.wire import BATCH_HEAD, BadAnswer, fetch_frame

CONNECTIONS = 9
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


class _Producer(Line):
    """The connection to the leader of one partition."""

    def __init__(self, address: Address, topic: str, partition: int, batch: bytes, acks: int, latencies: array[float]) -> None:
        super().__init__(address, topic, partition, batch, acks)
        self._latencies = latencies

    def ready(self) -> None:
        self.receive(self._latencies)


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
            self.latencies.append((now - self._meant[index][offset]) * 1000)
            self._offsets[index] += 1
            position += size


def measure(leaders: Sequence[Address], topic: str, *, batch: bytes, acks: int, rate: int, seconds: float) -> EndToEnd:
    """Send `rate` messages a second for `seconds` to all partitions in turn, and consume them.

    Args:
        leaders: where each partition of the topic is led; the topic is empty.
        batch: of one record.
    """
    wake_in_time()
    acknowledged: array[float] = array("d")
    meant: list[array[float]] = [array("d") for _ in leaders]
    lines = [
        _Producer(leaders[i % len(leaders)], topic, i % len(leaders), batch, acks, acknowledged) for i in range(CONNECTIONS)
    ]
    consumers = [
        _Consumer(address, topic, [p for p, at in enumerate(leaders) if at == address], meant) for address in dict.fromkeys(leaders)
    ]
    try:
        _run(lines, consumers, meant, rate, int(rate * seconds))
    finally:
        for each in [*lines, *consumers]:
            each.socket.close()
    consumed = array("d", sorted(latency for consumer in consumers for latency in consumer.latencies))
    return EndToEnd(array("d", sorted(acknowledged)), consumed)


def _run(lines: Sequence[_Producer], consumers: Sequence[_Consumer], meant: Sequence[array[float]], rate: int, total: int) -> None:
    by_descriptor: dict[int, _Readable] = {each.socket.fileno(): each for each in [*lines, *consumers]}
    for consumer in consumers:
        consumer.fetch()
    began = time.perf_counter() + 0.01
    sent = 0
    while sum(len(consumer.latencies) for consumer in consumers) < total:
        now = time.perf_counter()
        while sent < total and began + sent / rate <= now:
            line = sent % len(lines)
            meant[line % len(meant)].append(began + sent / rate)
            lines[line].send(began + sent / rate)
            sent += 1
        wait = began + sent / rate - time.perf_counter() if sent < total else STALLED_S
        readable, _, _ = select.select(by_descriptor, (), (), max(wait, 0))
        if not readable and sent == total:
            raise BadAnswer(f"no answer for {STALLED_S:g} s")
        for descriptor in readable:
            by_descriptor[descriptor].ready()
