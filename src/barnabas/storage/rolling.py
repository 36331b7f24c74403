"""Decides when a log rolls its segment: `segment.bytes`, `segment.ms`, `segment.index.bytes` and the reach of an index's
offsets.

Functions of the active segment and the configuration. `roll_bounds` gives three numbers below which nothing ends the segment, so that an
append makes only three comparisons. Only a batch past one of them needs the full check (`must_roll`).
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch_header import BatchHeader
from barnabas.storage.index import TIME_ENTRY
from barnabas.storage.segment import Segment

MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_INT64 = 2**63 - 1


class RollBounds(NamedTuple):
    """The largest size, timestamp and last offset with which a batch surely stays in the active segment."""

    size: int
    time: int
    offset: int


def segment_lifetime_ms(segment: Segment, config: TopicConfig) -> int:
    """`segment.ms`, minus a part of `segment.jitter.ms` that differs between segments, so that not all logs roll at once.

    Kafka draws the part again when it opens a segment. Here it follows from the partition and the base offset, so that a restart does
    not change when a segment ends.
    """
    spread = min(config.segment_jitter_ms, config.max_segment_ms)
    if not spread:
        return config.max_segment_ms
    return config.max_segment_ms - crc32(f"{segment.directory.name} {segment.base_offset}".encode()) % spread


def roll_bounds(segment: Segment, config: TopicConfig) -> RollBounds:
    first = segment.load_first_timestamp()
    time = -1 if first is None else (MAX_INT64 if first < 0 else first + segment_lifetime_ms(segment, config))
    room = config.segment_index_bytes - max(segment.index.size_bytes, segment.time_index.size_bytes)
    # An index gets at most one entry per interval.
    unfilled = segment.size + room // TIME_ENTRY.size * config.index_interval_bytes
    return RollBounds(min(config.segment_bytes, unfilled), time, segment.base_offset + MAX_RELATIVE_OFFSET)


def must_roll(segment: Segment, config: TopicConfig, size: int, header: BatchHeader) -> bool:
    """Whether a batch of `size` bytes needs a new segment."""
    if header.last_offset > segment.base_offset + MAX_RELATIVE_OFFSET:
        return True
    if not segment.size:
        return False
    index_bytes = max(segment.index.size_bytes, segment.time_index.size_bytes)
    first = segment.load_first_timestamp()
    is_full = segment.size + size > config.segment_bytes or index_bytes + TIME_ENTRY.size > config.segment_index_bytes
    return is_full or (first is not None and first >= 0 and header.max_timestamp - first > segment_lifetime_ms(segment, config))


def is_older_than_segment_ms(segment: Segment, config: TopicConfig, now_ms: int) -> bool:
    """Whether an active segment with records is as old as `segment.ms` allows.

    Records may be older than their segment; by their time alone, a segment would be too old as soon as it is created.
    """
    first = segment.load_first_timestamp()
    return first is not None and now_ms - max(first, segment.created_ms) > segment_lifetime_ms(segment, config)
