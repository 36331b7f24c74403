"""Chooses the next log to clean, and how far.

Owns Kafka's rules for that. Pure: it uses a log's segments and settings.

    first dirty offset     end of the last cleaning, from the cleaner's checkpoint
    end offset             start of the first segment that must not be cleaned yet: the active one, one with records that
                           are uncommitted, undecided or unflushed, or one that is younger than `min.compaction.lag.ms`
    dirty ratio            bytes between the two, divided by all bytes before the end

Rules
  1. A log is due when its ratio is above `min.cleanable.dirty.ratio`, or a record in the dirty part is older than
     `max.compaction.lag.ms`. Among due logs, the one with the highest ratio comes first.
  2. Unflushed records are not cleaned: a power failure could lose the newer record of a key when compaction has already
     removed the older one. (Kafka cleans up to the active segment.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.segment import Segment

NO_LIMIT_MS = 2**63 - 1


class Dirtiness(NamedTuple):
    """The dirty part of a log; `segments` are those before the end offset."""

    first_dirty_offset: int
    end_offset: int
    segments: list[Segment]
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: TopicConfig) -> bool:
        return self.dirty_bytes > 0 and (self.is_overdue or self.ratio > config.min_cleanable_dirty_ratio)


def dirtiness(
    segments: LogSegments,
    config: TopicConfig,
    *,
    log_start_offset: int,
    limit_offset: int,
    cleaned_offset: int,
    now_ms: int,
) -> Dirtiness:
    """The dirty part of a log.

    Args:
        segments: of the whole log.
        limit_offset: the lower of the last stable offset and the flushed offset.
        cleaned_offset: from the checkpoint; an offset outside of the log is ignored.
    """
    first_dirty = cleaned_offset if log_start_offset <= cleaned_offset <= segments.active.next_offset else log_start_offset
    end, below = segments[0].base_offset, []
    for segment in segments.sealed:
        is_young = config.min_compaction_lag_ms > 0 and segment.newest_ms > now_ms - config.min_compaction_lag_ms
        if segment.next_offset > limit_offset or (is_young and segment.next_offset > first_dirty):
            break
        below.append(segment)
        end = segment.next_offset
    dirty = [segment for segment in below if segment.next_offset > first_dirty]
    dirty_bytes = sum(segment.size for segment in dirty)
    return Dirtiness(
        min(first_dirty, end),
        end,
        below,
        sum(segment.size for segment in below) - dirty_bytes,
        dirty_bytes,
        _is_overdue(dirty, config, now_ms),
    )


def _is_overdue(dirty: Sequence[Segment], config: TopicConfig, now_ms: int) -> bool:
    if config.max_compaction_lag_ms >= NO_LIMIT_MS:
        return False
    first_times = (segment.load_first_timestamp() for segment in dirty)
    return any(time is not None and 0 < time < now_ms - config.max_compaction_lag_ms for time in first_times)
