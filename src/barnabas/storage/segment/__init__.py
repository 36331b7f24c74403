"""A segment: a stretch of the log in one file, with its two indexes.

Owns `<base offset>.log`, where batches lie end to end, `.index` and `.timeindex`; finds the batch that holds an offset or a time. Each part
is a class upon the one before:

    file_names       of the files
    segment_file     opened when they are needed
    batch_scan       from batch to batch
    lookup           of offsets and times
    active_segment   what is appended and cut: `Segment`
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
