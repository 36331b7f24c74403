"""The passes over the records on arrays: headers and keys are in tables, and one kernel call handles a chunk.

How it works: the kernels read uncompressed records in place. Records of compressed batches are decompressed into one buffer beside the
chunk. The kernels get a row of numbers for each batch with the place of its records, and return a row about the records that stay.

Memory: the table of keys has open addressing; a slot takes 8 bytes, and a key takes its bytes and 12 more. The table begins small and is
doubled when it is full to `load_factor`, so that the few keys of most logs stay in the processor's cache. Keys may use the memory that
the table leaves. The sorted offsets take 8 more bytes for each key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from barnabas.protocol.records import kernels as scanning
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    BatchHeader,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.compaction import kernels as k
from barnabas.storage.compaction.batch_retention import BatchRetention
from barnabas.storage.compaction.engine import CorruptBatch
from barnabas.storage.compaction.plain import check_crc, unfold

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NOTHING_MAPPED = 2**63 - 1
SLOT_BYTES = 8
KEY_OVERHEAD_BYTES = 12
FEWEST_SLOTS = 16
GROWTH_OF_RECORD = 16  # a rewritten time delta and length can make a record this many bytes longer
NOTHING = np.zeros(0, np.uint8)


class CompiledBatches:
    """See `Batches`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes = np.frombuffer(data, np.uint8)
        self.table: Longs = np.empty((scanning.count_batches(self.bytes), scanning.BATCH_COLUMNS), np.int64)
        scanning.scan_batches(self.bytes, self.table)
        table = self.table
        self.end = int(table[-1, scanning.POSITION] + table[-1, scanning.SIZE]) if len(table) else 0
        self.positions: list[int] = table[:, scanning.POSITION].tolist()
        self.sizes: list[int] = table[:, scanning.SIZE].tolist()
        self.last_offsets: list[int] = (table[:, scanning.BASE_OFFSET] + table[:, scanning.LAST_DELTA]).tolist()
        self.max_timestamps: list[int] = table[:, scanning.MAX_TIME].tolist()

    def __len__(self) -> int:
        return len(self.table)

    def header(self, row: int) -> BatchHeader:
        return BatchHeader._make(HEADER.unpack_from(self.data, self.positions[row]))

    def of_producers(self) -> Sequence[int]:
        table = self.table
        found = (table[:, scanning.PRODUCER_ID] >= 0) | (table[:, scanning.ATTRIBUTES] & CONTROL_BIT != 0)
        return np.flatnonzero(found).tolist()

    def check_crcs(self, wanted: npt.NDArray[np.bool_]) -> None:
        """Check the CRCs of the wanted rows.

        Raises:
            CorruptBatch: the first batch with a wrong CRC or another format.
        """
        rows = np.flatnonzero(wanted)
        table = self.table[rows]
        starts, ends = table[:, scanning.POSITION] + CRC_START, table[:, scanning.POSITION] + table[:, scanning.SIZE]
        view = memoryview(self.data)
        found = [crc32c(view[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        wrong = (np.array(found, np.int64) != table[:, scanning.CRC]) | (table[:, scanning.MAGIC] != MAGIC)
        for row in rows[wrong].tolist():
            check_crc(self.data, self.positions[row], self.header(row))  # raises the error with its reason

    def rows(self, wanted: npt.NDArray[np.bool_]) -> tuple[Longs, Bytes]:
        """The kernels' table for the wanted rows, and the buffer with the decompressed records."""
        table = self.table
        rows = np.zeros((len(table), k.ROW_COLUMNS), np.int64)
        rows[:, k.WHERE] = np.where(wanted, k.IN_CHUNK, k.NOT_THERE)
        rows[:, k.BEGIN] = table[:, scanning.POSITION] + scanning.HEADER_BYTES
        rows[:, k.END] = table[:, scanning.POSITION] + table[:, scanning.SIZE]
        rows[:, k.COUNT] = table[:, scanning.COUNT]
        rows[:, k.BASE_OFFSET] = table[:, scanning.BASE_OFFSET]
        rows[:, k.BASE_TIME] = table[:, scanning.BASE_TIME]
        parts, end = [], 0
        for row in np.flatnonzero(wanted & (table[:, scanning.ATTRIBUTES] & COMPRESSION_MASK != 0)).tolist():
            part = unfold(self.data, self.positions[row], self.header(row))
            parts.append(part)
            rows[row, k.WHERE], rows[row, k.BEGIN], rows[row, k.END] = k.UNPACKED, end, end + len(part)
            end += len(part)
        wrong = np.flatnonzero(wanted & ((rows[:, k.COUNT] < 0) | (rows[:, k.COUNT] > rows[:, k.END] - rows[:, k.BEGIN])))
        if len(wrong):
            row = int(wrong[0])
            raise CorruptBatch(
                self.positions[row], f"{rows[row, k.COUNT]} records in {rows[row, k.END] - rows[row, k.BEGIN]} bytes"
            )
        return rows, np.frombuffer(b"".join(parts), np.uint8) if parts else NOTHING


class CompiledKeys:
    """See `KeyMap`.

    After all keys were added, the sorted last offsets (`kept_of`) tell for most batches how many records stay, without reading them.
    """

    def __init__(self, memory_bytes: int, load_factor: float, seed: int) -> None:
        self.seed = np.uint64(seed)
        self._memory = memory_bytes
        self._load_factor = load_factor
        self._state = np.zeros(k.STATE_SIZE, np.int64)
        self._first_offset = NOTHING_MAPPED
        self._in_order: Longs | None = None
        self.slots: Longs = np.zeros(FEWEST_SLOTS, np.int64)
        self.arena: Bytes = np.empty(memory_bytes, np.uint8)  # the system provides pages only as keys fill them
        self._set_limits()

    def __len__(self) -> int:
        return int(self._state[k.KEYS])

    def add(self, batches: CompiledBatches, skipped: bytearray, from_offset: int) -> int:
        self._first_offset = from_offset
        last = batches.table[:, scanning.BASE_OFFSET] + batches.table[:, scanning.LAST_DELTA]
        wanted = (np.frombuffer(skipped, np.uint8) == 0) & (last >= from_offset)
        batches.check_crcs(wanted)
        rows, unpacked = batches.rows(wanted)
        is_first = not len(self) and bool(wanted.any())
        done = self._add(batches, unpacked, rows, from_offset)
        first = int(np.argmax(wanted))
        if is_first and done <= first:  # this batch alone needs more than the memory limit
            return self._add_whatever_it_takes(batches, unpacked, rows, from_offset, first)
        return done

    def kept_of(self, table: Longs, latest_offset: int) -> Longs:
        """How many records of each batch stay, all of them with values; -1 if the records must be read."""
        base = table[:, scanning.BASE_OFFSET]
        last = base + table[:, scanning.LAST_DELTA]
        if self._in_order is None:
            self._in_order = np.empty(len(self), np.int64)
            k.collect_offsets(self.arena, self._in_order)
            self._in_order.sort()
        count = np.searchsorted(self._in_order, last, side="right") - np.searchsorted(self._in_order, base)
        is_mapped = (base >= self._first_offset) & (last <= latest_offset)
        is_told = count == 0
        if not self._state[k.TOMBSTONES_SEEN]:
            is_told |= count == table[:, scanning.COUNT]
        is_told &= is_mapped & (table[:, scanning.ATTRIBUTES] & DELETE_HORIZON_BIT == 0)
        return np.where(is_told, count, -1)

    def _add(self, batches: CompiledBatches, unpacked: Bytes, rows: Longs, from_offset: int) -> int:
        state, done = self._state, 0
        while True:
            done = int(k.add_keys(batches.bytes, unpacked, rows, done, from_offset, self.slots, self.arena, state, self.seed))
            if state[k.ERROR] != k.OK:
                raise CorruptBatch(batches.positions[int(state[k.ERROR_ROW])], k.REASONS[int(state[k.ERROR])])
            if done == len(rows) or not self._grow():
                return done

    def _grow(self) -> bool:
        """Double the slots if they are what limits the table and there is memory for them beside the keys; returns whether it did."""
        slots = len(self.slots) * 2
        if self._state[k.KEYS] < self._state[k.MOST_KEYS] or slots * SLOT_BYTES + self._state[k.ARENA_USED] > self._memory:
            return False
        self._use_slots(slots)
        return True

    def _use_slots(self, count: int) -> None:
        self.slots = np.zeros(0, np.int64)  # free the old slots before the allocation of the next ones
        self.slots = np.zeros(count, np.int64)
        k.fill_slots(self.slots, self.arena, int(self._state[k.ARENA_USED]), self.seed)
        self._set_limits()

    def _set_limits(self) -> None:
        self._state[k.MOST_KEYS] = int((len(self.slots) - 1) * self._load_factor)
        self._state[k.ARENA_LIMIT] = max(0, len(self.arena) - len(self.slots) * SLOT_BYTES)

    def _add_whatever_it_takes(self, batches: CompiledBatches, unpacked: Bytes, rows: Longs, from_offset: int, row: int) -> int:
        count, size = int(rows[row, k.COUNT]), int(rows[row, k.END] - rows[row, k.BEGIN])
        self._state[:] = 0
        self.arena = np.empty(size + KEY_OVERHEAD_BYTES * count + SLOT_BYTES * (2 * count + FEWEST_SLOTS), np.uint8)
        self._use_slots(2 * count + FEWEST_SLOTS)
        self._state[k.MOST_KEYS] = count
        done = self._add(batches, unpacked, rows[: row + 1].copy(), from_offset)
        self._state[k.MOST_KEYS] = self._state[k.ARENA_LIMIT] = 0  # the map accepts no further keys
        self._memory = 0
        return done


class CompiledFilteredRecords:
    """See `FilteredRecords`."""

    def __init__(self, batches: CompiledBatches, rows: Longs, unpacked: Bytes, keep: Bytes, answers: Longs, told: Longs) -> None:
        table = batches.table
        looked_at = rows[:, k.WHERE] != k.NOT_THERE
        counts = np.where(looked_at, rows[:, k.COUNT], 0)
        self._batches, self._rows, self._unpacked, self._keep = batches, rows, unpacked, keep
        self._keep_from: list[int] = (np.cumsum(counts) - counts).tolist()
        append_time = table[:, scanning.ATTRIBUTES] & LOG_APPEND_TIME_BIT != 0
        times = np.where(append_time, table[:, scanning.MAX_TIME], table[:, scanning.BASE_TIME] + answers[:, k.MAX_DELTA])
        self.kept: list[int] = np.where(told >= 0, told, answers[:, k.KEPT]).tolist()
        self.counts: list[int] = np.where(told >= 0, table[:, scanning.COUNT], counts).tolist()
        self.has_tombstones: list[int] = answers[:, k.TOMBSTONES].tolist()
        self.max_timestamps: list[int] = times.tolist()

    def body(self, row: int, base_timestamp: int) -> bytes:
        where, begin, end, count, _, base_time, _ = self._rows[row].tolist()
        data = self._unpacked if where == k.UNPACKED else self._batches.bytes
        shift = base_time - base_timestamp
        out = np.empty(end - begin + (GROWTH_OF_RECORD * count if shift else 0), np.uint8)
        start = self._keep_from[row]
        size = int(k.copy_kept(data, begin, end, self._keep[start : start + count], shift, out))
        return out[:size].tobytes()


class CompiledEngine:
    """See `Engine`.

    Args:
        seed: of the hash of keys; producers must not be able to guess it.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def scan(self, data: bytes) -> CompiledBatches:
        return CompiledBatches(data)

    def new_map(self, memory_bytes: int, load_factor: float) -> CompiledKeys:
        return CompiledKeys(memory_bytes, load_factor, self._seed)

    def filter_records(
        self, batches: CompiledBatches, retentions: bytearray, keys: CompiledKeys, latest_offset: int, expired_ms: int
    ) -> CompiledFilteredRecords:
        table = batches.table
        retention = np.frombuffer(retentions, np.uint8)
        keep_all = retention == BatchRetention.KEEP_WITH_HORIZON
        is_filtered = retention <= BatchRetention.FILTER_KEEP_HEADER
        told = np.where(is_filtered, keys.kept_of(table, latest_offset), -1)
        rows, unpacked = batches.rows((is_filtered & (told < 0)) | keep_all)
        rows[keep_all & (rows[:, k.WHERE] == k.IN_CHUNK), k.WHERE] = k.KEEP_ALL
        without_horizon = table[:, scanning.ATTRIBUTES] & DELETE_HORIZON_BIT == 0
        rows[:, k.KEEPS_TOMBSTONES] = without_horizon | (expired_ms < table[:, scanning.BASE_TIME])
        keep = np.zeros(int(rows[rows[:, k.WHERE] != k.NOT_THERE, k.COUNT].sum()), np.uint8)
        answers = np.zeros((len(rows), k.ANSWER_COLUMNS), np.int64)
        state = np.zeros(k.STATE_SIZE, np.int64)
        k.filter_records(batches.bytes, unpacked, rows, latest_offset, keys.slots, keys.arena, keys.seed, keep, answers, state)
        if state[k.ERROR] != k.OK:
            raise CorruptBatch(batches.positions[int(state[k.ERROR_ROW])], k.REASONS[int(state[k.ERROR])])
        return CompiledFilteredRecords(batches, rows, unpacked, keep, answers, told)
