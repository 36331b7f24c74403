"""Finds the bytes of a file for a read from an offset.

The search reads only headers. The bytes go from the file to the socket, and `integrity` decides whether they may be sent unchecked.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.segment import Position, Segment
from barnabas.tuples import new_tuple

MOST_SKIPPED = 500  # emptied batches that one read skips; takes half a millisecond


class FileRegion(NamedTuple):
    """Bytes [position, position + size) of an open file: whole batches. `base_offset` is at most the first batch's.

    `integrity` says whether the bytes may be sent unchecked; other bytes must be verified first. If `reach` is not 0, the region may end
    within a batch, and the verification finds the end of the last whole one. A first batch that goes past the region is given whole if
    it ends at or before byte `reach`; nothing after that byte may be read.
    """

    fileno: int
    position: int
    size: int
    base_offset: int
    integrity: SegmentIntegrity
    reach: int = 0


class Behind(NamedTuple):
    """The next read of a sequential reader at `offset`, found in advance: a region of `segment`."""

    offset: int
    region: FileRegion
    segment: Segment
    cuts: int  # the segment's number of cuts when the region was found


def region_behind(segments: LogSegments, region: FileRegion, max_bytes: int, limit_offset: int) -> Behind | None:
    """The region after one from `read_region`, if it is in memory and a later read would certainly give the same.

    None at the end of a segment, and near the limit: there may be more when the reader asks.

    Raises:
        CorruptLog, OSError: as `LogReader.read`.
    """
    segment = segments.holding(region.base_offset)
    end = region.position + region.size
    if segment is None or segment.integrity is not region.integrity or end >= segment.size:
        return None
    offset = segment.integrity.asked_behind(end)
    if offset is None:
        offset = segment.scan.base_offset_at(end)
    if offset is None or segments.holding(offset) is not segment:
        return None
    behind = read_region(segments, offset, max_bytes, limit_offset, minimum_one=False, is_verified_later=True)
    if behind is None or behind.integrity is not region.integrity or behind.reach:
        return None
    if behind.size <= max_bytes // 2 and segment is segments.active:
        return None
    return new_tuple(Behind, (offset, behind, segment, segment.integrity.cuts))


def is_still(segments: LogSegments, behind: Behind) -> bool:
    """Whether a region from an earlier turn of the loop is unchanged, and its descriptor still open."""
    segment, region = behind.segment, behind.region
    return (
        segments.holding(behind.offset) is segment
        and segment.fileno == region.fileno
        and segment.integrity is region.integrity
        and region.integrity.cuts == behind.cuts
    )


def read_region(
    segments: LogSegments,
    offset: int,
    max_bytes: int,
    limit_offset: int,
    *,
    minimum_one: bool,
    as_stored: bool = False,
    is_verified_later: bool = False,
) -> FileRegion | None:
    """As `LogReader.read`, for an offset in the log."""
    segment = segments.active
    slot = -1
    if offset < segment.base_offset:
        slot = segments.index_of(offset)
        segment = segments[slot]
    found = segment.lookup.find(offset)
    while found is None:  # the segment ends in a gap
        if slot == -1 or slot + 1 == len(segments):
            return None
        slot += 1
        segment = segments[slot]
        found = segment.lookup.find(offset)
    start = found.position
    end = segment.size
    if limit_offset < segment.next_offset:
        limit = segment.lookup.find(limit_offset)
        end = end if limit is None else limit.position
    if end - start > max_bytes:
        whole_end = segment.lookup.whole_batches_end(start, start + max_bytes, is_verified_later=is_verified_later)
        if whole_end is None:
            return _rough_region(segment, found, max_bytes, end if minimum_one else 0)
        end = start + segment.scan.batch_size(start) if whole_end <= start and minimum_one else whole_end
    if end <= start:
        return None
    region = new_tuple(FileRegion, (segment.fileno, start, end - start, found.base_offset, segment.integrity, 0))
    if slot == -1 or region.size % HEADER_SIZE or as_stored:
        return region
    # The region may contain only headers of batches that compaction emptied.
    behind = _skip_emptied(segments, slot, start, limit_offset, waits=not is_verified_later)
    if behind is None:
        return region
    return read_region(
        segments,
        behind,
        max_bytes,
        limit_offset,
        minimum_one=minimum_one,
        as_stored=True,
        is_verified_later=is_verified_later,
    )


def _rough_region(segment: Segment, found: Position, max_bytes: int, first_end: int) -> FileRegion | None:
    """The batches within `max_bytes`. A larger first batch is included if it ends at or before byte `first_end`."""
    start = found.position
    end = min(start + max(max_bytes, HEADER_SIZE), first_end) if first_end else start + max_bytes
    if end - start < HEADER_SIZE:
        return None
    reach = 0 if end == first_end else max(first_end, end)
    return FileRegion(segment.fileno, start, end - start, found.base_offset, segment.integrity, reach)


def _skip_emptied(segments: LogSegments, slot: int, position: int, limit_offset: int, *, waits: bool) -> int | None:
    """The offset of the first batch with records, if there are only emptied batches before it; otherwise None.

    A reader that gets only emptied batches takes its buffer for too small: librdkafka doubles it each time, and fails at 1 GB. Of more
    than `MOST_SKIPPED` in a row the reader gets some, because looking at them takes time of the loop. Damaged batches are not skipped.

    Args:
        waits: wait for the disk; otherwise a header that is not in memory counts as one with records, and the verification finds the
            actual content.
    """
    behind, skipped = -1, 0
    try:
        for segment in segments.behind(slot):
            for _, header in segment.scan.walk(position, waits=waits):
                if header.size > HEADER_SIZE or skipped == MOST_SKIPPED:
                    return header.base_offset if skipped and header.base_offset < limit_offset else None
                behind, skipped = header.next_offset, skipped + 1
            position = 0
    except CorruptLog:
        return None
    except BlockingIOError:
        return behind if skipped and behind < limit_offset else None
    return None
