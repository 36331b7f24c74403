"""The passes over the records on arrays: batch headers as a table, keys in a table of open addressing, one kernel call for a chunk.

How it works: uncompressed records are looked at where they lie; those of compressed batches are unfolded into one buffer beside the
chunk. The kernels get a row of numbers for each batch that says where its records are, and give back a row that says what stays.

Memory: the slots of the table take 16 bytes each and are filled to `load_factor`; a key takes its bytes and four more. How the
memory is divided between the two is guessed from the keys of the first chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from barnabas.protocol.records import kernels as scanning
from barnabas.protocol.records.header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
)
from barnabas.storage.compaction import kernels as k
from barnabas.storage.compaction.engine import CorruptBatch
from barnabas.storage.compaction.plain import check_crc, unfold
from barnabas.storage.compaction.verdicts import Verdict

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NOTHING_MAPPED = 2**63 - 1
SLOT_BYTES = 16
GUESSED_KEY_BYTES = 32  # of keys and their length, until some were seen
FEWEST_SLOTS = 16
GROWTH_OF_RECORD = 16  # bytes that a record may grow by when its time delta and length are written anew
NOTHING = np.zeros(0, np.uint8)
BIG_ENDIAN = np.array([1 << 24, 1 << 16, 1 << 8, 1], np.uint32)


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
        """Hold the wanted rows against their CRCs.

        Raises:
            CorruptBatch: the first that does not match, or is of another format.
        """
        rows = np.flatnonzero(wanted)
        positions = self.table[rows, scanning.POSITION]
        ends = positions + self.table[rows, scanning.SIZE]
        view = memoryview(self.data)
        found = [crc32c(view[start:end]) for start, end in zip((positions + CRC_START).tolist(), ends.tolist(), strict=True)]
        stated = self.bytes[(positions + CRC_POSITION)[:, None] + np.arange(4)].astype(np.uint32) @ BIG_ENDIAN
        wrong = (np.array(found, np.uint32) != stated) | (self.bytes[positions + MAGIC_POSITION] != MAGIC)
        for row in rows[wrong].tolist():
            check_crc(self.data, self.positions[row], self.header(row))  # which says what is wrong

    def rows(self, wanted: npt.NDArray[np.bool_]) -> tuple[Longs, Bytes]:
        """The kernels' table for the wanted rows, and the buffer of those that were compressed."""
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

    Once all is added, the last offsets in order (`kept_of`) tell of most batches what stays of them without a look at their records.
    """

    def __init__(self, memory_bytes: int, load_factor: float, most_keys: int, seed: int) -> None:
        self.seed = np.uint64(seed)
        self._memory = memory_bytes
        self._load_factor = load_factor
        self._most_keys = most_keys
        self._state = np.zeros(k.STATE_SIZE, np.int64)
        self._first_offset = NOTHING_MAPPED
        self._in_order: Longs | None = None
        self.slots: Longs = np.zeros((1, 2), np.int64)
        self.arena: Bytes = NOTHING.copy()

    def __len__(self) -> int:
        return int(self._state[k.KEYS])

    def add(self, batches: CompiledBatches, skipped: bytearray, from_offset: int) -> int:
        self._first_offset = from_offset
        last = batches.table[:, scanning.BASE_OFFSET] + batches.table[:, scanning.LAST_DELTA]
        wanted = (np.frombuffer(skipped, np.uint8) == 0) & (last >= from_offset)
        batches.check_crcs(wanted)
        rows, unpacked = batches.rows(wanted)
        is_first = not self._state[k.MOST_KEYS] and bool(wanted.any())
        if is_first:
            self._allocate(rows)
        done = self._add(batches, unpacked, rows, from_offset)
        first = int(np.argmax(wanted))
        if is_first and done <= first:  # one batch alone is more than the memory holds
            return self._add_at_least(batches, unpacked, rows, from_offset, first)
        return done

    def kept_of(self, table: Longs, latest_offset: int) -> Longs:
        """How many records of each batch stay, all with values: -1 where its records must be looked at."""
        base = table[:, scanning.BASE_OFFSET]
        last = base + table[:, scanning.LAST_DELTA]
        if self._in_order is None:
            self._in_order = np.sort(self.slots[self.slots[:, 0] > 0, 0] - 1)
        count = np.searchsorted(self._in_order, last, side="right") - np.searchsorted(self._in_order, base)
        is_mapped = (base >= self._first_offset) & (last <= latest_offset)
        is_told = count == 0
        if not self._state[k.TOMBSTONES_SEEN]:
            is_told |= count == table[:, scanning.COUNT]
        is_told &= is_mapped & (table[:, scanning.ATTRIBUTES] & DELETE_HORIZON_BIT == 0)
        return np.where(is_told, count, -1)

    def _add(self, batches: CompiledBatches, unpacked: Bytes, rows: Longs, from_offset: int) -> int:
        state = self._state
        done = int(k.add_keys(batches.bytes, unpacked, rows, from_offset, self.slots, self.arena, state, self.seed))
        if state[k.ERROR] != k.OK:
            raise CorruptBatch(batches.positions[int(state[k.ERROR_ROW])], k.REASONS[int(state[k.ERROR])])
        return done

    def _add_at_least(self, batches: CompiledBatches, unpacked: Bytes, rows: Longs, from_offset: int, row: int) -> int:
        size = int(rows[row, k.END] - rows[row, k.BEGIN])
        self._state[:] = 0
        self._use(max(FEWEST_SLOTS, 2 * int(rows[row, k.COUNT])), int(rows[row, k.COUNT]), size + 4 * int(rows[row, k.COUNT]))
        done = self._add(batches, unpacked, rows[: row + 1].copy(), from_offset)
        self._state[k.MOST_KEYS] = self._state[k.KEYS]  # full
        return done

    def _allocate(self, rows: Longs) -> None:
        """Divide the memory between slots and keys."""
        looked_at = rows[rows[:, k.WHERE] != k.NOT_THERE]
        records = int(looked_at[:, k.COUNT].sum())
        record_bytes = int((looked_at[:, k.END] - looked_at[:, k.BEGIN]).sum()) // max(records, 1)
        key_bytes = min(GUESSED_KEY_BYTES, record_bytes)
        per_key = SLOT_BYTES / self._load_factor + key_bytes
        most = min(self._most_keys, int(self._memory / per_key))
        slots = max(FEWEST_SLOTS, int(most / self._load_factor) + 1)
        self._use(slots, most, max(0, self._memory - slots * SLOT_BYTES))

    def _use(self, slots: int, most_keys: int, arena_bytes: int) -> None:
        self.slots = np.zeros((slots, 2), np.int64)
        self.arena = np.empty(arena_bytes, np.uint8)  # touched, and so given by the system, only as far as keys fill it
        self._state[k.MOST_KEYS] = min(most_keys, slots - 1)


class CompiledJudged:
    """See `Judged`."""

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
        seed: of the hash of keys; nobody who produces should be able to guess it.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def scan(self, data: bytes) -> CompiledBatches:
        return CompiledBatches(data)

    def new_map(self, memory_bytes: int, load_factor: float, most_keys: int) -> CompiledKeys:
        return CompiledKeys(memory_bytes, load_factor, most_keys, self._seed)

    def judge(
        self, batches: CompiledBatches, verdicts: bytearray, keys: CompiledKeys, latest_offset: int, now_ms: int
    ) -> CompiledJudged:
        table = batches.table
        verdict = np.frombuffer(verdicts, np.uint8)
        keep_all = verdict == Verdict.KEEP_WITH_HORIZON
        is_filtered = verdict <= Verdict.FILTER_KEEP_HEADER
        told = np.where(is_filtered, keys.kept_of(table, latest_offset), -1)
        rows, unpacked = batches.rows((is_filtered & (told < 0)) | keep_all)
        rows[keep_all & (rows[:, k.WHERE] == k.IN_CHUNK), k.WHERE] = k.KEEP_ALL
        without_horizon = table[:, scanning.ATTRIBUTES] & DELETE_HORIZON_BIT == 0
        rows[:, k.KEEPS_TOMBSTONES] = without_horizon | (now_ms < table[:, scanning.BASE_TIME])
        keep = np.zeros(int(rows[rows[:, k.WHERE] != k.NOT_THERE, k.COUNT].sum()), np.uint8)
        answers = np.zeros((len(rows), k.ANSWER_COLUMNS), np.int64)
        state = np.zeros(k.STATE_SIZE, np.int64)
        k.judge(batches.bytes, unpacked, rows, latest_offset, keys.slots, keys.arena, keys.seed, keep, answers, state)
        if state[k.ERROR] != k.OK:
            raise CorruptBatch(batches.positions[int(state[k.ERROR_ROW])], k.REASONS[int(state[k.ERROR])])
        return CompiledJudged(batches, rows, unpacked, keep, answers, told)
