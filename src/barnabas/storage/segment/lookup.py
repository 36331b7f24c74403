"""Finds the batch with an offset or a time, and the end of a read.

Rule: a lookup of an offset finds the first batch whose last offset is at or past it, so a gap that compaction left is skipped.

How it works: the sparse index has an entry for every `index.interval.bytes`. Nearly every reader is at the end of the active segment. So
the positions of the last batches are also kept (`recent_*`): a lookup there is one bisection and no read. `integrity` remembers where
other readers stopped, because they continue there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.storage.damaged_lookup import find_around
from barnabas.storage.segment.batch_scan import BatchScan
from barnabas.storage.segment.segment_file import SegmentFile
from barnabas.tuples import new_tuple


class Position(NamedTuple):
    """The position of a batch, and a lower bound of its base offset."""

    position: int
    base_offset: int


class SegmentLookup:
    """Finds offsets and times in one segment."""

    __slots__ = ("_scan", "_segment")

    def __init__(self, segment: SegmentFile, scan: BatchScan) -> None:
        self._segment = segment
        self._scan = scan

    def find(self, offset: int) -> Position | None:
        """The first batch whose last offset is at or past `offset`; None if there is none in this segment.

        Raises:
            CorruptLog: the batch that had it is damaged, and its position is unknown.
        """
        segment = self._segment
        if segment.integrity.damages and (known := segment.integrity.damage_at(offset)) is not None:
            return Position(known.position, known.first_offset)
        recent = segment.recent_last
        slot = bisect_left(recent, offset)
        if slot:  # the batch before this slot ends below `offset`, so no older batch can hold it
            if slot == len(recent):
                return None
            return new_tuple(Position, (segment.recent_positions[slot], recent[slot - 1] + 1))
        if recent and not segment.recent_positions[0]:
            return Position(0, segment.base_offset)
        if offset <= segment.base_offset and segment.size:
            return Position(0, segment.base_offset)
        end = segment.integrity.end_of_read(offset)
        if end is not None:
            # At the end of the file: the offset is in a gap that ends the segment.
            return Position(end, offset) if end < segment.size else None
        entry = segment.index.floor(offset - segment.base_offset)
        start = entry[1] if entry else 0
        if segment.integrity.damages:
            return self._find_around(offset, start)
        try:
            for position, header in self._scan.walk(start):
                if header.base_offset + header.last_offset_delta >= offset:
                    if header.base_offset > offset or header.next_offset > segment.next_offset:
                        # Either compaction left a gap, or a header or an index entry is wrong.
                        return self._find_around(offset, start if position > start else 0)
                    return Position(position, header.base_offset)
        except CorruptLog:
            return self._find_around(offset, start)
        return self._find_around(offset, 0) if start >= segment.size > 0 else None

    def _find_around(self, offset: int, start: int) -> Position | None:
        found = find_around(self._segment, self._scan, offset, start)
        return None if found is None else Position._make(found)

    def whole_batches_end(self, start: int, limit: int, *, is_verified_later: bool = False) -> int | None:
        """The end of a batch that ends at or before byte `limit`, among the batches from `start` on; `start` if there is none.

        It is the end of the last such batch or, if the loop would have to wait for the disk, a little before it.

        Args:
            is_verified_later: a thread verifies the bytes if needed, and finds the end. Then the result is None if the header that gives
                the end is only on the disk, or is not trusted.
        """
        segment = self._segment
        if limit >= segment.size:
            return segment.size
        recent = segment.recent_positions
        if recent and recent[0] <= limit:
            return max(start, recent[bisect_right(recent, limit) - 1])
        if is_verified_later and not segment.integrity.covers(start, limit):
            return None
        entry = self._index_entry_before(limit)
        end = max(start, entry[1] if entry else 0)
        try:
            return self._start_of_batch_across(limit, end, waits=False)
        except BlockingIOError:
            if is_verified_later:
                return None
        if end > start:
            segment.integrity.forget_behind(end, segment.size)
            return end
        return self._start_of_batch_across(limit, start)

    def _start_of_batch_across(self, limit: int, position: int, *, waits: bool = True) -> int:
        """The position of the batch that goes past byte `limit`, among the batches from `position` on."""
        segment = self._segment
        try:
            for position, header in self._scan.walk(position, waits=waits, first_bytes=HEADER_SIZE):  # noqa: B020 - it starts at `position`
                if position + header.size > limit:
                    # Note only verified bytes. Not even the CRC covers the base offset.
                    if segment.integrity.covers(position, position + HEADER_SIZE):
                        segment.integrity.note_end(header.base_offset, position)
                    break
        except CorruptLog as error:
            return error.position
        return position

    def _index_entry_before(self, position: int) -> tuple[int, int] | None:
        """The last index entry at or before a byte; for readers that continue in order, from the part of the index in memory."""
        segment = self._segment
        open_files, index = segment.open_files, segment.index
        entry = index.floor_in_windows(position)
        if entry is None:
            entry = index.floor_by_value(position, keeps_window=open_files is not None)
            if open_files is not None:
                open_files.keep_windows(segment)
        return entry

    def find_time(self, timestamp: int) -> int:
        """A position at or before the first batch with a record at or after `timestamp`."""
        segment = self._segment
        entry = segment.time_index.floor(timestamp - 1)
        if entry is None:
            return 0
        index_entry = segment.index.floor(entry[1])
        return index_entry[1] if index_entry else 0
