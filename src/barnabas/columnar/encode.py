"""Encodes Arrow columns to record batches and chooses the partition of each row, without a Python object for each row.

Owns the batches that are being filled. Depends on neither Spark nor sockets; finished batches go to a callback.

Rules
  1. A row with a partition goes to it. A row with a key goes to the partition that Kafka's default partitioner chooses
     (murmur2). Other rows go to one partition after the other, STICKY_ROWS at a time.
  2. Rows of one partition keep their order.
  3. A record above the limit of a request raises `RecordTooLarge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.errors import BarnabasError
from barnabas.lazy_module import LazyModule
from barnabas.protocol.records.batch_header import HEADER_SIZE

if TYPE_CHECKING:
    from barnabas.protocol.records import encode_kernels as k
else:
    k = LazyModule("barnabas.protocol.records.encode_kernels")

STICKY_ROWS = 1_000
FIRST_ROOM = 16 << 10  # initial bytes of a batch; it grows as needed
SMALLEST_BATCH, LARGEST_BATCH = 16 << 10, 1_000_000  # the largest batch; a topic's default limit is 1,048,588
OPEN_BYTES = 64 << 20  # approximate bytes of all batches that one task fills at a time

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Take = Callable[
    ..., None
]  # partition, memory with header and records, number of records; if rows have times, base and greatest one
NO_BYTES, NO_INTS, NO_LONGS = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64)


class RecordTooLarge(BarnabasError):
    """A row that is too large for any batch."""

    def __init__(self, topic: str, size: int, limit: int) -> None:
        super().__init__(topic, size, limit)
        self.topic, self.size, self.limit = topic, size, limit

    def __str__(self) -> str:
        return f"could not write to {self.topic}: a record of {self.size} bytes is too large (max.request.size is {self.limit})"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of text or bytes in the form of the kernels; all empty for a missing column."""

    ends: Ints = field(default_factory=lambda: NO_INTS)
    data: Bytes = field(default_factory=lambda: NO_BYTES)
    valid: Bytes = field(default_factory=lambda: NO_BYTES)

    @classmethod
    def of(cls, array: Any) -> Column:
        plain = array if array.type in (pa.binary(), pa.string()) else array.cast(pa.binary())
        _, ends, data = plain.buffers()
        if ends is None:
            return cls(np.zeros(1, np.int32))
        return cls(
            np.frombuffer(ends, np.int32)[plain.offset : plain.offset + len(plain) + 1],
            NO_BYTES if data is None else np.frombuffer(data, np.uint8),
            _valid(plain),
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of one Arrow batch."""

    count: int
    keys: Column
    values: Column
    header_lists: Column
    header_names: Column
    header_values: Column
    times: Longs

    @classmethod
    def of(cls, batch: pa.RecordBatch, times: Longs = NO_LONGS) -> Rows:
        names = batch.schema.names
        keys = Column.of(batch.column("key")) if "key" in names else Column()
        lists = Column(), Column(), Column()
        if "headers" in names and batch.column("headers").null_count < batch.num_rows:
            lists = _headers(batch.column("headers"))
        return cls(batch.num_rows, keys, Column.of(batch.column("value")), *lists, times)


def _valid(array: Any) -> Bytes:
    if array.null_count == 0:
        return NO_BYTES
    return np.asarray(array.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False), np.uint8)


def _headers(array: Any) -> tuple[Column, Column, Column]:
    items = array.values
    ends = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int32)
    return Column(ends, NO_BYTES, _valid(array)), Column.of(items.field("key")), Column.of(items.field("value"))


class _OpenBatch:
    """A batch that is being filled: HEADER_SIZE bytes for the header, then records."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = np.empty(min(FIRST_ROOM, limit), np.uint8)
        self._state = np.zeros(k.STATE_SIZE, np.int64)
        self._state[k.POSITION] = HEADER_SIZE

    @property
    def count(self) -> int:
        return int(self._state[k.DELTA])

    def fill(self, rows: Rows, which: Longs) -> int:
        """Append rows of `which`; returns how many fitted. After 0 the caller must take the batch, or the row is too large."""
        taken = 0
        encode = k.encode_timed_records if len(rows.times) else k.encode_records
        while taken < len(which):
            encode(
                rows.keys.ends, rows.keys.data, rows.keys.valid, rows.values.ends, rows.values.data, rows.values.valid,
                rows.header_lists.ends, rows.header_lists.valid, rows.header_names.ends, rows.header_names.data,
                rows.header_values.ends, rows.header_values.data, rows.header_values.valid,
                rows.times, which[taken:], self._room, len(self._room), self._state,
            )  # fmt: skip
            taken += int(self._state[k.TAKEN])
            if taken < len(which) and not self._grow(int(self._state[k.POSITION] + self._state[k.NEEDED])):
                break
        return taken

    def _grow(self, needed: int) -> bool:
        if needed > self._limit:
            return False
        grown = np.empty(min(self._limit, max(4 * len(self._room), needed)), np.uint8)
        position = int(self._state[k.POSITION])
        grown[:position] = self._room[:position]
        self._room = grown
        return True

    @property
    def missing(self) -> int:
        """The size in bytes of the row that did not fit."""
        return int(self._state[k.NEEDED])

    @property
    def times(self) -> tuple[int, int]:
        """The time of the first record, and the greatest one."""
        return int(self._state[k.BASE_TIME]), int(self._state[k.MAX_TIME])

    def take(self) -> tuple[memoryview, int]:
        """The batch and its number of records; the builder is empty afterwards, and its memory is reused."""
        result = memoryview(self._room.data)[: int(self._state[k.POSITION])].cast("B"), self.count
        self._state[:] = 0
        self._state[k.POSITION] = HEADER_SIZE
        return result


@dataclass(frozen=True, slots=True)
class TopicShape:
    """The limits of batches for a topic: the number of partitions, and the bytes of a batch."""

    partitions: int
    batch_bytes: int = LARGEST_BATCH


class RecordEncoder:
    """Fills batches for partitions and passes on full ones.

    Args:
        shape_of: called once for each topic.
        take: receives each batch, whose memory is reused afterwards.
        max_record_bytes: a larger record is refused; a record above the batch limit gets a batch of its own.
        first: the first partition for rows without a key.
        now_ms: the time of rows without one. With it, rows have the times of the column `timestamp`, and `take` gets those of a batch.
    """

    def __init__(
        self, shape_of: Callable[[str], TopicShape], take: Take, *, max_record_bytes: int = LARGEST_BATCH, first: int = 0,
        now_ms: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        self._shape_of = shape_of
        self._take = take
        self._max_record_bytes = max_record_bytes
        self._dealt = first
        self._now_ms = now_ms
        self._shapes: dict[str, TopicShape] = {}
        self._open: dict[tuple[str, int], _OpenBatch] = {}

    def write(self, batch: pa.RecordBatch, topic: str | None) -> None:
        """Add the rows of a batch with the column `value` and optionally `key`, `headers`, `partition`, `topic`.

        Args:
            topic: of all rows; if it is None, the column `topic` has it, without nulls.
        """
        if not batch.num_rows:
            return
        rows = Rows.of(batch, NO_LONGS if self._now_ms is None else _times(batch, self._now_ms()))
        given = _given_partitions(batch)
        hashes = np.where(given < 0, np.int32(-1), np.int32(0))
        k.hash_keys(rows.keys.ends, rows.keys.data, rows.keys.valid, hashes)
        for name, which in _by_topic(batch, topic):
            self._write_topic(name, rows, (given, hashes) if which is None else (given[which], hashes[which]), which)

    def finish(self) -> None:
        """Pass on the batches that are not full."""
        for place, batch in self._open.items():
            self._hand_on(place, batch)

    def _write_topic(self, topic: str, rows: Rows, places: tuple[Ints, Ints], which: Longs | None) -> None:
        """Add the rows of one topic; `places` holds the given partitions and the hashes of the keys, -1 for none."""
        if topic not in self._shapes:
            self._shapes[topic] = self._shape_of(topic)
        count = self._shapes[topic].partitions
        given, hashes = places
        chosen = np.where((given < 0) & (hashes >= 0), hashes % count, given)
        loose = np.flatnonzero(chosen < 0)
        if len(loose):
            chosen[loose] = (self._dealt + np.arange(len(loose)) // STICKY_ROWS) % count
            self._dealt = (self._dealt + (len(loose) - 1) // STICKY_ROWS + 1) % count
        for partition, part in _groups(chosen):
            self._fill((topic, partition), rows, part if which is None else which[part])

    def _fill(self, place: tuple[str, int], rows: Rows, which: Longs) -> None:
        batch = self._open.get(place)
        if batch is None:
            batch = self._open[place] = _OpenBatch(self._limit_of(place[0]))
        position = 0
        while True:
            position += batch.fill(rows, which[position:])
            if position == len(which):
                return
            if not batch.count:
                if batch.missing + HEADER_SIZE > self._max_record_bytes:
                    raise RecordTooLarge(place[0], batch.missing, self._max_record_bytes)
                batch = self._open[place] = _OpenBatch(batch.missing + HEADER_SIZE)
            else:
                self._hand_on(place, batch)

    def _limit_of(self, topic: str) -> int:
        share = OPEN_BYTES // sum(shape.partitions for shape in self._shapes.values())
        return min(self._shapes[topic].batch_bytes, self._max_record_bytes, LARGEST_BATCH, max(SMALLEST_BATCH, share))

    def _hand_on(self, place: tuple[str, int], batch: _OpenBatch) -> None:
        if batch.count:
            times = batch.times
            room, count = batch.take()
            if self._now_ms is None:
                self._take(place, room, count)
            else:
                self._take(place, room, count, times)


def _times(batch: pa.RecordBatch, now_ms: int) -> Longs:
    """The time of each row in milliseconds."""
    if "timestamp" not in batch.schema.names:
        return np.full(batch.num_rows, now_ms, np.int64)
    column: Any = batch.column("timestamp")
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    given = column.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64()).fill_null(now_ms)
    return np.ascontiguousarray(given.to_numpy(zero_copy_only=False), np.int64)


def _given_partitions(batch: pa.RecordBatch) -> Ints:
    """The partition of each row, -1 if none is given."""
    if "partition" not in batch.schema.names:
        return np.full(batch.num_rows, -1, np.int32)
    column: Any = batch.column("partition")
    given = column.to_numpy(zero_copy_only=False)
    return np.where(np.isnan(given), -1, given).astype(np.int32) if column.null_count else given.astype(np.int32)


def _by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, Longs | None]]:
    """Each topic and its rows (None: all of them)."""
    if topic is not None:
        yield topic, None
        return
    encoded: Any = batch.column("topic").dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], None
        return
    for index, rows in _groups(encoded.indices.to_numpy(zero_copy_only=False)):
        yield names[index], rows


def _groups(values: npt.NDArray[Any]) -> Iterator[tuple[int, Longs]]:
    """Each value of zero or more with its positions, in order."""
    if len(values) and values.max() < 1 << 15:
        values = values.astype(np.int16)  # numpy sorts this type by radix, several times as fast
    order = np.argsort(values, kind="stable").astype(np.int64, copy=False)
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield int(ordered[start]), order[start:end]
