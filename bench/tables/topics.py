"""Topics of rows with five columns, written as fast as the broker takes them.

A batch is one pattern of bytes. Only the digits of its ids change from one batch to the next, so that each record has its own key.
"""

from __future__ import annotations

import itertools
import json
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from struct import Struct

import numpy as np
from crc32c import crc32c

from barnabas.protocol.records.batch import Record, build_batch
from bench.servers import Server, create_topic
from bench.wire import AnswerShape, produce_frame, receive_exactly

COLUMNS = "id bigint, name text, price double, at timestamptz, active boolean"
NAMES = ["id", "name", "price", "at", "active"]
FIRST_ID = 1_000_000_000  # all ids have the same number of digits
BATCH_RECORDS = 5_000
RECORD_BYTES = 116  # of one row in the log, about
IN_FLIGHT = 4
NOW_MS = int(time.time() * 1000)  # retention would remove older records meanwhile
_CRC_AT, _CRC_FROM = 17, 21
_ID = re.compile(str(FIRST_ID).encode())


def row(number: int, id_: int = FIRST_ID) -> bytes:
    """A row as JSON."""
    return json.dumps(
        {
            "id": id_,
            "name": f"customer {number % 997}",
            "price": round(number * 1.37 % 1000, 2),
            "at": f"2026-01-01T{number % 24:02}:{number % 60:02}:00Z",
            "active": number % 3 == 0,
        },
        separators=(",", ":"),
    ).encode()


def batches(count: int, keys: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Batches with `count` rows, and the number of rows in each.

    Args:
        keys: so many ids in turn; None: each row has an id of its own.
    """
    for first in range(0, count, BATCH_RECORDS):
        size = min(BATCH_RECORDS, count - first)
        pattern = _pattern(size)
        numbers = np.arange(first, first + size, dtype=np.int64)
        yield pattern.batch(numbers if keys is None else numbers % keys), size


class _Pattern:
    """A batch whose ids can be replaced."""

    def __init__(self, size: int) -> None:
        key = str(FIRST_ID).encode()
        self._bytes = bytearray(build_batch([Record(0, NOW_MS, key, row(number)) for number in range(size)]))
        at = np.array([found.start() for found in _ID.finditer(self._bytes)], np.int64)
        assert len(at) == 2 * size, "an id in each key and each value"
        self._places = at[:, None] + np.arange(len(key))
        self._powers = 10 ** np.arange(len(key) - 1, -1, -1, dtype=np.int64)

    def batch(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bytes:
        digits = ((FIRST_ID + numbers)[:, None] // self._powers % 10 + ord("0")).astype(np.uint8)
        np.frombuffer(self._bytes, np.uint8)[self._places] = np.repeat(digits, 2, axis=0)
        Struct(">I").pack_into(self._bytes, _CRC_AT, crc32c(memoryview(self._bytes)[_CRC_FROM:]))
        return bytes(self._bytes)


@cache
def _pattern(size: int) -> _Pattern:
    return _Pattern(size)


def fill(server: Server, topic: str, count: int, *, partitions: int = 1, keys: int | None = None) -> None:
    """Make a topic of `count` rows; its batches go to the partitions in turn."""
    create_topic(server, topic, partitions)
    send(server, topic, (batch for batch, _ in batches(count, keys)), partitions)


def fill_with(server: Server, topic: str, values: Sequence[bytes], count: int) -> None:
    """Make a topic of `count` records without keys, with these values in turn."""
    create_topic(server, topic, 1)
    turns = itertools.cycle(values)
    sizes = (min(BATCH_RECORDS, count - first) for first in range(0, count, BATCH_RECORDS))
    send(server, topic, (build_batch([Record(0, NOW_MS, None, next(turns)) for _ in range(size)]) for size in sizes))


def send(server: Server, topic: str, batches: Iterable[bytes], partitions: int = 1) -> None:
    """Write batches in turn; a few are on their way at once. Raises BadAnswer."""
    shape, waiting = AnswerShape(topic, 1), 0
    with socket.create_connection(server.address) as line:
        for number, batch in enumerate(batches):
            if waiting == IN_FLIGHT:
                shape.check(memoryview(receive_exactly(line, shape.size)), 1, 0)
                waiting -= 1
            line.sendall(produce_frame(topic, number % partitions, batch, acks=1))
            waiting += 1
        for _ in range(waiting):
            shape.check(memoryview(receive_exactly(line, shape.size)), 1, 0)
