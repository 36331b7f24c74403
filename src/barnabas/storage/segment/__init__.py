"""A segment: a part of the log in one file, with its two indexes.

Owns `<base offset>.log` with its batches one after the other, `.index` and `.timeindex`; finds the batch with an offset or a time. A
`Segment` opens its files when they are needed (`segment_file`), is appended to and cut (`active_segment`), and has two parts:

    segment.scan      goes from batch to batch (`batch_scan`)
    segment.lookup    finds offsets and times

They are created at their first use, so a segment that nobody reads has none.
"""

from __future__ import annotations

from barnabas.storage.segment.active_segment import LARGE_BATCH_BYTES, RESERVED_BYTES, Segment
from barnabas.storage.segment.file_names import (
    ABORTED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    file_name,
)
from barnabas.storage.segment.lookup import Position
from barnabas.storage.segment.segment_file import NO_TIMESTAMP

__all__ = [
    "ABORTED_SUFFIX",
    "DELETED_SUFFIX",
    "INDEX_SUFFIX",
    "LARGE_BATCH_BYTES",
    "LOG_SUFFIX",
    "NO_TIMESTAMP",
    "RESERVED_BYTES",
    "SNAPSHOT_SUFFIX",
    "SUFFIXES",
    "TIME_INDEX_SUFFIX",
    "Position",
    "Segment",
    "file_name",
]
