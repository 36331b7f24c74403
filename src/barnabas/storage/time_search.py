"""Finding records by their time.

Rules
  1. Only records at or past the log's start count, though a batch that begins before it may hold some.
  2. Times need not rise in a log. "The first at or after" is the first in the order of offsets.
  3. Records without a time (-1) are found by none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from barnabas.protocol.records.record import iterate_records
from barnabas.storage.segment import NO_TIMESTAMP, Segment


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
        for position, header in segment.walk(segment.find_time(timestamp_ms)):
            if header.max_timestamp < timestamp_ms or header.last_offset < log_start_offset:
                continue
            for record in iterate_records(segment.read_batch(position, header)):
                if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                    return TimestampedOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def newest(segments: Collection[Segment], log_start_offset: int) -> TimestampedOffset | None:
    """The first record that has the largest time; None if no record has one."""
    segment = max(segments, key=lambda candidate: candidate.max_timestamp)
    found = segment.find(segment.offset_of_max_timestamp)
    if segment.max_timestamp != NO_TIMESTAMP and found is not None and segment.offset_of_max_timestamp >= log_start_offset:
        best = _newest_in(segment, found.position, log_start_offset, only_first=True)
        if best is not None and best.timestamp == segment.max_timestamp:
            return best
    # The indexes name a record that is deleted, or was compacted: look at what is left, from the newest segment on.
    newest_found: TimestampedOffset | None = None
    for segment in sorted(segments, key=lambda candidate: candidate.max_timestamp, reverse=True):
        if newest_found is not None and segment.max_timestamp < newest_found.timestamp:
            break
        found_here = _newest_in(segment, 0, log_start_offset) if segment.next_offset > log_start_offset else None
        if found_here is not None:
            newest_found = max(newest_found or found_here, found_here, key=lambda found: (found.timestamp, -found.offset))
    return newest_found


def _newest_in(segment: Segment, start: int, log_start_offset: int, *, only_first: bool = False) -> TimestampedOffset | None:
    """The newest record of the batches from byte `start` on, or of the first of them."""
    best: TimestampedOffset | None = None
    for position, header in segment.walk(start):
        if header.last_offset >= log_start_offset and (best is None or header.max_timestamp > best.timestamp):
            for record in iterate_records(segment.read_batch(position, header)):
                if record.offset >= log_start_offset and record.timestamp > (best.timestamp if best else NO_TIMESTAMP):
                    best = TimestampedOffset(record.timestamp, record.offset, header.partition_leader_epoch)
        if only_first:
            break
    return best
