"""The passes over the records in plain Python: for installations without numpy and numba, and for small logs.

How it works: a dict from key to offset; one loop reads the records, and only the fields that it needs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.record import records_of
from barnabas.protocol.records.varint import MalformedVarint, read_varlong, varint
from barnabas.storage.compaction.batch_retention import BatchRetention
from barnabas.storage.compaction.engine import CorruptBatch
from barnabas.tuples import new_tuple

BYTES_PER_KEY = 200  # dict entry, key object and offset object by sys.getsizeof, at the worst fill of the dict
NOTHING_MAPPED = 2**63 - 1
FILTERED = (BatchRetention.FILTER, BatchRetention.FILTER_KEEP_HEADER, BatchRetention.KEEP_WITH_HORIZON)


class PlainBatches:
    """See `Batches`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.positions: list[int] = []
        self.headers: list[BatchHeader] = []
        self.sizes: list[int] = []
        self.last_offsets: list[int] = []
        position, size, unpack = 0, len(data), HEADER.unpack_from
        while position + HEADER_SIZE <= size:
            header = new_tuple(BatchHeader, unpack(data, position))
            length = header.batch_length + LENGTH_OVERHEAD
            if length < HEADER_SIZE or position + length > size:
                break
            self.positions.append(position)
            self.headers.append(header)
            self.sizes.append(length)
            self.last_offsets.append(header.base_offset + header.last_offset_delta)
            position += length
        self.end = position
        self.max_timestamps = [header.max_timestamp for header in self.headers]

    def __len__(self) -> int:
        return len(self.headers)

    def header(self, row: int) -> BatchHeader:
        return self.headers[row]

    def of_producers(self) -> Sequence[int]:
        return [row for row, header in enumerate(self.headers) if header.producer_id >= 0 or header.attributes & CONTROL_BIT]


class PlainKeys:
    """See `KeyMap`.

    After all keys were added, the sorted last offsets (`kept_of`) tell for most batches how many records stay, without reading them.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._room = memory_bytes
        self.offsets: dict[bytes, int] = {}
        self._first_offset = NOTHING_MAPPED
        self._has_tombstones = False
        self._in_order: list[int] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, batches: PlainBatches, skipped: bytearray, from_offset: int) -> int:
        offsets = self.offsets
        self._first_offset = from_offset
        for row, header in enumerate(batches.headers):
            if skipped[row] or batches.last_offsets[row] < from_offset:
                continue
            if offsets and self._room <= 0:
                return row
            check_crc(batches.data, batches.positions[row], header)
            records = read_columns(batches, row)
            at = [header.base_offset + delta for delta in records.offset_deltas]
            first = bisect_left(at, from_offset)
            before = len(offsets)
            offsets.update(zip(records.keys[first:], at[first:], strict=True))  # type: ignore[arg-type]  # may include a null key
            offsets.pop(None, None)  # type: ignore[call-overload]  # drops the null key
            if len(offsets) > before:
                self._room -= (len(offsets) - before) * (BYTES_PER_KEY + max(len(key) for key in records.keys if key is not None))
            self._has_tombstones = self._has_tombstones or not all(records.have_value)
        return len(batches)

    def kept_of(self, header: BatchHeader, latest_offset: int) -> int | None:
        """How many records of a batch stay, all of them with values; None if the records must be read."""
        last_offset = header.base_offset + header.last_offset_delta
        if header.base_offset < self._first_offset or last_offset > latest_offset or header.attributes & DELETE_HORIZON_BIT:
            return None
        if self._in_order is None:
            self._in_order = sorted(self.offsets.values())
        first = bisect_left(self._in_order, header.base_offset)
        count = bisect_right(self._in_order, last_offset, first) - first
        is_told = not count or (count == header.records_count and not self._has_tombstones)
        return count if is_told else None


class Columns(NamedTuple):
    """The records of a batch: the end of each in the uncompressed `data`, and the fields that the cleaning needs."""

    data: bytes
    ends: list[int]
    offset_deltas: list[int]
    keys: list[bytes | None]
    have_value: list[bool]


class PlainFilteredRecords:
    """See `FilteredRecords`."""

    def __init__(self, rows: int) -> None:
        self.kept = [0] * rows
        self.counts = [0] * rows
        self.has_tombstones = [0] * rows
        self.max_timestamps = [0] * rows
        self._records: dict[int, tuple[BatchHeader, bytes, list[Kept]]] = {}

    def count(self, row: int, header: BatchHeader, kept: int) -> None:
        """Set the number of records that stay, if these are all records of a batch or none."""
        self.kept[row], self.counts[row] = kept, header.records_count

    def set(self, row: int, header: BatchHeader, records: Columns, stays: list[int]) -> None:
        """Set the records of a batch that stay, by their indexes."""
        self.count(row, header, len(stays))
        if stays:
            kept = [_read_kept(records, index) for index in stays]
            self.has_tombstones[row] = not all(records.have_value[index] for index in stays)
            newest = header.base_timestamp + max(record.time_delta for record in kept)
            self.max_timestamps[row] = header.max_timestamp if header.has_log_append_time else newest
            self._records[row] = header, records.data, kept

    def body(self, row: int, base_timestamp: int) -> bytes:
        header, data, kept = self._records[row]
        if base_timestamp == header.base_timestamp:
            return b"".join([data[record.start : record.end] for record in kept])
        shift = header.base_timestamp - base_timestamp
        parts: list[bytes] = []
        for record in kept:
            body = data[record.delta_at - record.head_bytes : record.delta_at - record.head_bytes + 1]
            body += varint(record.time_delta + shift) + data[record.delta_at : record.end]
            parts += (varint(len(body)), body)
        return b"".join(parts)


class Kept(NamedTuple):
    """A record and its place in the uncompressed records of its batch: bytes [start, end). Its offset delta is at `delta_at`, which is
    `head_bytes` after the attributes."""

    start: int
    end: int
    delta_at: int
    head_bytes: int
    time_delta: int


class PlainEngine:
    """See `Engine`."""

    def scan(self, data: bytes) -> PlainBatches:
        return PlainBatches(data)

    def new_map(self, memory_bytes: int, load_factor: float) -> PlainKeys:
        return PlainKeys(memory_bytes)

    def filter_records(
        self, batches: PlainBatches, retentions: bytearray, keys: PlainKeys, latest_offset: int, expired_ms: int
    ) -> PlainFilteredRecords:
        filtered = PlainFilteredRecords(len(batches))
        last_of = keys.offsets.get
        for row, header in enumerate(batches.headers):
            retention = retentions[row]
            if retention not in FILTERED:
                continue
            keeps_all = retention == BatchRetention.KEEP_WITH_HORIZON
            told = None if keeps_all else keys.kept_of(header, latest_offset)
            if told is not None:
                filtered.count(row, header, told)
                continue
            records = read_columns(batches, row)
            if keeps_all:
                filtered.set(row, header, records, list(range(len(records.ends))))
                continue
            horizon = header.delete_horizon_ms
            keeps_tombstones = horizon is None or expired_ms < horizon
            at = [header.base_offset + delta for delta in records.offset_deltas]
            stays = [
                index
                for index, (offset, key, has_value) in enumerate(zip(at, records.keys, records.have_value, strict=True))
                if offset > latest_offset or (key is not None and offset >= last_of(key, -1) and (has_value or keeps_tombstones))
            ]
            filtered.set(row, header, records, stays)
        return filtered


def check_crc(data: bytes, position: int, header: BatchHeader) -> None:
    if data[position + MAGIC_POSITION] != MAGIC:
        raise CorruptBatch(position, f"a batch of format {data[position + MAGIC_POSITION]}, only format {MAGIC} can be compacted")
    if crc32c(memoryview(data)[position + CRC_START : position + header.size]) != header.crc:
        raise CorruptBatch(position, "the batch's CRC does not match")


def unfold(data: bytes, position: int, header: BatchHeader) -> bytes | bytearray:
    """The uncompressed records of the batch at `position`."""
    if not header.attributes & COMPRESSION_MASK:
        return data[position + HEADER_SIZE : position + header.size]
    if not header.records_count:
        return b""
    try:
        return records_of(data, position, header)
    except KafkaError as error:
        raise CorruptBatch(position, error.message or error.code.name) from error


def read_columns(batches: PlainBatches, row: int) -> Columns:
    """The records of a batch.

    One loop reads them, without a call for short numbers, because it runs for every record.
    """
    where = batches.positions[row]
    data = bytes(unfold(batches.data, where, batches.headers[row]))
    ends: list[int] = []
    offset_deltas: list[int] = []
    keys: list[bytes | None] = []
    have_value: list[bool] = []
    end = 0
    try:
        for _ in range(batches.headers[row].records_count):
            size = data[end]  # size of the record; every number here is the raw zigzag value: doubled, and odd if negative
            at = end + 1
            if size >= 0x80:
                high = data[at]
                size, at = (size & 0x7F | high << 7, at + 1) if high < 0x80 else _doubled(data, end)
            end = at + (size >> 1)
            at += 1
            while data[at] >= 0x80:  # skip the timestamp delta
                at += 1
            at += 1
            delta = data[at]
            if delta < 0x80:
                at += 1
            else:
                high = data[at + 1]
                delta, at = (delta & 0x7F | high << 7, at + 2) if high < 0x80 else _doubled(data, at)
            key_size = data[at]
            if key_size < 0x80:
                at += 1
            else:
                key_size, at = _doubled(data, at)
            if key_size & 1:
                keys.append(None)
            else:
                key_end = at + (key_size >> 1)
                keys.append(data[at:key_end])
                at = key_end
            if size & 1 or at >= end:
                raise CorruptBatch(where, "a record that is none")
            have_value.append(not data[at] & 1)
            ends.append(end)
            offset_deltas.append(delta >> 1 if not delta & 1 else -(delta + 1 >> 1))
    except (IndexError, MalformedVarint):
        raise CorruptBatch(where, "a number that does not end") from None
    if end != len(data):
        raise CorruptBatch(where, "more bytes than its records take")
    return Columns(data, ends, offset_deltas, keys, have_value)


def _doubled(data: bytes, position: int) -> tuple[int, int]:
    """A number as it is written, and the position after it."""
    number, position = read_varlong(data, position)
    return (number << 1) ^ (number >> 63), position


def _read_kept(records: Columns, index: int) -> Kept:
    start = records.ends[index - 1] if index else 0
    _, at = read_varlong(records.data, start)
    time_delta, delta_at = read_varlong(records.data, at + 1)
    return Kept(start, records.ends[index], delta_at, delta_at - at, time_delta)
