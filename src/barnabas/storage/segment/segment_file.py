"""The files of a segment: their names, and when they are opened and closed.

Rule: no file of a sealed segment is opened before it is needed, so a log of a thousand segments opens quickly.
"""

from __future__ import annotations

from array import array
from pathlib import Path

from barnabas.storage.files import Files, sync_file
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segment.file_names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, file_name

NO_TIMESTAMP = -1


class SegmentFile:
    """The files of one segment, and their known state."""

    __slots__ = (
        "_fileno",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "files",
        "first_timestamp",
        "has_aborted",
        "index",
        "integrity",
        "max_timestamp",
        "name_suffix",
        "next_offset",
        "offset_of_max_timestamp",
        "open_files",
        "pins",
        "recent_last",
        "recent_positions",
        "reserved",
        "size",
        "synced",
        "time_index",
        "used",
        "written_ms",
    )

    has_aborted: bool  # whether the segment has a `.txnindex` file
    index: SparseIndex
    time_index: SparseIndex
    max_timestamp: int
    offset_of_max_timestamp: int  # last offset of the batch with `max_timestamp`
    recent_last: array[int]  # last offsets of the latest batches
    recent_positions: array[int]
    integrity: SegmentIntegrity
    written_ms: int  # time of the last append in ms; `append_run` does not set it, because its records have timestamps

    def __init__(self, files: Files, directory: Path, base_offset: int, created_ms: int, name_suffix: str = "") -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.name_suffix = name_suffix  # suffix of the file names while the segment replaces others (compaction)
        self.size = 0
        self.reserved = 0  # the file system has reserved space up to this byte
        self.next_offset = base_offset
        self.first_timestamp: int | None = None  # of the first batch, once known; the age for a roll counts from it
        self.bytes_since_index_entry = 0
        self.synced = False  # whether the file name is known to be durable
        self.pins = 0  # running flushes; they use the descriptor, so it must stay open
        self.used = False  # since `open_files` last looked at this segment
        self.open_files: OpenFiles | None = None  # bounds the number of open files; None outside a log
        self._fileno: int | None = None

    @property
    def path(self) -> Path:
        return self.directory / self.name_of(LOG_SUFFIX)

    @property
    def index_name(self) -> str:
        return self.name_of(INDEX_SUFFIX)

    @property
    def time_index_name(self) -> str:
        return self.name_of(TIME_INDEX_SUFFIX)

    def name_of(self, suffix: str) -> str:
        """The name of the segment's file with this suffix."""
        return file_name(self.base_offset, suffix) + self.name_suffix

    def make_indexes(self) -> tuple[SparseIndex, SparseIndex]:
        """The two indexes; nothing is read from them yet."""
        return (
            SparseIndex(self.files, self.directory / self.index_name, OFFSET_ENTRY),
            SparseIndex(self.files, self.directory / self.time_index_name, TIME_ENTRY),
        )

    @property
    def has_index_files(self) -> bool:
        return all(self.files.exists(self.directory / name) for name in (self.index_name, self.time_index_name))

    @property
    def fileno(self) -> int:
        if self._fileno is None:
            self._fileno = self.files.open(self.path)
            if self.open_files is not None:
                self._share(self.open_files, self._fileno)
        self.used = True
        return self._fileno

    def _share(self, open_files: OpenFiles, fileno: int) -> None:
        """Prepare the open file for reads of many clients: a read on the loop must not load the bytes after it into memory."""
        self.files.expect_random(fileno)
        open_files.opened(self)

    def join(self, open_files: OpenFiles | None) -> None:
        """Make the segment part of a log whose open files `open_files` counts."""
        self.open_files = open_files
        if open_files is not None and self._fileno is not None:
            self._share(open_files, self._fileno)

    def leave(self) -> None:
        """Take the segment out of its log; the caller closes it."""
        if self.open_files is not None:
            self.open_files.forget(self)
            self.open_files = None

    @property
    def newest_ms(self) -> int:
        """The time from which its age counts: the largest timestamp of its records or, if none has one, the last write."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.written_ms

    def end_offset(self) -> int:
        """The offset after its last record, and after a gap that follows it."""
        return self.next_offset

    def write_indexes(self, *, exact: bool = False) -> None:
        """Write the new entries of the indexes to their files, if they are only in memory."""
        self.index.write(exact=exact)
        self.time_index.write(exact=exact)

    def sync_records(self) -> None:
        """Block until the records written so far are on the disk; runs in a thread while the loop appends."""
        sync_file(self.files, self.path, self._fileno)
        if not self.synced:
            self.files.sync_directory(self.directory)
            self.synced = True

    def sync_indexes(self) -> None:
        """Block until the written indexes are on the disk."""
        self.index.sync()
        self.time_index.sync()

    def close(self) -> None:
        if self._fileno is not None:
            self.files.close(self._fileno)
            self._fileno = None
            if self.open_files is not None:
                self.open_files.forget(self)
