"""A segment: a stretch of the log in one file, with its two indexes.

Owns `<base offset>.log`, where batches lie end to end, `.index` and `.timeindex`; finds the batch that holds an offset or a time.

Rules
  1. Only the last segment of a log (the active one) grows; the others are sealed and change only by being removed.
  2. `size` is where the next batch goes. Bytes behind it (of a write that failed) do not exist.
  3. A lookup of an offset finds the first batch whose last offset is at or past it, so a gap left by compaction is stepped over.
  4. Of a sealed segment nothing is read, and no file opened, before somebody needs it: a log of a thousand segments opens in no time
     and takes a few hundred bytes of memory for each.

How it works: the sparse index has an entry for every `index.interval.bytes`. For the end of the active segment, which nearly
every reader is at, the last batches' positions are kept besides (`_recent_*`): there a lookup is one bisection and no read. Where a
reader further back stopped is remembered too (`trust`), for that is where it goes on.

Ugly: what rule 4 postpones are fields that are not set yet. `__getattr__`, which Python asks only for those, finds them out; so the
active segment's appends pay nothing for it. An index that contradicts its segment is noticed, and made anew, at that moment.
"""

from __future__ import annotations

import errno
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crc32c import crc32c

from barnabas.errors import CorruptLog
from barnabas.protocol.records.header import CRC_START, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, BatchHeader
from barnabas.storage.damaged_lookup import find_around
from barnabas.storage.files import Files, sync_file
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from barnabas.storage.index_repair import contradiction, rebuild_indexes
from barnabas.storage.trust import Trust
from barnabas.storage.verify import measure

if TYPE_CHECKING:
    from barnabas.protocol.records.scan import Run
    from barnabas.storage.open_files import OpenFiles

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
SNAPSHOT_SUFFIX = ".snapshot"
ABORTED_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX)

RECENT_BATCHES = 256  # positions kept for the end of the active segment: 4 kB
WALK_BYTES = 8 * 1024  # read at once when walking over headers: two index intervals
LARGE_BATCH_BYTES = 64 * 1024  # space is set aside for batches from this size on
RESERVED_BYTES = 4 * 1024 * 1024  # at once; takes 15 us
NEVER_AGAIN = 2**63 - 1
NO_TIMESTAMP = -1


class Position(NamedTuple):
    """Where a batch begins, and a bound on its base offset from below."""

    position: int
    base_offset: int


def file_name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


class Segment:
    """One segment; made by `Segment.create` or `Segment.existing`."""

    __slots__ = (
        "_fileno",
        "_recent_last",
        "_recent_positions",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "files",
        "first_timestamp",
        "index",
        "max_timestamp",
        "name_suffix",
        "next_offset",
        "offset_of_max_timestamp",
        "open_files",
        "pins",
        "reserved",
        "size",
        "synced",
        "time_index",
        "trust",
        "used",
    )

    index: SparseIndex
    time_index: SparseIndex
    max_timestamp: int
    offset_of_max_timestamp: int  # last offset of the batch that has it
    _recent_last: array[int]  # last offsets of the last batches
    _recent_positions: array[int]
    trust: Trust

    def __init__(self, files: Files, directory: Path, base_offset: int, created_ms: int, name_suffix: str = "") -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.name_suffix = name_suffix  # behind the names of its files, while it takes the place of others (compaction)
        self.size = 0
        self.reserved = 0  # up to this byte the file system has set space aside
        self.next_offset = base_offset
        self.first_timestamp: int | None = None  # of the first batch, once known; time to roll counts from it
        self.bytes_since_index_entry = 0
        self.synced = False  # whether its name is known to be durable
        self.pins = 0  # flushes under way, which use the descriptor: it must not be closed to save descriptors
        self.used = False  # since `open_files` last looked at it
        self.open_files: OpenFiles | None = None  # who bounds the number of open ones, while it is part of a log
        self._fileno: int | None = None

    @classmethod
    def create(cls, files: Files, directory: Path, base_offset: int, now_ms: int, reserved: int = 0) -> Segment:
        """A new, empty segment, ready to grow, with space for `reserved` bytes set aside. Files left under its name are emptied."""
        segment = cls(files, directory, base_offset, now_ms)
        segment._fileno = files.open(segment.path, create=True)
        try:
            files.truncate(segment._fileno, 0)
            segment.max_timestamp, segment.offset_of_max_timestamp = NO_TIMESTAMP, base_offset
            segment.trust = Trust(files, 0, segment.end_offset)
            segment.index, segment.time_index = segment.make_indexes()
            for index in (segment.index, segment.time_index):
                index.start_empty()
                index.write(exact=True)
        except OSError:
            segment.close()
            raise
        if reserved:
            segment.reserve(reserved, 0)
        return segment

    @classmethod
    def existing(cls, files: Files, directory: Path, base_offset: int, now_ms: int, name_suffix: str = "") -> Segment:
        """A sealed segment on disk, nothing of it known but its size."""
        segment = cls(files, directory, base_offset, now_ms, name_suffix)
        segment.size = files.file_size(segment.path)
        segment.synced = True
        return segment

    if not TYPE_CHECKING:  # a type checker would take any name for a field

        def __getattr__(self, name: str) -> Any:
            find_out = FOUND_OUT_LATER.get(name)
            if find_out is None:
                raise AttributeError(name)
            find_out(self)
            return object.__getattribute__(self, name)

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
        """The name of its file of that kind."""
        return file_name(self.base_offset, suffix) + self.name_suffix

    def drop_name_suffix(self) -> None:
        """Its files have their own names now."""
        self.name_suffix = ""
        self.index, self.time_index = self.make_indexes()
        self._open_indexes()

    def make_indexes(self) -> tuple[SparseIndex, SparseIndex]:
        """The two indexes, of which nothing is read yet."""
        return (
            SparseIndex(self.files, self.directory / self.index_name, OFFSET_ENTRY),
            SparseIndex(self.files, self.directory / self.time_index_name, TIME_ENTRY),
        )

    def _open_indexes(self) -> None:
        """Take the indexes of a sealed segment as their files have them, unless that cannot be."""
        self.index, self.time_index = self.make_indexes()
        if not self.has_index_files:
            for index in (self.index, self.time_index):
                index.start_empty()
            return
        self.index.load_sealed()
        self.time_index.load_sealed()
        wrong = contradiction(self.index, self.time_index, self.size)
        if wrong is not None:
            rebuild_indexes(self, wrong)

    def _open_max_timestamp(self) -> None:
        last = self.time_index.last()
        self.max_timestamp = last[0] if last else NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset + (last[1] if last else 0)

    def doubt_all(self) -> None:
        """What is there now came from the disk: it is verified before it is served."""
        self.trust = Trust(self.files, self.size, self.end_offset)

    def _open_recent(self) -> None:
        self._recent_last, self._recent_positions = array("q"), array("q")

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
        """The file is open, and read for whoever asks the log: the loop must not bring to memory what lies behind."""
        self.files.expect_random(fileno)
        open_files.opened(self)

    def appended(self, last_offset: int, size: int, max_timestamp: int, interval: int) -> None:
        """A batch of `size` bytes was written at `self.size`. `interval`: `index.interval.bytes`."""
        position = self.size
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_index_entry > interval:
            self.index.append(last_offset - self.base_offset, position)
            self.add_time_entry()
            self.bytes_since_index_entry = 0
        if len(self._recent_last) >= 2 * RECENT_BATCHES:
            del self._recent_last[:RECENT_BATCHES], self._recent_positions[:RECENT_BATCHES]
        self._recent_last.append(last_offset)
        self._recent_positions.append(position)
        self.bytes_since_index_entry += size
        self.size = position + size
        self.next_offset = last_offset + 1

    def appended_run(self, run: Run, first_offset: int, interval: int) -> None:
        """The batches of `run` were written at `self.size`, one behind the other; as `appended` for each of them."""
        position, next_offset, since = self.size, first_offset, self.bytes_since_index_entry
        add_last, add_position = self._recent_last.append, self._recent_positions.append
        for _, start, end, count, max_timestamp in run.batches:
            next_offset += count
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.offset_of_max_timestamp = next_offset - 1
            if since > interval:
                self.index.append(next_offset - 1 - self.base_offset, position)
                self.add_time_entry()
                since = 0
            add_last(next_offset - 1)
            add_position(position)
            size = end - start
            since += size
            position += size
        if len(self._recent_last) >= 2 * RECENT_BATCHES:
            del self._recent_last[:-RECENT_BATCHES], self._recent_positions[:-RECENT_BATCHES]
        self.bytes_since_index_entry = since
        self.size = position
        self.next_offset = next_offset

    def reserve(self, size: int, more: int = RESERVED_BYTES) -> None:
        """Have space set aside for the next `size` bytes and `more`, as far as the file system can.

        Writing to it takes a third less CPU than having blocks found page by page (measured on ext4 with batches of 900 kB). It is given
        back when the file is cut to its size, by a roll, a close or a recovery.
        """
        try:
            self.files.reserve(self.fileno, self.size, size + more)
        except OSError:  # unknown to this file system, or no room: then writing does without
            self.reserved = NEVER_AGAIN
        else:
            self.reserved = self.size + size + more

    def give_back(self) -> None:
        """Cut the file to its size, with what was reserved or half written behind."""
        self.files.truncate(self.fileno, self.size)
        self.reserved = 0

    def add_time_entry(self) -> None:
        """Note the largest timestamp so far, if it grew since the last entry."""
        last = self.time_index.last()
        if self.max_timestamp > (NO_TIMESTAMP if last is None else last[0]):
            self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)

    def end_offset(self) -> int:
        """The offset behind its last record, and behind a gap that follows it."""
        return self.next_offset

    def find(self, offset: int) -> Position | None:
        """The first batch whose last offset is at or past `offset`; None if there is none in this segment.

        Raises:
            CorruptLog: the batch that held it is damaged so that it cannot be told where it lies.
        """
        if self.trust.damages and (known := self.trust.damage_at(offset)) is not None:
            return Position(known.position, known.first_offset)
        recent = self._recent_last
        slot = bisect_left(recent, offset)
        if slot:  # an older batch is known, so none before is meant
            if slot == len(recent):
                return None
            return Position(self._recent_positions[slot], recent[slot - 1] + 1)
        if recent and not self._recent_positions[0]:
            return Position(0, self.base_offset)
        if offset <= self.base_offset and self.size:
            return Position(0, self.base_offset)
        end = self.trust.end_of_read(offset)
        if end is not None:
            return Position(end, offset)
        entry = self.index.floor(offset - self.base_offset)
        start = entry[1] if entry else 0
        if self.trust.damages:
            return self._find_around(offset, start)
        try:
            for position, header in self.walk(start):
                if header.base_offset + header.last_offset_delta >= offset:
                    if header.base_offset > offset or header.next_offset > self.next_offset:
                        # A gap of compaction, or a header or an index entry that lies.
                        return self._find_around(offset, start if position > start else 0)
                    return Position(position, header.base_offset)
        except CorruptLog:
            return self._find_around(offset, start)
        return self._find_around(offset, 0) if start >= self.size > 0 else None

    def _find_around(self, offset: int, start: int) -> Position | None:
        found = find_around(self, offset, start)
        return None if found is None else Position._make(found)

    def whole_batches_end(self, start: int, limit: int) -> int:
        """The end of a batch that ends at or before byte `limit`, of those from `start` on; `start` if there is none.

        It is that of the last such batch, or a little before it: the loop does not wait for what the disk alone has.
        """
        if limit >= self.size:
            return self.size
        recent = self._recent_positions
        if recent and recent[0] <= limit:
            return max(start, recent[bisect_right(recent, limit) - 1])
        entry = self.index.floor_by_value(limit)
        end = max(start, entry[1] if entry else 0)
        if end > start and not self._is_in_memory(end):
            self.trust.forget_behind(end, self.size)
            return end
        try:
            for position, header in self.walk(end):
                if position + header.batch_length + LENGTH_OVERHEAD > limit:
                    # Bytes that nobody has verified say nothing: the base offset is not even covered by the CRC.
                    if self.trust.covers(position, position + HEADER_SIZE):
                        self.trust.note_end(header.base_offset, position)
                    return position
        except CorruptLog as error:
            return error.position
        return end

    def may_be_cold(self, start: int, end: int) -> bool:
        """Whether the loop is not to look for a batch's end in the bytes [start, end): a thread has to read and verify them anyway."""
        recent = self._recent_positions
        if recent and recent[0] <= end:
            return False
        return not (self.trust.covers(start, end) and self._is_in_memory(start) and self._is_in_memory(end - 1))

    def _is_in_memory(self, position: int) -> bool:
        """Whether a header there can be read without waiting; True where the platform cannot tell."""
        try:
            self.files.preadv_nowait(self.fileno, [bytearray(HEADER_SIZE)], position)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def batch_size(self, position: int) -> int:
        """Bytes of the batch at `position`; where it is damaged, at least those of a header and at most what is left."""
        data = self.files.pread(self.fileno, LENGTH_OVERHEAD, position)
        size = int.from_bytes(data[8:12], "big", signed=True) + LENGTH_OVERHEAD
        return min(max(size, HEADER_SIZE), self.size - position)

    def walk(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from the batch at `position` on.

        Raises:
            CorruptLog: what lies there is not a batch.
        """
        data, start = b"", position
        while position < self.size:
            if position + HEADER_SIZE > start + len(data):
                data, start = self._read(min(WALK_BYTES, self.size - position), position), position
                if len(data) < HEADER_SIZE:
                    raise CorruptLog(str(self.path), position, "a header is cut off")
            header = BatchHeader._make(HEADER.unpack_from(data, position - start))
            end = position + header.batch_length + LENGTH_OVERHEAD
            if header.magic != MAGIC or header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD or end > self.size:
                raise CorruptLog(str(self.path), position, "no batch header")
            yield position, header
            position = end

    def _read(self, size: int, position: int) -> bytes:
        """Bytes of a batch; where the disk cannot read that many, those of a header.

        Raises:
            CorruptLog: the disk does not give a header's bytes there.
        """
        try:
            return self.files.pread(self.fileno, size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        try:
            return self.files.pread(self.fileno, min(size, HEADER_SIZE), position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise CorruptLog(str(self.path), position, "the disk cannot read it") from error

    def walk_around(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """As `walk`, stepping over what is damaged."""
        least_offset = self.base_offset
        while position < self.size:
            try:
                for position, header in self.walk(position):  # noqa: B020 - it goes on where the walk ended
                    yield position, header
                    least_offset = header.next_offset
                return
            except CorruptLog as error:
                damage = measure(self.files, self.fileno, error.position, least_offset, error.reason, self.size)
                position = damage.end

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """The bytes of a batch.

        Raises:
            CorruptLog: its CRC does not match.
        """
        data = self._read(header.size, position)
        if len(data) < header.size or crc32c(memoryview(data)[CRC_START:]) != header.crc:
            raise CorruptLog(str(self.path), position, f"the CRC of the batch at offset {header.base_offset} does not match")
        return data

    def find_time(self, timestamp: int) -> int:
        """A position at or before the first batch that holds a record at or after `timestamp`."""
        entry = self.time_index.floor(timestamp - 1)
        if entry is None:
            return 0
        index_entry = self.index.floor(entry[1])
        return index_entry[1] if index_entry else 0

    def activate(self) -> None:
        """Make the last segment of a log ready to grow again; what follows its last index entry is read.

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
        """Learn from the batches behind the index entry `entry` what only memory knows."""
        start = entry[1] if entry else 0
        batches = list(self.walk(start))
        for position, header in batches:
            self.read_batch(position, header)  # a header that lies about its offsets would mislead every lookup
        interval = self.size
        self.recount_from(start)
        for _, header in batches:
            self.appended(header.last_offset, header.size, header.max_timestamp, interval)

    def recount_from(self, position: int) -> None:
        """Go back to where the indexes end, at `position`; the batches behind it are to be `appended` again."""
        self._open_recent()
        self._open_max_timestamp()
        self.size, self.next_offset, self.bytes_since_index_entry = position, self.base_offset, 0

    def truncate(self, position: int) -> None:
        """Cut the active segment at `position`, where a batch begins or the segment ends."""
        self.size = position
        self.trust.cut(position)
        self.give_back()
        self.index.truncate_below(value=position)
        last = self.index.last()
        self.time_index.truncate_below(value=last[0] + 1 if last else 0)
        for index in (self.index, self.time_index):
            index.write(exact=True)
        self.recount(last)
        if not position:
            self.first_timestamp = None

    def load_first_timestamp(self) -> int | None:
        """Time of the first batch; None while the segment is empty."""
        if self.first_timestamp is None and self.size:
            _, header = next(self.walk_around(), (0, None))
            self.first_timestamp = header.max_timestamp if header is not None else None
        return self.first_timestamp

    def seal(self) -> None:
        """The segment no longer grows. Where the disk has no room for the indexes it stays as it is."""
        self.add_time_entry()
        self.write_indexes(exact=True)
        self.index.seal()
        self.time_index.seal()
        del self._recent_last, self._recent_positions

    def write_indexes(self, *, exact: bool = False) -> None:
        """Put what the indexes gained into their files, where they are still in memory."""
        self.index.write(exact=exact)
        self.time_index.write(exact=exact)

    def sync_records(self) -> None:
        """Block until the records written so far are on the disk; runs in a thread while the loop appends."""
        sync_file(self.files, self.path, self._fileno)
        if not self.synced:
            self.files.sync_directory(self.directory)
            self.synced = True

    def moved_to(self, directory: Path, *, index_entries: int = 0, time_index_entries: int = 0) -> Segment:
        """The same segment in another folder, to which its bytes were copied; a sealed one, or the active one.

        Args:
            index_entries, time_index_entries: how many entries of the active one's indexes the copied files hold.
        """
        moved = Segment(self.files, directory, self.base_offset, self.created_ms)
        moved.size, moved.next_offset, moved.synced = self.size, self.next_offset, True
        moved.first_timestamp = self.first_timestamp
        if not self.index.sealed:
            moved.bytes_since_index_entry = self.bytes_since_index_entry
            moved.max_timestamp, moved.offset_of_max_timestamp = self.max_timestamp, self.offset_of_max_timestamp
            moved._recent_last, moved._recent_positions = self._recent_last, self._recent_positions
            moved.index = self.index.moved_to(directory / self.index_name, index_entries)
            moved.time_index = self.time_index.moved_to(directory / self.time_index_name, time_index_entries)
        return moved

    def join(self, open_files: OpenFiles | None) -> None:
        """The segment is part of a log of which `open_files` counts the open files."""
        self.open_files = open_files
        if open_files is not None and self._fileno is not None:
            self._share(open_files, self._fileno)

    def leave(self) -> None:
        """The segment is part of no log any more; whoever took it out closes it."""
        if self.open_files is not None:
            self.open_files.forget(self)
            self.open_files = None

    def sync_indexes(self) -> None:
        """Block until the indexes are on the disk as they were last written."""
        self.index.sync()
        self.time_index.sync()

    def close(self) -> None:
        if self._fileno is not None:
            self.files.close(self._fileno)
            self._fileno = None
            if self.open_files is not None:
                self.open_files.forget(self)


FOUND_OUT_LATER: dict[str, Callable[[Segment], None]] = {
    "index": Segment._open_indexes,
    "time_index": Segment._open_indexes,
    "max_timestamp": Segment._open_max_timestamp,
    "offset_of_max_timestamp": Segment._open_max_timestamp,
    "_recent_last": Segment._open_recent,
    "_recent_positions": Segment._open_recent,
    "trust": Segment.doubt_all,
}
