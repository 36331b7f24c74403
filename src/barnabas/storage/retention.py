"""Decides which segments `retention.ms` and `retention.bytes` no longer keep. Pure: `Log` removes them."""

from __future__ import annotations

from itertools import islice

from barnabas.config.topic import TopicConfig
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.segment import Segment
from barnabas.storage.segment_times import SegmentTimes, TimesLook, knows_age


def count_not_retained(segments: LogSegments, config: TopicConfig, log_start_offset: int, now_ms: int, committed_end: int) -> int:
    """How many of the oldest segments may go; none with records at or past `committed_end`, which replicas may still need.

    All of them (also the active one) if everything in the log is too old, so that an idle topic becomes empty, or if nothing should be
    kept. Then the caller begins a new segment first.
    """
    if "delete" not in config.cleanup_policy:
        return segments.count_below(log_start_offset)
    count, size = 0, segments.size_bytes
    for segment in segments.sealed:
        too_much = 0 <= config.retention_bytes <= size - segment.size
        is_due = too_much or segment.next_offset <= log_start_offset or _is_too_old(segment, config, now_ms)
        if not is_due or segment.next_offset > committed_end:
            return count
        count, size = count + 1, size - segment.size
    active = segments.active
    if active.next_offset > committed_end:
        return count
    return count + 1 if active.size and (config.retention_bytes == 0 or _is_too_old(active, config, now_ms)) else count


def unknown_ages(segments: LogSegments, config: TopicConfig, log_start_offset: int, now_ms: int) -> TimesLook | None:
    """The times that `count_not_retained` and the age of the active segment would read from the disk; None if they need none."""
    active = segments.active
    without_age = active if active.size and active.first_timestamp is None else None
    sealed = _without_age(segments, config, log_start_offset, now_ms)
    if without_age is None and not sealed:
        return None
    return TimesLook(sealed, without_age, lambda times: not _is_too_old(times, config, now_ms))


def _without_age(segments: LogSegments, config: TopicConfig, log_start_offset: int, now_ms: int) -> list[Segment]:
    """The sealed segments from the first one whose age is needed but not known."""
    if "delete" not in config.cleanup_policy or config.retention_ms < 0:
        return []
    size = segments.size_bytes
    for slot, segment in enumerate(segments):
        size -= segment.size
        if 0 <= config.retention_bytes <= size or segment.next_offset <= log_start_offset:
            continue
        if segment is segments.active:
            break
        if not knows_age(segment):
            return list(islice(segments, slot, len(segments) - 1))
        if not _is_too_old(segment, config, now_ms):
            break
    return []


def _is_too_old(segment: Segment | SegmentTimes, config: TopicConfig, now_ms: int) -> bool:
    return 0 <= config.retention_ms < now_ms - segment.newest_ms
