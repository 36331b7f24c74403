"""One partition in a data folder: its bounds at one moment, and the batches within them.

A `PartitionView` keeps the files of its segments open, so it can be read after retention, compaction or a deletion took their names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from barnabas.columnar.batches import CONTROL, Longs
from barnabas.lazy_module import LazyModule
from barnabas.limits import MAX_FOUND_ABORTS
from barnabas.protocol.records.record import iterate_records
from barnabas.tables.errors import TableError
from barnabas.tables.folder.blocks import BlockReader
from barnabas.tables.folder.listing import list_segments
from barnabas.tables.folder.segments import LogSegment, SegmentGone
from barnabas.tables.folder.transactions import TransactionProgress, read_transactions
from barnabas.tables.source import Bounds, Chunk

if TYPE_CHECKING:
    from barnabas.protocol.records import kernels as k
else:
    k = LazyModule("barnabas.protocol.records.kernels")

CHUNK_BYTES = 8 << 20
TIME_BLOCK_BYTES = 256 << 10  # read at once when looking for a time: an index tells where to begin
ATTEMPTS = 100


class PartitionView:
    """A partition at one moment.

    Args:
        segments: in the order of offsets.
        aborted: producer id, first and last offset of the aborted transactions, int64[n, 3], by their first offsets.
        epoch: the leader epoch of the last record, -1 if it is not known.
    """

    def __init__(self, segments: Sequence[LogSegment], bounds: Bounds, aborted: Longs, epoch: int) -> None:
        self.segments, self.bounds, self.aborted, self.epoch = segments, bounds, aborted, epoch
        self._bases = [each.base_offset for each in segments]

    def chunks(self, start: int, end: int) -> Iterator[Chunk]:
        """The batches with records in [start, end), in a buffer that is used again for the next chunk.

        Raises:
            SegmentGone: a file that could not be held is gone; the batches before it were given.
            CorruptLog: a segment is damaged.
        """
        reader = BlockReader(CHUNK_BYTES)
        for segment, is_last in self._segments(start, end):
            is_active = segment is self.segments[-1]
            with segment.opened() as fileno:
                position = segment.start_position(fileno, start)
                likely_stop = segment.end_position(end) if is_last else None
                for stop in (None,) if likely_stop is None else (likely_stop, None):
                    for block in reader.read(segment, fileno, position, stop, may_end_early=is_active):
                        position, table = block.end, block.table
                        last = table[:, k.BASE_OFFSET] + table[:, k.LAST_DELTA]
                        wanted = table[(last >= start) & (table[:, k.BASE_OFFSET] < end)]
                        if len(wanted):
                            yield from self._split(block.data, wanted)
                        if int(last[-1]) + 1 >= end:
                            return
            if is_active:
                raise TableError(f"{segment.path}: the log ends before offset {end}, where the snapshot ends")

    def _segments(self, start: int, end: int) -> Iterator[tuple[LogSegment, bool]]:
        """The segments with offsets in [start, end), and whether a segment is the last of them."""
        first = max(0, bisect_right(self._bases, start) - 1)
        stop = bisect_left(self._bases, end)
        for slot in range(first, stop):
            yield self.segments[slot], slot == stop - 1

    def _split(self, block: memoryview, table: Longs) -> Iterator[Chunk]:
        """The batches with the aborted transactions among them.

        A reader takes a transaction for aborted up to its marker. If compaction removed the marker, the chunk ends in its place.
        """
        first, last = int(table[0, k.BASE_OFFSET]), int(table[-1, k.BASE_OFFSET] + table[-1, k.LAST_DELTA])
        aborted = self.aborted[(self.aborted[:, 1] <= last) & (self.aborted[:, 2] >= first)]
        cuts = [0, len(table)]
        if len(aborted):
            markers = table[table[:, k.ATTRIBUTES] & CONTROL != 0, k.BASE_OFFSET]
            ends = aborted[:, 2]
            missing = ends[(ends < last) & ~np.isin(ends, markers)]
            cuts = sorted({0, *np.searchsorted(table[:, k.BASE_OFFSET], missing).tolist(), len(table)})
        for low, high in pairwise(cuts):
            part = table[low:high]
            begin, end = int(part[0, k.POSITION]), int(part[-1, k.POSITION] + part[-1, k.SIZE])
            first, last = int(part[0, k.BASE_OFFSET]), int(part[-1, k.BASE_OFFSET] + part[-1, k.LAST_DELTA])
            here = aborted[(aborted[:, 1] <= last) & (aborted[:, 2] >= first)]
            yield Chunk(block[begin:end], tuple((int(each[0]), int(each[1])) for each in here))

    def first_from(self, timestamp_ms: int) -> int:
        """The first offset with this timestamp or a later one; the end of the bounds if there is none. Raises as `chunks`."""
        start, end = self.bounds
        if timestamp_ms < 0 or start >= end:
            return start
        for segment, _ in self._segments(start, end):
            latest = None if segment is self.segments[-1] else segment.latest_time_ms()
            if latest is None or latest >= timestamp_ms:
                found = self._first_in(segment, timestamp_ms)
                if found is not None:
                    return found
        return end

    def _first_in(self, segment: LogSegment, timestamp_ms: int) -> int | None:
        start, end = self.bounds
        with segment.opened() as fileno:
            position = segment.time_position(fileno, timestamp_ms)
            for block in BlockReader(TIME_BLOCK_BYTES).read(segment, fileno, position):
                table = block.table
                late = (table[:, k.MAX_TIME] >= timestamp_ms) & (table[:, k.BASE_OFFSET] + table[:, k.LAST_DELTA] >= start)
                for row in table[late & (table[:, k.BASE_OFFSET] < end)]:
                    for record in iterate_records(block.data, int(row[k.POSITION])):
                        if record.timestamp >= timestamp_ms and start <= record.offset < end:
                            return record.offset
                if table[-1, k.BASE_OFFSET] >= end:
                    break
        return None


class PartitionFolder:
    """The folder of a partition, looked at again and again. Not for several threads at once.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._segments: Sequence[LogSegment] = ()
        self._progress: TransactionProgress | None = None

    def view(self, log_start: int, high_watermark: int | None) -> PartitionView:
        """The partition at this moment.

        Args:
            log_start: offset below which records were deleted.
            high_watermark: offset below which records are committed; None: all that is in the log.

        Raises:
            TableError, FileNotFoundError, CorruptLog: as `list_segments`.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._view(log_start, high_watermark)
            except SegmentGone:
                continue
        raise TableError(f"{self.path}: its files are renamed faster than they can be read")

    def _view(self, log_start: int, high_watermark: int | None) -> PartitionView:
        progress = self._progress
        if progress is not None and (
            len(progress.found) > MAX_FOUND_ABORTS or (high_watermark is not None and progress.next_offset > high_watermark)
        ):
            progress, self._segments = None, ()
        segments, snapshots = list_segments(self.path, self._segments)
        start = max(log_start, segments[0].base_offset if segments else 0)
        if progress is None:
            progress = read_transactions(self.path, segments, snapshots, start, high_watermark)
        else:
            progress.read(segments, high_watermark)
        self._segments, self._progress = segments, progress
        stable = progress.stable_offset if high_watermark is None else min(progress.stable_offset, high_watermark)
        end = max(start, stable)
        return PartitionView(segments, Bounds(start, end), progress.aborted(segments), progress.epochs.latest)

    def end_of_epoch(self, epoch: int) -> int:
        """As `TopicSource.end_of_epoch`, at the time of the last view."""
        progress = self._progress
        return -1 if progress is None else progress.epochs.end_offset_for(epoch, progress.next_offset)[1]
