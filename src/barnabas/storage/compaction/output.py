"""The files of a cleaned segment while they are written: `.log`, `.index`, `.timeindex` and `.txnindex`, with the suffix `.cleaned`.

Rules
  1. The indexes get the same entries as if the segment had been appended to batch by batch, so rebuilding them changes nothing.
  2. When `finish` returns, the files and their names are flushed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.records.batch_header import NO_TIMESTAMP, Buffer
from barnabas.storage.compaction.swap import CLEANED_SUFFIX
from barnabas.storage.files import Files, write_all
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.producer_state import CompletedTransaction
from barnabas.storage.segment import ABORTED_SUFFIX, INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, file_name
from barnabas.storage.transaction_index import ENTRY as ABORTED_ENTRY
from barnabas.storage.transaction_index import VERSION as ABORTED_VERSION


class PlacedBatches(NamedTuple):
    """Batches to write one after the other, with the last offset, the size in bytes and the largest timestamp of each."""

    data: Buffer
    last_offsets: Sequence[int]
    sizes: Sequence[int]
    max_timestamps: Sequence[int]


class CleanedSegment:
    """Writes one segment; unusable after `finish` or `discard`."""

    def __init__(self, files: Files, directory: Path, base_offset: int, index_interval_bytes: int) -> None:
        self._files = files
        self._directory = directory
        self._interval = index_interval_bytes
        self.base_offset = base_offset
        self.size = 0
        self._index = bytearray()
        self._time_index = bytearray()
        self._max_timestamp = self._noted_timestamp = NO_TIMESTAMP
        self._offset_of_max = base_offset
        self._since_entry = 0
        self._fileno: int | None = files.open(self._path(LOG_SUFFIX), create=True)
        files.truncate(self._fileno, 0)

    def index_bytes_with(self, more: int) -> int:
        """The maximum size of the larger index after `more` bytes of batches."""
        return max(len(self._index), len(self._time_index)) + (more // max(self._interval, 1) + 2) * TIME_ENTRY.size

    def append(self, batches: PlacedBatches) -> None:
        assert self._fileno is not None
        write_all(self._files, self._fileno, batches.data, self.size)
        position, since_entry, interval, base = self.size, self._since_entry, self._interval, self.base_offset
        max_timestamp = self._max_timestamp
        for last_offset, size, timestamp in zip(batches.last_offsets, batches.sizes, batches.max_timestamps, strict=True):
            if timestamp > max_timestamp:
                self._max_timestamp = max_timestamp = timestamp
                self._offset_of_max = last_offset
            if since_entry > interval:
                self._index += OFFSET_ENTRY.pack(last_offset - base, position)
                self._add_time_entry()
                since_entry = 0
            since_entry += size
            position += size
        self.size, self._since_entry = position, since_entry

    def _add_time_entry(self) -> None:
        if self._max_timestamp > self._noted_timestamp:
            self._noted_timestamp = self._max_timestamp
            self._time_index += TIME_ENTRY.pack(self._max_timestamp, self._offset_of_max - self.base_offset)

    def finish(self, aborted: Sequence[CompletedTransaction]) -> None:
        """Write the indexes and block until everything is flushed."""
        assert self._fileno is not None
        self._add_time_entry()
        self._files.sync(self._fileno)
        self._close()
        self._write(INDEX_SUFFIX, self._index)
        self._write(TIME_INDEX_SUFFIX, self._time_index)
        if aborted:
            packed = [ABORTED_ENTRY.pack(ABORTED_VERSION, e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset)
                      for e in aborted]  # fmt: skip
            self._write(ABORTED_SUFFIX, b"".join(packed))
        else:
            self._files.unlink(self._path(ABORTED_SUFFIX))
        self._files.sync_directory(self._directory)

    def discard(self) -> None:
        """Remove the files of an unwanted segment."""
        self._close()
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX):
            self._files.unlink(self._path(suffix))

    def _close(self) -> None:
        if self._fileno is not None:
            self._files.close(self._fileno)
            self._fileno = None

    def _path(self, suffix: str) -> Path:
        return self._directory / (file_name(self.base_offset, suffix) + CLEANED_SUFFIX)

    def _write(self, suffix: str, data: Buffer) -> None:
        fileno = self._files.open(self._path(suffix), create=True)
        try:
            self._files.truncate(fileno, 0)
            write_all(self._files, fileno, data, 0)
            self._files.sync(fileno)
        finally:
            self._files.close(fileno)
