"""Cleans one log: finds the last offset of each key in the dirty part, then rewrites the log without superseded records.

How it works: the first pass goes over the dirty segments and fills the key map, up to where its memory ends. The second goes
over all segments up to there and writes cleaned ones. Neighbours are merged while the result stays within `segment.bytes`;
their number is not known before, because only the retained bytes count. The generator yields each cleaned segment to the
caller, which swaps it in (swap.py) while the next one is written.

Rules
  1. Only `.cleaned` files are written; files of readers are not touched. On any failure the `.cleaned` files are removed.
  2. A batch whose records all stay is copied unchanged. If a part stays, the batch is rewritten with the same offsets,
     sequence, epoch and codec; its largest timestamp is that of the remaining records. If none stays, the batch is removed, or
     only its header stays (batch_retention.py).
  3. `meter` is called for every read and write. It may wait, to limit the rate, and it may raise, to stop the cleaning.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
)
from barnabas.protocol.records.compression import compress
from barnabas.protocol.records.record import Record, assemble, iterate_records
from barnabas.storage.compaction.batch_retention import BatchFilter, BatchRetention, TransactionFilter
from barnabas.storage.compaction.engine import Batches, CorruptBatch, Engine, FilteredRecords, KeyMap
from barnabas.storage.compaction.output import CleanedSegment, PlacedBatches
from barnabas.storage.compaction.plain import check_crc
from barnabas.storage.compaction.swap import remove_leftovers
from barnabas.storage.compaction.task import CleanedGroup, CleaningResult, CleaningTask, SegmentRef
from barnabas.storage.files import Files
from barnabas.storage.producer_state import CompletedTransaction
from barnabas.storage.rolling import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import ABORTED_SUFFIX, INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, file_name
from barnabas.storage.transaction_index import AbortedTransactions

Meter = Callable[[int, int], None]  # bytes read, bytes written

SEGMENTS_IN_ONE = 8  # full segments per merge: until the merge ends, old and cleaned files are both on the disk
SMALLEST_READ = 64 * 1024
KEPT_ATTRIBUTES = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT  # attributes that a batch without records keeps


def clean(task: CleaningTask, files: Files, engine: Engine, meter: Meter) -> Generator[CleanedGroup, None, CleaningResult]:
    """Clean a log; yields every group when its files are flushed.

    Raises:
        CorruptLog: a damaged batch.
        OSError: the disk fails, or the log was deleted.
    """
    return (yield from _Cleaning(task, files, engine, meter).run())


class _Cleaning:
    def __init__(self, task: CleaningTask, files: Files, engine: Engine, meter: Meter) -> None:
        self._task = task
        self._files = files
        self._engine = engine
        self._meter = meter
        self._aborted = self._read_aborted()
        self._latest_offset = task.first_dirty_offset - 1  # up to this offset the log is clean, or its keys are in the map
        self._records_read = self._records_kept = self._bytes_read = self._bytes_written = 0

    def run(self) -> Generator[CleanedGroup, None, CleaningResult]:
        task = self._task
        remove_leftovers(self._files, task.directory)
        keys = self._map_dirty()
        end_offset = self._latest_offset + 1
        segments = tuple(segment for segment in task.segments if segment.base_offset < end_offset)
        batch_filter = BatchFilter(self._aborted, task.producers, task.expired_ms)
        while segments:
            cleaned, count = self._clean_group(segments, keys, batch_filter)
            segments = segments[count:]
            if cleaned is not None:
                yield cleaned
        return CleaningResult(
            max(end_offset, task.first_dirty_offset),
            len(keys),
            self._records_read,
            self._records_kept,
            self._bytes_read,
            self._bytes_written,
        )

    # First pass

    def _map_dirty(self) -> KeyMap:
        """The last offsets of the keys in the dirty part, up to the memory limit."""
        task = self._task
        start = task.first_dirty_offset
        keys: KeyMap = self._engine.new_map(task.dedupe_bytes, task.load_factor)
        transactions = TransactionFilter(entry for entry in self._aborted if entry.last_offset >= start)
        for segment in task.segments:
            if segment.next_offset <= start:
                continue
            for position, batches in self._chunks(segment):
                try:
                    added = keys.add(batches, self._not_mapped(batches, transactions), start)
                except CorruptBatch as error:
                    raise self._corrupt(segment, position, error) from error
                if added:
                    self._latest_offset = max(self._latest_offset, batches.last_offsets[added - 1])
                if added < len(batches):
                    return keys
            self._latest_offset = segment.next_offset - 1  # a gap may follow the last batch
        return keys

    def _not_mapped(self, batches: Batches, transactions: TransactionFilter) -> bytearray:
        """The rows of markers and of aborted transactions."""
        skipped = bytearray(len(batches))
        for row in batches.of_producers():
            header = batches.header(row)
            if header.is_control:
                transactions.is_useless(header, self._marker(batches, row, header))
                skipped[row] = 1
            else:
                skipped[row] = transactions.is_aborted(header)
        return skipped

    # Second pass

    def _clean_group(
        self, segments: Sequence[SegmentRef], keys: KeyMap, batch_filter: BatchFilter
    ) -> tuple[CleanedGroup | None, int]:
        """Merge as many of the first `segments` as fit into a cleaned segment; None if the result would equal the existing one.

        Returns:
            The group, and the number of its source segments.
        """
        output = CleanedSegment(self._files, self._task.directory, segments[0].base_offset, self._task.index_interval_bytes)
        batch_filter.transactions.kept_entries = []
        changed, group, bytes_before = False, [], 0
        try:
            for segment, following in zip_longest(segments, segments[1:]):
                group.append(segment.base_offset)
                bytes_before += segment.size
                goes_on = segment.size == 0 and following is not None
                for position, batches in self._chunks(segment):
                    if position + batches.end >= segment.size:
                        goes_on = following is not None and self._fits(output, batches.end, bytes_before, following)
                    is_last = position + batches.end >= segment.size and not goes_on
                    try:
                        changed |= self._clean_chunk(batches, keys, batch_filter, output, is_last=is_last)
                    except CorruptBatch as error:
                        raise self._corrupt(segment, position, error) from error
                if not goes_on:
                    break
            if not changed and len(group) == 1:
                output.discard()
                return None, 1
            output.finish(batch_filter.transactions.kept_entries)
        except BaseException:
            # The original error matters more than a file that cannot be removed; the next cleaning or start removes that file.
            with suppress(OSError):
                output.discard()
            raise
        return CleanedGroup(group[0], tuple(group), bytes_before, output.size), len(group)

    def _fits(self, output: CleanedSegment, pending: int, bytes_before: int, following: SegmentRef) -> bool:
        """Whether all of `following` can be added to `output` after `pending` more bytes."""
        task = self._task
        return (
            output.size + pending + following.size <= task.segment_bytes
            and output.index_bytes_with(pending) + self._index_bytes(following) <= task.segment_index_bytes
            and following.next_offset - 1 - output.base_offset <= MAX_RELATIVE_OFFSET
            and bytes_before + following.size <= SEGMENTS_IN_ONE * task.segment_bytes
        )

    def _clean_chunk(
        self, batches: Batches, keys: KeyMap, batch_filter: BatchFilter, output: CleanedSegment, *, is_last: bool
    ) -> bool:
        """Write the retained part of a chunk; returns whether it differs from the chunk."""
        retentions = bytearray(len(batches))
        last = len(batches) - 1 if is_last else -1
        for row in batches.of_producers():
            header = batches.header(row)
            marker = self._marker(batches, row, header) if header.is_control else None
            retentions[row] = batch_filter.retention(header, marker, is_last=row == last)
        if last >= 0 and retentions[last] == BatchRetention.FILTER:
            retentions[last] = BatchRetention.FILTER_KEEP_HEADER
        filtered = self._engine.filter_records(batches, retentions, keys, self._latest_offset, self._task.expired_ms)
        self._records_read += sum(filtered.counts)
        self._records_kept += sum(filtered.kept)
        placed = _Rewriter(batches, retentions, filtered, self._task.now_ms + self._task.delete_retention_ms).run()
        if placed is None:
            whole = memoryview(batches.data)[: batches.end]
            placed = PlacedBatches(whole, batches.last_offsets, batches.sizes, batches.max_timestamps)
            changed = False
        else:
            changed = True
        if placed.sizes:
            output.append(placed)
            self._bytes_written += len(placed.data)
            self._meter(0, len(placed.data))
        return changed

    def _index_bytes(self, segment: SegmentRef) -> int:
        paths = [self._task.directory / file_name(segment.base_offset, suffix) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
        return max(self._files.file_size(path) if self._files.exists(path) else 0 for path in paths)

    # Reading

    def _chunks(self, segment: SegmentRef) -> Iterator[tuple[int, Batches]]:
        """The batches of a segment, many at a time, with their start position in the file."""
        path = self._task.directory / file_name(segment.base_offset, LOG_SUFFIX)
        fileno = self._files.open(path)
        try:
            position, wanted, last_offset = 0, max(self._task.buffer_bytes, SMALLEST_READ), segment.base_offset - 1
            while position < segment.size:
                data = self._read(fileno, path, min(wanted, segment.size - position), position)
                batches = self._engine.scan(data)
                if not len(batches):
                    wanted = self._size_of_batch(data, path, position, segment.size)
                    continue
                for row, offset in enumerate(batches.last_offsets):  # the CRC does not cover the base offset
                    if not last_offset < offset < segment.next_offset:
                        raise CorruptLog(
                            str(path), position + batches.positions[row], "the offsets are not those of their neighbours"
                        )
                    last_offset = offset
                self._bytes_read += batches.end
                self._meter(batches.end, 0)
                yield position, batches
                position += batches.end
                wanted = max(self._task.buffer_bytes, SMALLEST_READ)
        finally:
            self._files.close(fileno)

    def _read(self, fileno: int, path: Path, size: int, position: int) -> bytes:
        """Read bytes of a segment. Unreadable bytes count as corrupt: this log is not cleaned any more, but other logs on the
        disk are."""
        try:
            return self._files.pread(fileno, size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise CorruptLog(str(path), position, "the disk does not give it") from error

    def _size_of_batch(self, data: bytes, path: object, position: int, size: int) -> int:
        """The size of the batch that did not fit into `data`."""
        if len(data) < HEADER_SIZE:
            raise CorruptLog(str(path), position, "a header is cut off")
        needed = int.from_bytes(data[8:LENGTH_OVERHEAD], "big", signed=True) + LENGTH_OVERHEAD
        if needed <= len(data) or position + needed > size:
            raise CorruptLog(str(path), position, "no batch header")
        return needed

    def _marker(self, batches: Batches, row: int, header: BatchHeader) -> Record | None:
        if not header.records_count:
            return None
        check_crc(batches.data, batches.positions[row], header)
        return next(iterate_records(batches.data, batches.positions[row]), None)

    def _read_aborted(self) -> list[CompletedTransaction]:
        """The aborted transactions of all segments; transactions that end in later segments may begin in the cleaned ones."""
        task = self._task
        bases = [*(segment.base_offset for segment in task.segments), *task.later]
        found: list[CompletedTransaction] = []
        for base in bases:
            found += AbortedTransactions(self._files, task.directory / file_name(base, ABORTED_SUFFIX), base)
        return found

    def _corrupt(self, segment: SegmentRef, position: int, error: CorruptBatch) -> CorruptLog:
        path = self._task.directory / file_name(segment.base_offset, LOG_SUFFIX)
        return CorruptLog(str(path), position + error.position, error.reason)


class _Rewriter:
    """Assembles the batches of a chunk from the records that `filtered` retains."""

    def __init__(self, batches: Batches, retentions: bytearray, filtered: FilteredRecords, horizon_ms: int) -> None:
        self._batches = batches
        self._retentions = retentions
        self._filtered = filtered
        self._horizon_ms = horizon_ms  # the delete horizon for batches that get one
        self._parts: list[Buffer] = []
        self._run_start = self._run_end = 0  # bytes of the chunk to copy that are not in `_parts` yet

    def run(self) -> PlacedBatches | None:
        """The retained bytes; None for the whole chunk unchanged."""
        batches, retentions, filtered = self._batches, self._retentions, self._filtered
        kept, counts, tombstones = filtered.kept, filtered.counts, filtered.has_tombstones
        rows, new_sizes, new_times = [], [], []
        changed = False
        for row, retention in enumerate(retentions):
            if retention == BatchRetention.KEEP or (retention <= BatchRetention.FILTER_KEEP_HEADER and kept[row] == counts[row] > 0
                                           and not (tombstones[row] and self._needs_horizon(row))):  # fmt: skip
                self._copy(row)
                size, time = batches.sizes[row], batches.max_timestamps[row]
            elif retention <= BatchRetention.KEEP_WITH_HORIZON and kept[row]:
                new = self._rewrite(row, forced=retention == BatchRetention.KEEP_WITH_HORIZON)
                size, time, changed = len(new), filtered.max_timestamps[row], True
                self._add(new)
            elif retention in (BatchRetention.FILTER_KEEP_HEADER, BatchRetention.HEADER_ONLY):
                new = _without_records(batches.header(row))
                size, time = len(new), batches.max_timestamps[row]
                changed |= new != batches.data[batches.positions[row] : batches.positions[row] + batches.sizes[row]]
                self._add(new)
            else:
                changed = True
                continue
            rows.append(row)
            new_sizes.append(size)
            new_times.append(time)
        if not changed:
            return None
        self._end_run()
        last_offsets = [batches.last_offsets[row] for row in rows]
        return PlacedBatches(b"".join(self._parts), last_offsets, new_sizes, new_times)

    def _needs_horizon(self, row: int) -> bool:
        return self._batches.header(row).delete_horizon_ms is None

    def _copy(self, row: int) -> None:
        start = self._batches.positions[row]
        if start != self._run_end:
            self._end_run()
            self._run_start = start
        self._run_end = start + self._batches.sizes[row]

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            self._parts.append(memoryview(self._batches.data)[self._run_start : self._run_end])
        self._run_start = self._run_end

    def _add(self, data: bytes) -> None:
        self._end_run()
        self._parts.append(data)

    def _rewrite(self, row: int, *, forced: bool) -> bytes:
        """The batch with its retained records; tombstones and markers that will be removed later get a delete horizon
        (KIP-534)."""
        header = self._batches.header(row)
        check_crc(self._batches.data, self._batches.positions[row], header)
        base_timestamp, attributes = header.base_timestamp, header.attributes
        if header.delete_horizon_ms is None and (forced or self._filtered.has_tombstones[row]):
            base_timestamp, attributes = self._horizon_ms, attributes | DELETE_HORIZON_BIT
        body = self._filtered.body(row, base_timestamp)
        header = header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=self._filtered.max_timestamps[row],
            records_count=self._filtered.kept[row],
        )
        return assemble(header, compress(attributes & COMPRESSION_MASK, body))


def _without_records(header: BatchHeader) -> bytes:
    """The header of a batch that keeps its place, its producer and its sequence."""
    emptied = header._replace(attributes=header.attributes & KEPT_ATTRIBUTES, base_timestamp=NO_TIMESTAMP, records_count=0)
    return assemble(emptied, b"")
