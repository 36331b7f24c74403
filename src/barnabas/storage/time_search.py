"""Finds records by their time.

Rules
  1. Only records at or past the log's start count; a batch that begins before it may have some.
  2. Times need not increase in a log. "The first at or after" means the first in the order of offsets.
  3. Records without a time (-1) are never found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from barnabas.errors import KafkaError
from barnabas.protocol.records.record import iterate_records
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.segment import NO_TIMESTAMP, Segment
from barnabas.storage.segment_times import UNKNOWABLE, SegmentTimes, opened_apart, times_of


class TimestampedOffset(NamedTuple):
    """A record found by its time."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: Collection[Segment], timestamp_ms: int, log_start_offset: int) -> TimestampedOffset | None:
    """The first record at or after a time; None if there is none."""
    for segment in segments:
        if segment.max_timestamp < timestamp_ms or segment.next_offset <= log_start_offset:
            continue
        found = _first_in(segment, timestamp_ms, log_start_offset)
        if found is not None:
            return found
    return None


def _first_in(segment: Segment, timestamp_ms: int, log_start_offset: int) -> TimestampedOffset | None:
    for position, header in segment.scan.walk(segment.lookup.find_time(timestamp_ms)):
        if header.max_timestamp < timestamp_ms or header.last_offset < log_start_offset:
            continue
        for record in iterate_records(segment.scan.read_batch(position, header)):
            if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                return TimestampedOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


class SealedSearch:
    """A search for a time in sealed segments, made in a thread: it may have to read the times of thousands of files.

    Args:
        segments: neighbours; no segment before them has a record as late.
        log_start_offset: records below it do not count.
    """

    def __init__(self, segments: Sequence[Segment], timestamp_ms: int, log_start_offset: int) -> None:
        self._segments = segments
        self._timestamp_ms = timestamp_ms
        self._log_start_offset = log_start_offset
        self._times: list[SegmentTimes] = []
        self._is_done = False
        self.found: TimestampedOffset | None = None

    def run(self) -> None:
        """Search; blocks."""
        try:
            for segment in self._segments:
                if segment.knows("max_timestamp") and segment.max_timestamp < self._timestamp_ms:
                    continue
                with opened_apart(segment) as apart:
                    times = times_of(segment, apart)
                    self._times.append(times)
                    if times.max_timestamp >= self._timestamp_ms:
                        self.found = _first_in(apart, self._timestamp_ms, self._log_start_offset)
                if self.found is not None:
                    break
            self._is_done = True
        except (*UNKNOWABLE, KafkaError):  # some records cannot be read
            return

    def note(self) -> None:
        """Store the times that were read in the segments; on the loop."""
        for times in self._times:
            times.note()

    def holds(self, segments: LogSegments, log_start_offset: int) -> bool:
        """Whether the search is complete, and the searched part of the log is unchanged."""
        first = segments.index_of(self._segments[0].base_offset)
        here = [] if first < 0 else list(islice(segments, first, first + len(self._segments)))
        are_sealed = self._segments[-1] is not segments.active
        return self._is_done and are_sealed and log_start_offset == self._log_start_offset and here == self._segments

    def behind(self, segments: LogSegments) -> list[Segment]:
        """The segments of the log after the searched ones."""
        return segments.starting_at(self._segments[-1].next_offset)


def sealed_search(segments: LogSegments, timestamp_ms: int, log_start_offset: int) -> SealedSearch | None:
    """A search for a time in the sealed segments; None if they are known to have no record as late."""
    sealed = segments.starting_at(log_start_offset)[:-1]
    for slot, segment in enumerate(sealed):
        if not segment.knows("max_timestamp") or segment.max_timestamp >= timestamp_ms:
            return SealedSearch(sealed[slot:], timestamp_ms, log_start_offset)
    return None


def newest(segments: Collection[Segment], log_start_offset: int) -> TimestampedOffset | None:
    """The first record with the largest time; None if no record has one."""
    segment = max(segments, key=lambda candidate: candidate.max_timestamp)
    found = segment.lookup.find(segment.offset_of_max_timestamp)
    if segment.max_timestamp != NO_TIMESTAMP and found is not None and segment.offset_of_max_timestamp >= log_start_offset:
        best = _newest_in(segment, found.position, log_start_offset, only_first=True)
        if best is not None and best.timestamp == segment.max_timestamp:
            return best
    # The index entry points to a record that is deleted or compacted: search the rest, from the newest segment on.
    newest_found: TimestampedOffset | None = None
    for segment in sorted(segments, key=lambda candidate: candidate.max_timestamp, reverse=True):
        if newest_found is not None and segment.max_timestamp < newest_found.timestamp:
            break
        found_here = _newest_in(segment, 0, log_start_offset) if segment.next_offset > log_start_offset else None
        if found_here is not None:
            newest_found = max(newest_found or found_here, found_here, key=lambda found: (found.timestamp, -found.offset))
    return newest_found


def _newest_in(segment: Segment, start: int, log_start_offset: int, *, only_first: bool = False) -> TimestampedOffset | None:
    """The newest record of the batches from byte `start` on, or of the first batch only."""
    best: TimestampedOffset | None = None
    for position, header in segment.scan.walk(start):
        if header.last_offset >= log_start_offset and (best is None or header.max_timestamp > best.timestamp):
            for record in iterate_records(segment.scan.read_batch(position, header)):
                if record.offset >= log_start_offset and record.timestamp > (best.timestamp if best else NO_TIMESTAMP):
                    best = TimestampedOffset(record.timestamp, record.offset, header.partition_leader_epoch)
        if only_first:
            break
    return best
