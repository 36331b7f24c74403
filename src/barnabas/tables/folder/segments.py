"""One segment of a log as a reader sees it: its file, its aborted transactions, and the positions that its indexes tell.

Rules
  1. A segment is the file that it was found to be. If compaction or retention took the name away, a held descriptor still reads the
     old file; without one the segment raises `SegmentGone`.
  2. An index belongs to the segment only if the log's name still leads to the segment's file after the index was opened: a compaction
     renames the indexes before the log.
  3. An index only tells where to begin. A reader goes on over batch headers, so an index that is missing costs time and no record.
  4. A broker writes an index some hundred entries at a time. For batches that it does not have yet, a segment keeps marks of its own.
"""

from __future__ import annotations

import os
import struct
import weakref
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from barnabas.columnar.batches import Longs
from barnabas.errors import BarnabasError
from barnabas.lazy_module import LazyModule
from barnabas.limits import MAX_HELD_SEGMENTS
from barnabas.protocol.records.batch_header import HEADER_SIZE, MAGIC, read_header
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.segment.file_names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, file_name
from barnabas.storage.transaction_index import ENTRY

if TYPE_CHECKING:
    from barnabas.protocol.records import kernels as k
else:
    k = LazyModule("barnabas.protocol.records.kernels")

ABORTED_ENTRY = np.dtype([("version", ">i2"), ("producer_id", ">i8"), ("first", ">i8"), ("last", ">i8"), ("stable", ">i8")])
NO_ABORTED: Longs = np.empty((0, 3), np.int64)
MARK_BYTES = 64 << 10  # between two marks
NO_ENTRY_MARK = 2**62  # sorts behind every entry: Kafka's active indexes end in zeros


class SegmentGone(BarnabasError):
    """The file of a segment has another name by now, or none."""


class FileId(NamedTuple):
    """Tells a file from a later one of the same name."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileId:
        return cls(status.st_dev, status.st_ino)


class HeldFiles:
    """The descriptors that keep segments readable; beyond the limit segments are opened when they are read.

    There is no lock: the garbage collector may release a descriptor at any point of the code here. Threads that hold files at the
    same time may pass the limit by one each.
    """

    def __init__(self, limit: int = MAX_HELD_SEGMENTS) -> None:
        self.limit = limit
        self._filenos: set[int] = set()

    @property
    def count(self) -> int:
        return len(self._filenos)

    def has_room(self) -> bool:
        return len(self._filenos) < self.limit

    def keep(self, owner: LogSegment, fileno: int) -> None:
        """Close a descriptor when its owner is freed."""
        self._filenos.add(fileno)
        weakref.finalize(owner, self._release, fileno)

    def _release(self, fileno: int) -> None:
        self._filenos.discard(fileno)  # first: the number may be used again as soon as it is closed
        os.close(fileno)


HELD = HeldFiles()


class LogSegment:
    """A segment of a partition's folder.

    Args:
        name_suffix: behind the names of its files, while it takes the place of others (compaction).
        aborted: producer id, first and last offset of its aborted transactions, int64[n, 3].
    """

    def __init__(self, folder: Path, base_offset: int, name_suffix: str, identity: FileId, aborted: Longs) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.name_suffix = name_suffix
        self.identity = identity
        self.aborted = aborted
        self._held: int | None = None
        self._marks: Longs = np.empty((0, 2), np.int64)  # last offset minus base offset, and position, of some batches

    @property
    def path(self) -> Path:
        return self._path(LOG_SUFFIX)

    def _path(self, suffix: str) -> Path:
        return self.folder / (file_name(self.base_offset, suffix) + self.name_suffix)

    def hold(self) -> None:
        """Keep the file open as long as this object lives, if the limit allows it. Raises SegmentGone."""
        if self._held is None and HELD.has_room():
            self._held = self._open()
            HELD.keep(self, self._held)

    def _open(self) -> int:
        try:
            fileno = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise SegmentGone(str(self.path)) from error
        if FileId.of(os.fstat(fileno)) != self.identity:
            os.close(fileno)
            raise SegmentGone(str(self.path))
        return fileno

    @contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor of the log. Raises SegmentGone."""
        if self._held is not None:
            yield self._held
            return
        fileno = self._open()
        try:
            yield fileno
        finally:
            os.close(fileno)

    def has_its_name(self) -> bool:
        """Whether the log's name leads to this file."""
        try:
            return FileId.of(os.stat(self.path)) == self.identity
        except FileNotFoundError:
            return False

    # Positions

    def mark(self, position: int, table: Longs) -> None:
        """Remember where some batches begin. Not for several threads at once, but others may look for positions meanwhile.

        Args:
            position: of the first byte to which the positions of the batches belong.
            table: their headers, see `columnar.batches.batch_table`.
        """
        starts = table[:, k.POSITION] + position
        last = self._marks[-1, 1] if len(self._marks) else -1
        first = np.searchsorted(starts, last, "right")
        rows = first + np.flatnonzero(np.diff(starts[first:] // MARK_BYTES, prepend=last // MARK_BYTES))
        lasts = table[rows, k.BASE_OFFSET] + table[rows, k.LAST_DELTA] - self.base_offset
        self._marks = np.concatenate([self._marks, np.stack([lasts, starts[rows]], axis=1)])

    def start_position(self, fileno: int, offset: int) -> int:
        """A position at or before the first batch with records from `offset` on."""
        delta, marks = offset - self.base_offset, self._marks
        slot = int(np.searchsorted(marks[:, 0], delta, "right")) - 1
        if slot >= 0 and self._is_batch(fileno, *(mark := marks[slot].tolist())):
            return int(mark[1])
        entry = self._floor(INDEX_SUFFIX, delta)
        return entry[1] if entry is not None and self._is_batch(fileno, *entry) else 0

    def end_position(self, offset: int) -> int | None:
        """A position that is likely behind the batches with records below `offset`; None if there is none but the end of the file."""
        delta, marks = offset - self.base_offset, self._marks
        slot = int(np.searchsorted(marks[:, 0], delta - 1))
        if slot + 1 < len(marks) and slot:
            return int(marks[slot + 1, 1])
        with self._index(INDEX_SUFFIX) as index:
            entry = index.entry(index.first_from(delta - 1) + 1)
            return entry[1] if entry is not None and entry[1] > 0 else None

    def time_position(self, fileno: int, timestamp_ms: int) -> int:
        """A position at or before the first batch with a record at or after this time."""
        entry = self._floor(TIME_INDEX_SUFFIX, timestamp_ms - 1)
        return self.start_position(fileno, self.base_offset + entry[1]) if entry is not None else 0

    def latest_time_ms(self) -> int | None:
        """The largest timestamp of a sealed segment, None if the index does not tell."""
        with self._index(TIME_INDEX_SUFFIX) as index:
            entry = index.entry(index.count - 1)
            return entry[0] if entry is not None else None

    def last_indexed_position(self, fileno: int) -> int:
        """The position of a batch that surely was written as a whole, as its index entry was; 0 if none is known."""
        with self._index(INDEX_SUFFIX) as index:
            entry = index.entry(index.first_from(NO_ENTRY_MARK) - 1)
            return entry[1] if entry is not None and self._is_batch(fileno, *entry) else 0

    def _floor(self, suffix: str, key: int) -> tuple[int, int] | None:
        """The last entry with a key at or below `key`."""
        with self._index(suffix) as index:
            return index.entry(index.first_from(key + 1) - 1)

    def _is_batch(self, fileno: int, last_offset_delta: int, position: int) -> bool:
        """Whether a batch with this last offset begins at `position`: an index that a loss of power left may lie."""
        data = os.pread(fileno, HEADER_SIZE, position) if position >= 0 else b""
        if len(data) < HEADER_SIZE:
            return False
        header = read_header(data)
        return header.magic == MAGIC and header.last_offset == self.base_offset + last_offset_delta

    @contextmanager
    def _index(self, suffix: str) -> Iterator[IndexFile]:
        entry = OFFSET_ENTRY if suffix == INDEX_SUFFIX else TIME_ENTRY
        try:
            fileno = os.open(self._path(suffix), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield IndexFile(None, entry)
            return
        try:
            yield IndexFile(fileno if self.has_its_name() else None, entry)
        finally:
            os.close(fileno)


class IndexFile:
    """A file of sorted pairs of key and value.

    Args:
        fileno: None for an index without entries.
    """

    def __init__(self, fileno: int | None, entry: struct.Struct) -> None:
        self._fileno, self._entry = fileno, entry
        self.count = 0 if fileno is None else os.fstat(fileno).st_size // entry.size

    def entry(self, slot: int) -> tuple[int, int] | None:
        """The pair in a slot; None if there is none."""
        if self._fileno is None or not 0 <= slot < self.count:
            return None
        data = os.pread(self._fileno, self._entry.size, slot * self._entry.size)
        if len(data) < self._entry.size:
            return None
        key, value = self._entry.unpack(data)
        return None if slot and not key and not value else (key, value)

    def first_from(self, key: int) -> int:
        """The first slot with a key at or above `key`, or the number of entries."""
        return bisect_left(range(self.count), key, key=self._key)

    def _key(self, slot: int) -> int:
        found = self.entry(slot)
        return NO_ENTRY_MARK if found is None else found[0]


def read_aborted(path: Path) -> Longs:
    """The entries of a file of aborted transactions, int64[n, 3]; none if there is no such file."""
    with suppress(FileNotFoundError):
        data = path.read_bytes()
        entries = np.frombuffer(data[: len(data) - len(data) % ENTRY.size], ABORTED_ENTRY)
        return np.stack([entries[name].astype(np.int64) for name in ("producer_id", "first", "last")], axis=1)
    return NO_ABORTED
