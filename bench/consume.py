"""Reads a topic to its end with raw fetches, one request in flight, like a consumer with the usual limits.

It reads only the data that a consumer needs to continue. All batches of the topic have the same size. So it checks only the
first batch of a piece, and computes the next offset from the number of whole batches.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from struct import Struct
from typing import Any

from bench.load import Connect, Load
from bench.wire import BATCH_HEAD, BadAnswer, FetchLine

MAX_BYTES = 50 * 1024 * 1024  # Kafka's default for fetch.max.bytes
PARTITION_MAX_BYTES = 1024 * 1024  # Kafka's default for max.partition.fetch.bytes
_I32 = Struct(">i")
_PARTITION = Struct(">ihqqq")  # index, error code, high watermark, last stable offset, log start offset


class _Reader:
    """One consumer of all partitions of a topic."""

    def __init__(
        self, line: Any, topic: str, partitions: int, records_per_batch: int, batch_bytes: int, partition_max_bytes: int
    ) -> None:
        self._line = line
        self._request = FetchLine(topic, partitions, max_bytes=MAX_BYTES, partition_max_bytes=partition_max_bytes)
        self._records_per_batch = records_per_batch
        self._batch_bytes = batch_bytes
        self._buffer = memoryview(bytearray(_I32.size + (partitions + 1) * (partition_max_bytes + batch_bytes)))
        self.offsets = dict.fromkeys(range(partitions), 0)
        self.requests = self.records = 0

    def fetch(self) -> None:
        """Send one request for all partitions, and read its answer."""
        self._line.sendall(self._request.frame(self.offsets.values()))
        self.requests += 1
        filled = self._receive(0, _I32.size)
        end = _I32.size + _I32.unpack_from(self._buffer)[0]
        if not _I32.size <= end <= len(self._buffer) or filled > end:
            raise BadAnswer(f"an answer of {end} bytes, {filled} of them at once, where {len(self._buffer)} fit")
        self._receive(filled, end)
        for index, records in walk_partitions(self._buffer[_I32.size : end]):
            self._take(index, records)

    def _receive(self, filled: int, least: int) -> int:
        """Receive until the answer has at least `least` bytes; returns the number of received bytes."""
        while filled < least:
            got = self._line.recv_into(self._buffer[filled:])
            if not got:
                raise BadAnswer("the server closed the connection")
            filled += got
        return filled

    def _take(self, index: int, records: memoryview) -> None:
        batches = len(records) // self._batch_bytes
        if batches:
            head = BATCH_HEAD.unpack_from(records)
            if head[0] != self.offsets[index] or head[1] + 12 != self._batch_bytes or head[12] != self._records_per_batch:
                raise BadAnswer(f"partition {index} answered a batch at {head[0]}, expected one at {self.offsets[index]}")
            records_read = batches * self._records_per_batch
            self.offsets[index] += records_read
            self.records += records_read


def walk_partitions(answer: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Each partition of a fetch answer (without the leading size), with its records; raises BadAnswer for an error of any
    partition."""
    for _, index, records in walk_topics(answer):
        yield index, records


def walk_topics(answer: memoryview) -> Iterator[tuple[str, int, memoryview]]:
    """Like `walk_partitions`, with the topic of each partition."""
    error = int.from_bytes(answer[9:11], "big")  # after the header and the throttle time
    if error:
        raise BadAnswer(f"fetch answered with error code {error}")
    topics, position = read_varint(answer, 15)  # after the session id
    for _ in range(topics - 1):
        length, position = read_varint(answer, position)
        topic = str(answer[position : position + length - 1], "utf-8")
        partitions, position = read_varint(answer, position + length - 1)
        for _ in range(partitions - 1):
            index, error, *_ = _PARTITION.unpack_from(answer, position)
            if error:
                raise BadAnswer(f"fetch of partition {index} answered with error code {error}")
            aborted, position = read_varint(answer, position + _PARTITION.size)
            if aborted > 1:
                raise BadAnswer("aborted transactions where there are none")
            length, position = read_varint(answer, position + 4)  # after the preferred read replica
            length = max(length - 1, 0)
            yield topic, index, answer[position : position + length]
            position += length
            if answer[position]:
                raise BadAnswer(f"fetch of partition {index} answered with tagged fields")
            position += 1
        position += 1


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def consume(
    address: tuple[str, int],
    topic: str,
    *,
    partitions: int,
    records: int,
    records_per_batch: int,
    batch_bytes: int,
    bytes_per_s: float = float("inf"),
    partition_max_bytes: int = PARTITION_MAX_BYTES,
    connect: Connect = socket.create_connection,
) -> Load:
    """Read all `records` records of a topic from the start, at most at `bytes_per_s`."""
    with connect(address) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = _Reader(line, topic, partitions, records_per_batch, batch_bytes, partition_max_bytes)
        began = time.perf_counter()
        while reader.records < records:
            reader.fetch()
            read = reader.records // records_per_batch * batch_bytes
            ahead_s = began + read / bytes_per_s - time.perf_counter()
            if ahead_s > 0:  # a sleep of 0 s takes 70 us, a third of a round trip
                time.sleep(ahead_s)
        return Load(reader.requests, reader.records, time.perf_counter() - began)
