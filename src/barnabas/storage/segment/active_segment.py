"""The segment at the end of a log: appends to it, truncation, and sealing.

Rules
  1. Only the last segment of a log (the active one) grows; the others are sealed and change only by being removed.
  2. `size` is the position of the next batch. Bytes after it (of a failed write) do not count.

Ugly: fields of a sealed segment that are not known yet are not set, and neither are its parts. Python calls `__getattr__` only for such
fields, and it computes them. So the active segment's appends pay nothing for it, and a segment that nobody reads takes a few hundred
bytes of memory. At that moment, an index that contradicts its segment is noticed and rebuilt.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.errors import CorruptLog
from barnabas.protocol.records.scan import walker
from barnabas.storage.files import Files
from barnabas.storage.index_repair import contradiction, rebuild_indexes
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.storage.segment.batch_scan import BatchScan
from barnabas.storage.segment.file_names import ABORTED_SUFFIX, SUFFIXES, file_name
from barnabas.storage.segment.lookup import SegmentLookup
from barnabas.storage.segment.segment_file import NO_TIMESTAMP, SegmentFile

RECENT_BATCHES = 256  # the last batches whose positions stay in memory, at least this many: 4 kB
LARGE_BATCH_BYTES = 64 * 1024  # reserve space for batches of at least this size
RESERVED_BYTES = 4 * 1024 * 1024  # per reservation; takes 15 us
NEVER_AGAIN = 2**63 - 1


class Segment(SegmentFile):
    """One segment; created by `Segment.create` or `Segment.existing`."""

    __slots__ = ("lookup", "scan")

    scan: BatchScan
    lookup: SegmentLookup

    @classmethod
    def create(cls, files: Files, directory: Path, base_offset: int, now_ms: int, reserved: int = 0) -> Segment:
        """A new, empty segment, ready to grow, with space for `reserved` bytes. Old files with its names are emptied; if one file cannot
        be created, none stays."""
        segment = cls(files, directory, base_offset, now_ms)
        segment._fileno = files.open(segment.path, create=True)
        try:
            files.truncate(segment._fileno, 0)
            segment.max_timestamp, segment.offset_of_max_timestamp, segment.written_ms = NO_TIMESTAMP, base_offset, now_ms
            segment.integrity = SegmentIntegrity(files, 0, segment.end_offset)
            segment.index, segment.time_index = segment.make_indexes()
            for index in (segment.index, segment.time_index):
                index.start_empty()
                index.write(exact=True)
        except OSError:
            segment.discard()
            raise
        if reserved:
            segment.reserve(reserved, 0)
        return segment

    def discard(self) -> None:
        """Remove the files of a segment, except the snapshot; at a later start its name would end the segment before it too early."""
        self.close()
        for suffix in SUFFIXES:
            self.files.unlink(self.directory / file_name(self.base_offset, suffix))

    @classmethod
    def existing(cls, files: Files, directory: Path, base_offset: int, now_ms: int, name_suffix: str = "") -> Segment:
        """A sealed segment on disk; only its size is known."""
        segment = cls(files, directory, base_offset, now_ms, name_suffix)
        segment.size = files.file_size(segment.path)
        segment.synced = True
        return segment

    def appended(self, last_offset: int, size: int, max_timestamp: int, interval: int) -> None:
        """Record that a batch of `size` bytes was written at `self.size`. `interval`: `index.interval.bytes`."""
        position = self.size
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_index_entry > interval:
            self.index.append(last_offset - self.base_offset, position)
            self.add_time_entry()
            self.bytes_since_index_entry = 0
        if len(self.recent_last) >= 2 * RECENT_BATCHES:
            del self.recent_last[:RECENT_BATCHES], self.recent_positions[:RECENT_BATCHES]
        self.recent_last.append(last_offset)
        self.recent_positions.append(position)
        self.bytes_since_index_entry += size
        self.size = position + size
        self.next_offset = last_offset + 1

    def appended_many(self, described: bytes | bytearray, interval: int) -> None:
        """As `appended`, for batches one after the other: `described` has a `rows.DESCRIBED` for each."""
        lasts, positions, keys, values, times, time_values, *state = walker.note_batches(
            described,
            self.size,
            self.bytes_since_index_entry,
            interval,
            self.base_offset,
            self.next_offset - 1,
            self.max_timestamp,
            self.offset_of_max_timestamp,
            self._noted_timestamp(),
        )
        if keys:
            self.index.extend(keys, values)
        if times:
            self.time_index.extend(times, time_values)
        self.recent_last.frombytes(lasts)
        self.recent_positions.frombytes(positions)
        if len(self.recent_last) >= 2 * RECENT_BATCHES:
            del self.recent_last[:-RECENT_BATCHES], self.recent_positions[:-RECENT_BATCHES]
        self.size, self.bytes_since_index_entry, last, self.max_timestamp, self.offset_of_max_timestamp = state
        self.next_offset = last + 1

    def reserve(self, size: int, more: int = RESERVED_BYTES) -> None:
        """Reserve space for the next `size` bytes and `more`, as far as the file system can.

        Writing to reserved space takes a third less CPU: the file system need not find blocks page by page (measured on ext4, batches of
        900 kB). The space is freed when the file is cut to its size, by a roll, a close or a recovery.
        """
        try:
            self.files.reserve(self.fileno, self.size, size + more)
        except OSError:  # the file system cannot reserve, or is full: write without a reservation
            self.reserved = NEVER_AGAIN
        else:
            self.reserved = self.size + size + more

    def give_back(self) -> None:
        """Cut the file to its size, without reserved or half-written bytes after it."""
        self.files.truncate(self.fileno, self.size)
        self.reserved = 0

    def add_time_entry(self) -> None:
        """Add an entry for the largest timestamp so far, if it grew since the last entry."""
        if self.max_timestamp > self._noted_timestamp():
            self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)

    def _noted_timestamp(self) -> int:
        """The timestamp of the last time entry."""
        last = self.time_index.last()
        return NO_TIMESTAMP if last is None else last[0]

    def activate(self) -> None:
        """Make the last segment of a log ready to grow again; reads the batches after its last index entry.

        Raises:
            CorruptLog: the indexes contradict the segment, or no batches follow the last index entry.
        """
        self.index, self.time_index = self.make_indexes()
        self.doubt_all()
        for index in (self.index, self.time_index):
            index.load_active()
        wrong = contradiction(self.index, self.time_index, self.size)
        if wrong is not None:
            raise CorruptLog(str(self.path), 0, wrong)
        self.recount(self.index.last())

    def recount(self, entry: tuple[int, int] | None) -> None:
        """Compute the state that is only in memory from the batches after the index entry `entry`."""
        start = entry[1] if entry else 0
        batches = list(self.scan.walk(start))
        for position, header in batches:
            self.scan.read_batch(position, header)  # checks the offsets, because a wrong header would mislead every lookup
        interval = self.size
        self.recount_from(start)
        for _, header in batches:
            self.appended(header.last_offset, header.size, header.max_timestamp, interval)

    def recount_from(self, position: int) -> None:
        """Go back to `position`, where the indexes end; the caller calls `appended` again for the batches after it."""
        self._open_recent()
        self._open_max_timestamp()
        self.size, self.next_offset, self.bytes_since_index_entry = position, self.base_offset, 0

    def truncate(self, position: int) -> None:
        """Cut the active segment at `position`, where a batch begins or the segment ends."""
        self.size = position
        self.integrity.cut(position)
        self.give_back()
        self.index.truncate_below(value=position)
        last = self.index.last()
        self.time_index.truncate_below(value=last[0] + 1 if last else 0)
        for index in (self.index, self.time_index):
            index.write(exact=True)
        self.recount(last)
        if not position:
            self.first_timestamp = None

    def seal(self) -> None:
        """End the growth of the segment; if the disk has no space for the indexes, the segment stays as it is."""
        self.add_time_entry()
        self.write_indexes(exact=True)
        self.index.seal()
        self.time_index.seal()
        del self.recent_last, self.recent_positions

    def moved_to(self, directory: Path, *, index_entries: int = 0, time_index_entries: int = 0) -> Segment:
        """The same segment, sealed or active, in another folder, to which its bytes were copied.

        Args:
            index_entries, time_index_entries: for the active segment, the number of index entries in the copied files.
        """
        moved = Segment(self.files, directory, self.base_offset, self.created_ms)
        moved.size, moved.next_offset, moved.synced = self.size, self.next_offset, True
        moved.first_timestamp = self.first_timestamp
        if not self.index.sealed:
            moved.bytes_since_index_entry = self.bytes_since_index_entry
            moved.max_timestamp, moved.offset_of_max_timestamp = self.max_timestamp, self.offset_of_max_timestamp
            moved.recent_last, moved.recent_positions = self.recent_last, self.recent_positions
            moved.index = self.index.moved_to(directory / self.index_name, index_entries)
            moved.time_index = self.time_index.moved_to(directory / self.time_index_name, time_index_entries)
        return moved

    def leave(self) -> None:
        """As `SegmentFile.leave`; also drops the parts that refer back to the segment, so that reference counting frees it."""
        super().leave()
        for part in ("lookup", "scan"):
            if self.knows(part):
                delattr(self, part)
        if self.knows("integrity"):
            self.integrity.end_offset = partial(int, self.next_offset)

    # Values computed on first use

    if not TYPE_CHECKING:  # hidden, because a type checker would accept any attribute name

        def __getattr__(self, name: str) -> Any:
            find_out = FOUND_OUT_LATER.get(name)
            if find_out is None:
                raise AttributeError(name)
            find_out(self)
            return object.__getattribute__(self, name)

    def knows(self, name: str) -> bool:
        """Whether a field that is computed late is set already."""
        try:
            object.__getattribute__(self, name)
        except AttributeError:
            return False
        return True

    def load_first_timestamp(self) -> int | None:
        """Time of the first batch; None while the segment is empty."""
        if self.first_timestamp is None and self.size:
            _, header = next(self.scan.walk_around(), (0, None))
            self.first_timestamp = header.max_timestamp if header is not None else None
        return self.first_timestamp

    def drop_name_suffix(self) -> None:
        """Use the files under their own names from now on."""
        self.name_suffix = ""
        self.index, self.time_index = self.make_indexes()
        self._open_indexes()

    def doubt_all(self) -> None:
        """Verify all present records before they are served, because they came from the disk."""
        self.integrity = SegmentIntegrity(self.files, self.size, self.end_offset)

    def _open_indexes(self) -> None:
        """Open the indexes of a sealed segment as they are in the files; rebuilds indexes that cannot be right."""
        self.index, self.time_index = self.make_indexes()
        if not self.has_index_files:
            for index in (self.index, self.time_index):
                index.start_empty()
            return
        self.index.load_sealed()
        self.time_index.load_sealed()
        wrong = contradiction(self.index, self.time_index, self.size)
        if wrong is not None:
            self._mend_indexes(wrong)

    def _mend_indexes(self, reason: str) -> None:
        """Rebuild the indexes, which contradict the segment."""
        rebuild_indexes(
            self.index, self.time_index, self.scan.walk_around(), path=self.path, base_offset=self.base_offset, reason=reason
        )

    def _look_for_aborted(self) -> None:
        self.has_aborted = self.files.exists(self.directory / self.name_of(ABORTED_SUFFIX))

    def _open_max_timestamp(self) -> None:
        last = self.time_index.last()
        self.max_timestamp = last[0] if last else NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset + (last[1] if last else 0)

    def _open_written_ms(self) -> None:
        self.written_ms = self.files.modified_ms(self.path)

    def _open_recent(self) -> None:
        self.recent_last, self.recent_positions = array("q"), array("q")

    def _make_scan(self) -> None:
        self.scan = BatchScan(self)

    def _make_lookup(self) -> None:
        self.lookup = SegmentLookup(self, self.scan)


FOUND_OUT_LATER: dict[str, Callable[[Segment], None]] = {
    "has_aborted": Segment._look_for_aborted,
    "index": Segment._open_indexes,
    "time_index": Segment._open_indexes,
    "max_timestamp": Segment._open_max_timestamp,
    "offset_of_max_timestamp": Segment._open_max_timestamp,
    "recent_last": Segment._open_recent,
    "recent_positions": Segment._open_recent,
    "integrity": Segment.doubt_all,
    "written_ms": Segment._open_written_ms,
    "scan": Segment._make_scan,
    "lookup": Segment._make_lookup,
}
