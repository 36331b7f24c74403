"""A segment: a stretch of the log in one file, with its two indexes.

Owns `<base offset>.log`, where batches lie end to end, `.index` and `.timeindex`; finds the batch that holds an offset or a time. A
`Segment` has its files open when they are needed (`segment_file`), is appended to and cut (`active_segment`), and has two parts:

    segment.scan      from batch to batch (`batch_scan`)
    segment.lookup    of offsets and times

They are made when they are asked for, so that a segment that nobody reads has none.
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
