"""Reads the still unknown times of segments in a thread, and stores them on the loop.

For a sealed segment this takes four opens and reads of its index files. On the loop this would take too long: a broker checks the oldest
segment of each log after its start, and may search a time in thousands of segments.

Rules
  1. The thread has its own segment objects and writes nothing: the log's may be closed, moved, cut or compacted meanwhile.
  2. A time that it could not read stays unknown. A later use on the loop gets the error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.errors import CorruptLog
from barnabas.storage.segment import Segment

UNKNOWABLE = (CorruptLog, OSError, struct.error)  # errors of files that are damaged, or renamed during the read


class SegmentTimes(NamedTuple):
    """The `max_timestamp`, `offset_of_max_timestamp` and `written_ms` of a sealed segment."""

    segment: Segment
    max_timestamp: int
    offset_of_max_timestamp: int
    written_ms: int

    @property
    def newest_ms(self) -> int:
        """As `Segment.newest_ms`."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.written_ms

    def note(self) -> None:
        """Store the times in the segment."""
        segment = self.segment
        if not segment.knows("max_timestamp"):
            segment.max_timestamp, segment.offset_of_max_timestamp = self.max_timestamp, self.offset_of_max_timestamp
        if not segment.knows("written_ms"):
            segment.written_ms = self.written_ms


def knows_age(segment: Segment) -> bool:
    """Whether `newest_ms` of a segment needs no read from the disk."""
    return segment.knows("max_timestamp") and (segment.max_timestamp >= 0 or segment.knows("written_ms"))


class _ApartSegment(Segment):
    """Reads the files of a segment that belongs to a log."""

    __slots__ = ()

    def _mend_indexes(self, reason: str) -> None:
        raise CorruptLog(str(self.path), 0, reason)


@contextmanager
def opened_apart(segment: Segment) -> Iterator[Segment]:
    """Another segment object with the same files, separate from the log's."""
    apart = _ApartSegment.existing(segment.files, segment.directory, segment.base_offset, segment.created_ms, segment.name_suffix)
    apart.next_offset = segment.next_offset
    try:
        yield apart
    finally:
        apart.close()


def times_of(segment: Segment, apart: Segment) -> SegmentTimes:
    """The times of `segment`, read through `apart`. Blocks. Raises: see UNKNOWABLE."""
    return SegmentTimes(segment, apart.max_timestamp, apart.offset_of_max_timestamp, apart.written_ms)


class TimesLook:
    """Reads the times of some segments.

    Args:
        sealed: the segments to read, in this order; known ones are skipped.
        active: the segment whose first batch's time is read; None if it is not needed.
        is_last: whether the segments after the one with these times need no read.
    """

    def __init__(self, sealed: Sequence[Segment], active: Segment | None, is_last: Callable[[SegmentTimes], bool]) -> None:
        self._sealed = sealed
        self._active = active
        self._is_last = is_last
        self._found: list[SegmentTimes] = []
        self._first_timestamp: int | None = None
        self._cuts = 0 if active is None else active.integrity.cuts

    def run(self) -> None:
        """Read the times; blocks."""
        try:
            if self._active is not None:
                with opened_apart(self._active) as apart:
                    self._first_timestamp = apart.load_first_timestamp()
            for segment in self._sealed:
                if knows_age(segment):
                    continue
                with opened_apart(segment) as apart:
                    times = times_of(segment, apart)
                self._found.append(times)
                if self._is_last(times):
                    return
        except UNKNOWABLE:
            return

    def note(self) -> None:
        """Store the result in the segments; on the loop."""
        for times in self._found:
            times.note()
        active = self._active
        if active is not None and active.first_timestamp is None and active.integrity.cuts == self._cuts:
            active.first_timestamp = self._first_timestamp
