"""The passes over the records in plain Python: for where numpy and numba are not installed, and for small logs.

How it works: a dict from key to offset; records are walked over in one loop that takes no more out of them than it must.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from barnabas.errors import KafkaError
from barnabas.protocol.records.header import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    read_header,
)
from barnabas.protocol.records.record import records_of
from barnabas.protocol.records.varint import MalformedVarint, read_varlong, varint
from barnabas.storage.compaction.engine import CorruptBatch
from barnabas.storage.compaction.verdicts import Verdict

BYTES_PER_KEY = 200  # of a dict's entry, the key's and the offset's objects; sys.getsizeof of each, at the worst fill
JUDGED = (Verdict.FILTER, Verdict.FILTER_KEEP_HEADER, Verdict.KEEP_WITH_HORIZON)


class PlainBatches:
    """See `Batches`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.positions: list[int] = []
        self.headers: list[BatchHeader] = []
        position, size = 0, len(data)
        while position + HEADER_SIZE <= size:
            header = read_header(data, position)
            if header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD or position + header.size > size:
                break
            self.positions.append(position)
            self.headers.append(header)
            position += header.size
        self.end = position
        self.sizes = [header.batch_length + LENGTH_OVERHEAD for header in self.headers]
        self.last_offsets = [header.base_offset + header.last_offset_delta for header in self.headers]
        self.max_timestamps = [header.max_timestamp for header in self.headers]

    def __len__(self) -> int:
        return len(self.headers)

    def header(self, row: int) -> BatchHeader:
        return self.headers[row]

    def of_producers(self) -> Sequence[int]:
        return [row for row, header in enumerate(self.headers) if header.producer_id >= 0 or header.is_control]


class PlainKeys:
    """See `KeyMap`."""

    def __init__(self, memory_bytes: int) -> None:
        self._room = memory_bytes
        self.offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, batches: PlainBatches, skipped: bytearray, from_offset: int) -> int:
        offsets = self.offsets
        for row, header in enumerate(batches.headers):
            if skipped[row] or batches.last_offsets[row] < from_offset:
                continue
            if offsets and self._room <= 0:
                return row
            check_crc(batches.data, batches.positions[row], header)
            before = len(offsets)
            for record in walk(batches, row):
                offset = header.base_offset + record.offset_delta
                if record.key is not None and offset >= from_offset:
                    offsets[record.key] = offset
                    self._room -= len(record.key)
            self._room -= (len(offsets) - before) * BYTES_PER_KEY
        return len(batches)


class Walked(NamedTuple):
    """A record and where it lies in the uncompressed records of its batch: bytes [start, end), the offset delta at `delta_at`."""

    start: int
    end: int
    delta_at: int
    attributes: int
    time_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


class PlainJudged:
    """See `Judged`."""

    def __init__(self, rows: int) -> None:
        self.kept = [0] * rows
        self.counts = [0] * rows
        self.has_tombstones = [0] * rows
        self.max_timestamps = [0] * rows
        self._records: dict[int, tuple[BatchHeader, bytes | bytearray, list[Walked]]] = {}

    def set(self, row: int, header: BatchHeader, data: bytes | bytearray, kept: list[Walked]) -> None:
        self.kept[row], self.counts[row] = len(kept), header.records_count
        self._records[row] = header, data, kept
        if kept:
            self.has_tombstones[row] = any(not record.has_value for record in kept)
            newest = header.base_timestamp + max(record.time_delta for record in kept)
            self.max_timestamps[row] = header.max_timestamp if header.has_log_append_time else newest

    def body(self, row: int, base_timestamp: int) -> bytes:
        header, data, kept = self._records[row]
        if base_timestamp == header.base_timestamp:
            return b"".join([data[record.start : record.end] for record in kept])
        shift = header.base_timestamp - base_timestamp
        parts: list[bytes] = []
        for record in kept:
            body = bytes([record.attributes]) + varint(record.time_delta + shift) + data[record.delta_at : record.end]
            parts += (varint(len(body)), body)
        return b"".join(parts)


class PlainEngine:
    """See `Engine`."""

    def scan(self, data: bytes) -> PlainBatches:
        return PlainBatches(data)

    def new_map(self, memory_bytes: int, load_factor: float, most_keys: int) -> PlainKeys:
        return PlainKeys(memory_bytes)

    def judge(self, batches: PlainBatches, verdicts: bytearray, keys: PlainKeys, latest_offset: int, now_ms: int) -> PlainJudged:
        judged = PlainJudged(len(batches))
        last_of = keys.offsets.get
        for row, header in enumerate(batches.headers):
            verdict = verdicts[row]
            if verdict not in JUDGED:
                continue
            data = unfold(batches.data, batches.positions[row], header)
            records = walk(batches, row, data)
            if verdict != Verdict.KEEP_WITH_HORIZON:
                horizon = header.delete_horizon_ms
                keeps_tombstones = horizon is None or now_ms < horizon
                base = header.base_offset
                records = [
                    record
                    for record in records
                    if base + record.offset_delta > latest_offset
                    or (
                        record.key is not None
                        and base + record.offset_delta >= last_of(record.key, -1)
                        and (keeps_tombstones or record.has_value)
                    )
                ]
            judged.set(row, header, data, records)
        return judged


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


def walk(batches: PlainBatches, row: int, data: bytes | bytearray | None = None) -> list[Walked]:
    """The records of a batch; `data` are its uncompressed records if they are at hand."""
    data = unfold(batches.data, batches.positions[row], batches.headers[row]) if data is None else data
    found: list[Walked] = []
    add, position, end = found.append, 0, 0
    try:
        for _ in range(batches.headers[row].records_count):
            start = end
            size, position = _varint(data, start)
            end = position + size
            if size < 0 or end > len(data):
                raise CorruptBatch(batches.positions[row], "a record longer than its batch")
            attributes = data[position]
            time_delta, delta_at = _varint(data, position + 1)
            offset_delta, position = _varint(data, delta_at)
            size, position = _varint(data, position)
            key = None
            if size >= 0:
                key = bytes(data[position : position + size])
                position += size
            size, position = _varint(data, position)
            if position + max(size, 0) >= end:  # the number of headers comes behind the value
                raise CorruptBatch(batches.positions[row], "a key or value longer than its record")
            add(new_tuple(Walked, (start, end, delta_at, attributes, time_delta, offset_delta, key, size >= 0)))
    except (IndexError, MalformedVarint):
        raise CorruptBatch(batches.positions[row], "a number that does not end") from None
    if end != len(data):
        raise CorruptBatch(batches.positions[row], "more bytes than its records take")
    return found


def _varint(data: bytes | bytearray, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    high = data[position + 1]
    if high < 0x80:
        byte = byte & 0x7F | high << 7
        return (byte >> 1) ^ -(byte & 1), position + 2
    return read_varlong(data, position)


new_tuple = tuple.__new__  # makes a named tuple in half the time its own constructor takes
