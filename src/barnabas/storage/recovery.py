"""Repairs the possible damage of a crash to the segments of a log: an incomplete batch is dropped, with everything after it.

Rules
  1. Nothing before the recovery point is dropped: damage there is not a torn tail, so it is skipped and stays, and the batches
     after it are valid.
  2. Dropped bytes are removed durably before the first append: otherwise the next power failure could restore them beside
     records with the same offsets.
  3. Bytes after the last record of a sealed segment are no records: a disk refused a part of a batch, and a power failure undid the cut.
     They go, and the later segments stay.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.integrity import NOTHING_FOLLOWS
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.log_segments import remove_segment_files
from barnabas.storage.rolling import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import Segment
from barnabas.storage.verify import measure

logger = logging.getLogger(__name__)

SCAN_BYTES = 1024 * 1024  # per read when batches are checked


def recover_segments(
    segments: list[Segment],
    epochs: LeaderEpochs,
    config: TopicConfig,
    *,
    without_index: list[Segment],
    recovery_point: int | None,
    synced_offset: int,
    cleaned_offset: int,
    with_markers: set[Segment],
) -> list[Segment]:
    """The segments with good batches from end to end; the last one is ready to grow.

    Args:
        without_index: the segments that lack an index file.
        recovery_point: records below it, and index entries for them, are known to be whole; None: all are.
        synced_offset: records below it were on the disk, so damage there is no torn tail.
        cleaned_offset: there may be gaps below it.
        with_markers: gets the segments in which control batches were read.
    """
    last = segments[-1]
    for number, segment in enumerate(segments):
        trusted = segment.base_offset if segment in without_index else recovery_point
        if trusted is None and (segment is not last or _activate(segment, synced_offset)):
            continue
        if segment is not last and trusted is not None and _is_whole(segment, trusted):
            continue
        following = segment.next_offset
        is_synced = segment is not last and (recovery_point is None or following <= recovery_point)
        start = segment.base_offset if trusted is None else trusted
        if is_synced:
            dropped, has_markers = recover_segment(segment, epochs, config, start, following, end_offset=following)
        else:
            dropped, has_markers = recover_segment(segment, epochs, config, start, synced_offset)
        if has_markers:
            with_markers.add(segment)
        if dropped and segment is not last and segment.next_offset == following:
            _report(segment, dropped, [])
        elif dropped or (segment is not last and _parts(segment, following, cleaned_offset, recovery_point)):
            later = segments[number + 1 :]
            _report(segment, dropped, later)
            for lost in later:
                remove_segment_files(segment.files, lost)
            segment.files.sync_directory(segment.directory)
            return segments[: number + 1]
        if segment is not last:
            segment.seal()
            segment.close()
            segment.next_offset = following
    return segments


def _is_whole(segment: Segment, trusted_offset: int) -> bool:
    """Whether a sealed segment is on the disk, because it ends at or before `trusted_offset`.

    If it ends exactly there, its last batches are read: a power failure may have undone a cut at its end.
    """
    if segment.next_offset != trusted_offset:
        return segment.next_offset < trusted_offset
    try:
        entry = segment.index.last()
        end, next_offset = entry[1] if entry else 0, segment.base_offset
        for position, header in scan_batches(segment, end, segment.size):
            end, next_offset = position + header.size, header.next_offset
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return True  # reads skip what the disk cannot read
    return end == segment.size and next_offset <= segment.next_offset


def _parts(segment: Segment, following: int, cleaned_offset: int, recovery_point: int | None) -> bool:
    """Whether the next segment does not continue this one.

    Either a power failure removed the segment's tail without a trace, and the next segment (which was written later) would leave a hole.
    Or it brought back records that a cut had removed, and the segment goes past the start of the next one. Only compaction leaves gaps
    between segments, and the segments that it has cleaned are on the disk.
    """
    is_hole = segment.next_offset < following and following > cleaned_offset
    is_back = segment.next_offset > following
    return (is_hole or is_back) and recovery_point is not None and following > recovery_point


def _activate(segment: Segment, end_offset: int) -> bool:
    """Take the last segment as it is; False if a clean shutdown does not leave such an end: at `end_offset`, unless that is 0."""
    try:
        segment.activate()
    except CorruptLog as error:
        logger.warning("event=log-not-as-closed file=%s position=%d reason=%r", error.path, error.position, error.reason)
        return False
    if 0 < segment.next_offset < end_offset:
        logger.warning(
            "event=log-not-as-closed file=%s end_offset=%d closed_at=%d", segment.path, segment.next_offset, end_offset
        )
        return False
    return True


def recover_segment(
    segment: Segment,
    epochs: LeaderEpochs,
    config: TopicConfig,
    trusted_offset: int,
    synced_offset: int = 0,
    *,
    end_offset: int | None = None,
) -> tuple[int, bool]:
    """Check the batches from `trusted_offset` on, cut the file after the last good one, rebuild the indexes.

    Damage below `synced_offset` is not from a crash: it is skipped, and the batches after it stay.

    Args:
        end_offset: where the records of the segment end, if that is known; a batch that goes past it is not good. Otherwise the reach of
            an index is the limit, because the CRC does not cover the base offset.

    Returns:
        The number of dropped bytes, and whether there are control batches among the read ones.
    """
    size, has_markers = segment.size, False
    limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1 if end_offset is None else end_offset
    segment.files.forget_cached(segment.fileno)  # after a failed sync, the page cache may hold pages that are not on the disk
    segment.doubt_all()
    segment.recount_from(_trusted_position(segment, trusted_offset))
    while segment.size < size:
        for position, header in scan_batches(segment, segment.size, size):
            if header.next_offset > limit:
                break
            segment.appended(header.last_offset, header.size, header.max_timestamp, config.index_interval_bytes)
            epochs.found(header.partition_leader_epoch, header.base_offset)
            has_markers = has_markers or header.is_control
            assert segment.size == position + header.size
        if segment.size == size or max(segment.next_offset, segment.base_offset) >= synced_offset:
            break
        _step_over(segment, size, synced_offset)
    segment.give_back()  # also frees the space that was reserved past the end
    if segment.size < size:
        segment.files.sync(segment.fileno)
    segment.index.write(exact=True)
    segment.time_index.write(exact=True)
    return size - segment.size, has_markers


def _step_over(segment: Segment, size: int, synced_offset: int) -> None:
    """Continue after the damage at the segment's current end; if nothing follows it, it contains the records up to `synced_offset`."""
    damage = measure(segment.files, segment.fileno, segment.size, segment.next_offset, "found damaged at the start", size)
    if damage.next_offset == NOTHING_FOLLOWS:
        damage = damage._replace(next_offset=synced_offset)
    segment.integrity.note(damage)
    logger.error(
        "event=corrupt-data-kept file=%s position=%d bytes=%d first_offset=%d last_offset=%d",
        segment.path,
        damage.position,
        damage.end - damage.position,
        damage.first_offset,
        damage.next_offset - 1,
    )
    segment.size, segment.next_offset = damage.end, damage.next_offset


def _trusted_position(segment: Segment, trusted_offset: int) -> int:
    """The start of the check: at the last index entry below `trusted_offset`, if it names the batch that is there."""
    relative = trusted_offset - segment.base_offset
    segment.index, segment.time_index = segment.make_indexes()
    if relative > 0 and segment.has_index_files:
        segment.index.load_active()
        segment.time_index.load_active()
        segment.index.truncate_below(key=relative)
        last = segment.index.last()
        if last is not None:
            segment.time_index.truncate_below(value=last[0] + 1)
            first = next(scan_batches(segment, last[1], segment.size), None)
            if first is not None and first[1].last_offset == segment.base_offset + last[0]:
                return last[1]
    segment.index.start_empty()
    segment.time_index.start_empty()
    return 0


def scan_batches(segment: Segment, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch between two bytes of a segment, up to the first one that is not whole and valid."""
    data, data_start = memoryview(b""), start
    position, next_offset = start, segment.base_offset
    while position + HEADER_SIZE <= end:
        at = position - data_start
        if at + HEADER_SIZE > len(data):
            data, data_start, at = memoryview(segment.files.pread(segment.fileno, SCAN_BYTES, position)), position, 0
            if len(data) < HEADER_SIZE:
                return
        header = BatchHeader._make(HEADER.unpack_from(data, at))
        size = header.batch_length + LENGTH_OVERHEAD
        if header.magic != MAGIC or size < HEADER_SIZE or position + size > end:
            return
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            return
        if at + size > len(data):
            data = memoryview(segment.files.pread(segment.fileno, max(SCAN_BYTES, size), position))
            data_start, at = position, 0
        if len(data) < size or crc32c(data[at + CRC_START : at + size]) != header.crc:
            return
        yield position, header
        position, next_offset = position + size, header.next_offset


def _report(segment: Segment, dropped: int, later: list[Segment]) -> None:
    logger.warning(
        "event=log-tail-dropped file=%s end_offset=%d position=%d dropped_bytes=%d dropped_segments=%d dropped_segment_bytes=%d",
        segment.path,
        segment.next_offset,
        segment.size,
        dropped,
        len(later),
        sum(lost.size for lost in later),
    )
