"""Which segments of a log `retention.ms` and `retention.bytes` no longer keep. Pure: it decides, and `Log` lets them go."""

from __future__ import annotations

from barnabas.config.topic import TopicConfig
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments


def count_not_retained(segments: Segments, config: TopicConfig, log_start_offset: int, now_ms: int, committed_end: int) -> int:
    """How many of the oldest segments may go; none with records at or past `committed_end`, which replicas may still ask for.

    All of them (the active one too) where everything in the log is too old, so that an idle topic empties, or where nothing is to be
    kept: the caller begins a new segment first.
    """
    if "delete" not in config.cleanup_policy:
        return segments.count_below(log_start_offset)
    count, size = 0, segments.size_bytes
    for segment in segments.sealed:
        too_much = 0 <= config.retention_bytes <= size - segment.size
        is_due = _is_too_old(segment, config, now_ms) or too_much or segment.next_offset <= log_start_offset
        if not is_due or segment.next_offset > committed_end:
            return count
        count, size = count + 1, size - segment.size
    active = segments.active
    if active.next_offset > committed_end:
        return count
    return count + 1 if active.size and (config.retention_bytes == 0 or _is_too_old(active, config, now_ms)) else count


def _is_too_old(segment: Segment, config: TopicConfig, now_ms: int) -> bool:
    return 0 <= config.retention_ms < now_ms - segment.newest_ms
