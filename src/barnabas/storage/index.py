"""The sparse indexes of a segment: offset to file position, and timestamp to offset.

Owns `<base offset>.index` (entries of offset minus base offset int32 and position int32) and `.timeindex` (timestamp int64 and
offset minus base offset int32), big-endian, sorted in both columns, without header, as Kafka reads them.

Rules
  1. An entry says "a batch whose last offset is this begins here": a lookup of any offset finds a position at or before its
     batch.
  2. A time entry says "no batch before this offset is later than this timestamp"; timestamps and offsets never go down.
  3. `write` writes the entries of the active segment to the file, from time to time and at a flush, a roll and a close. After a crash
     the file is not trusted past the recovery point anyway, so a write for each entry would have no use.
  4. Only the last entries of an active index are in memory, whatever its size, and none of a sealed one: other entries are searched in
     the file. So an index takes memory only while it is used, and is opened without being read.
  5. For a reader that continues in order, the next entries are kept (`index_window`), because it will need them soon. Entries in the
     file change only by a truncation or by a reload, and both drop all windows.

Ugly: `write` runs in the flush thread while the loop adds entries. It writes a copy of the part that is not in the file yet, at its
place. Because of this thread, the loop drops old entries by replacing `_tail` in one step. A lock that all indexes share keeps the loop
from truncating or writing an index at the same time, for as long as a small write to the page cache takes.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from barnabas.storage.files import Files, sync_file, write_all
from barnabas.storage.index_window import MAX_WINDOWS, WINDOW_ENTRIES, IndexWindow, floor_in, window_of

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
MAX_RELATIVE_OFFSET = 2**31 - 1
WRITTEN_AT_ONCE = 512  # entries; a write of more would hold up the loop for over 0.1 ms
SEARCH_BLOCK = 32  # entries per read of a search in the file
KEPT_ENTRIES = 512  # written entries of an active index that stay in memory; they cover the last 2 MiB of a log
_writing = Lock()


class _Tail(NamedTuple):
    """The entries from number `first` on."""

    first: int
    keys: array[int]
    values: array[int]

    @property
    def total(self) -> int:
        """The number of all entries, with those that are only in the file."""
        return self.first + len(self.keys)


class SparseIndex:
    """A sorted file of pairs (key, value): the end is in memory while it grows, the rest is searched in the file."""

    __slots__ = ("_count", "_entry", "_files", "_tail", "_windows", "_written", "has_partial_entry", "path")

    def __init__(self, files: Files, path: Path, entry: struct.Struct) -> None:
        self._files = files
        self.path = path
        self._entry = entry
        self._tail: _Tail | None = None  # None if the index is sealed
        self._written = 0  # entries [0, _written) are in the file
        self._count = 0  # entries of a sealed index
        self._windows: tuple[IndexWindow, ...] = ()  # parts of the file that are kept in memory, the latest first
        self.has_partial_entry = False  # the file ended within an entry when it was loaded; that entry is ignored

    def __len__(self) -> int:
        return self._count if self._tail is None else self._tail.total

    @property
    def sealed(self) -> bool:
        return self._tail is None

    @property
    def size_bytes(self) -> int:
        return len(self) * self._entry.size

    @property
    def entry_bytes(self) -> int:
        return self._entry.size

    @property
    def written_bytes(self) -> int:
        """Bytes of the entries that are in the file for sure."""
        return (self._count if self._tail is None else self._written) * self._entry.size

    def keeps_behind(self, count: int) -> bool:
        """Whether all entries after the first `count` are in memory, so that an active index can continue in a copy without them."""
        return self._tail is not None and self._tail.first <= count

    def moved_to(self, path: Path, count: int) -> SparseIndex:
        """This active index, continued in the file `path`, which has its first `count` entries."""
        assert self.keeps_behind(count), "the copy has too few entries"
        moved = SparseIndex(self._files, path, self._entry)
        moved._tail, moved._written = self._tail, min(count, len(self))
        return moved

    def load_sealed(self) -> None:
        """Use the file as a sealed index."""
        self._tail, self._windows = None, ()
        self._count = self._entries_in_file()

    def start_empty(self) -> None:
        """Drop all entries, in the file too (at the next `write`)."""
        self._tail, self._written, self._windows = _Tail(0, array("q"), array("q")), 0, ()

    def load_active(self) -> None:
        """Continue after the entries in the file."""
        self._written, self._windows = self._entries_in_file(), ()
        self._tail = self._load_tail(self._written)

    def _entries_in_file(self) -> int:
        count, rest = divmod(self._files.file_size(self.path), self._entry.size)
        self.has_partial_entry = rest > 0
        return count

    def _load_tail(self, count: int) -> _Tail:
        """The last of the first `count` entries, from the file."""
        size, first = self._entry.size, max(0, count - KEPT_ENTRIES)
        if not count:
            return _Tail(0, array("q"), array("q"))
        fileno = self._files.open(self.path)
        try:
            data = self._files.pread(fileno, (count - first) * size, first * size)
        finally:
            self._files.close(fileno)
        pairs = list(self._entry.iter_unpack(data))
        return _Tail(first, array("q", (key for key, _ in pairs)), array("q", (value for _, value in pairs)))

    def append(self, key: int, value: int) -> None:
        tail = self._tail
        assert tail is not None, "a sealed index does not grow"
        tail.values.append(value)
        tail.keys.append(key)  # keys last: another thread counts the entries by their keys
        if tail.total - self._written >= WRITTEN_AT_ONCE:
            self._write_some(tail)

    def extend(self, keys: bytes, values: bytes) -> None:
        """As `append` for each pair, from columns of 8-byte numbers in the machine's byte order."""
        tail = self._tail
        assert tail is not None, "a sealed index does not grow"
        tail.values.frombytes(values)
        tail.keys.frombytes(keys)
        if tail.total - self._written >= WRITTEN_AT_ONCE:
            self._write_some(tail)

    def _write_some(self, tail: _Tail) -> None:
        """Write the entries to the file, and drop old ones from memory.

        An append must not fail because of its index, so the entries stay in memory. The flush, roll or close that needs them in the file
        gets the same error and can report it.
        """
        with suppress(OSError):
            self.write()
        if len(tail.keys) >= 2 * KEPT_ENTRIES:
            gone = min(self._written - tail.first, len(tail.keys) - KEPT_ENTRIES)
            self._tail = _Tail(tail.first + gone, tail.keys[gone:], tail.values[gone:])

    def first(self) -> tuple[int, int] | None:
        return self.entry(0) if len(self) else None

    def last(self) -> tuple[int, int] | None:
        count = len(self)
        return self.entry(count - 1) if count else None

    def entry(self, slot: int) -> tuple[int, int]:
        tail = self._tail
        if tail is not None and slot >= tail.first:
            return tail.keys[slot - tail.first], tail.values[slot - tail.first]
        fileno = self._files.open(self.path)
        try:
            return self._read(fileno, slot)
        finally:
            self._files.close(fileno)

    def floor(self, key: int) -> tuple[int, int] | None:
        """The last entry with a key at or below `key`."""
        return self._floor(key, 0)

    def floor_by_value(self, value: int, *, keeps_window: bool = False) -> tuple[int, int] | None:
        """The last entry with a value at or below `value`.

        Args:
            keeps_window: if the search reads the file, keep the entries that follow as a window, until `forget_windows`.
        """
        return self._floor(value, 1, keeps_window=keeps_window)

    def floor_in_windows(self, value: int) -> tuple[int, int] | None:
        """As `floor_by_value`, but from the windows only; None if they cannot tell."""
        return floor_in(self._windows, 1, value) if self._windows else None

    def forget_windows(self) -> None:
        """Drop the windows."""
        self._windows = ()

    def _floor(self, bound: int, column: int, *, keeps_window: bool = False) -> tuple[int, int] | None:
        """The last entry whose number in `column` (0: key, 1: value) is at or below `bound`."""
        tail = self._tail
        if tail is not None:
            slot = bisect_right(tail.values if column else tail.keys, bound) - 1
            if slot >= 0:
                return tail.keys[slot], tail.values[slot]
        entry = floor_in(self._windows, column, bound) if self._windows else None
        if entry is not None:
            return entry
        return self._search(self._count if tail is None else tail.first, column, bound, keeps_window=keeps_window)[1]

    def ceiling_by_value(self, value: int) -> tuple[int, int] | None:
        """The first entry with a value above `value`; reads a sealed index from its beginning, for rare use."""
        return next((pair for pair in map(self.entry, range(len(self))) if pair[1] > value), None)

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries of an active index."""
        with _writing:
            tail = self._tail
            assert tail is not None, "a sealed index is not truncated"
            self._written, self._windows = min(self._written, count), ()
            if count < tail.first:
                self._tail = self._load_tail(count)
            else:
                del tail.keys[count - tail.first :]
                del tail.values[count - tail.first :]

    def truncate_below(self, *, key: int | None = None, value: int | None = None) -> None:
        """Keep the entries with keys below `key`, or with values below `value`."""
        tail = self._tail
        assert tail is not None, "a sealed index is not truncated"
        column, bound = (0, key) if key is not None else (1, value)
        assert bound is not None
        kept = bisect_right(tail.values if column else tail.keys, bound - 1)
        self.truncate(tail.first + kept if kept else self._search(tail.first, column, bound - 1)[0])

    def write(self, *, exact: bool = False) -> None:
        """Write the entries added since the last call to the file; `exact` cuts off what an older file has after them."""
        with _writing:
            tail = self._tail
            if tail is None:
                return
            start, count = self._written, tail.total
            if start == count and not exact:
                return
            fileno = self._files.open(self.path, create=True)
            try:
                keys, values = (
                    tail.keys[start - tail.first : count - tail.first],
                    tail.values[start - tail.first : count - tail.first],
                )
                write_all(self._files, fileno, b"".join(map(self._entry.pack, keys, values)), start * self._entry.size)
                if exact:
                    self._files.truncate(fileno, count * self._entry.size)
            finally:
                self._files.close(fileno)
            self._written = count

    def seal(self) -> None:
        """Free the memory; everything is in the file."""
        if self._tail is not None:
            assert self._written == self._tail.total, "written before"
            self._count, self._tail = self._tail.total, None

    def sync(self) -> None:
        """Block until the written entries are on the disk."""
        if self._files.exists(self.path):
            sync_file(self._files, self.path)

    def _read(self, fileno: int, slot: int) -> tuple[int, int]:
        size = self._entry.size
        key, value = self._entry.unpack(self._files.pread(fileno, size, slot * size))
        return key, value

    def _search(self, count: int, column: int, bound: int, *, keeps_window: bool = False) -> tuple[int, tuple[int, int] | None]:
        """How many of the first `count` entries, all in the file, have at most `bound` in `column`, and the last of these.

        Offsets are spread nearly evenly, so the search begins at the block where the last entry suggests that `bound` is.
        """
        if not count:
            return 0, None
        fileno = self._files.open(self.path)
        try:
            low, high, floor = 0, count, None  # entries before `low` are at most `bound`; `floor` is the last of them
            middle = self._guess(fileno, count, column, bound)
            while low < high:
                start = max(low, min(middle - SEARCH_BLOCK // 2, high - SEARCH_BLOCK))
                block = self._read_block(fileno, start, min(start + SEARCH_BLOCK, high))
                found = bisect_right(block, bound, key=itemgetter(column))
                if found:
                    low, floor = start + found, block[found - 1]
                if found < len(block):
                    high = start + found
                middle = (low + high) // 2
            if keeps_window and low:
                self._keep_window(fileno, low - 1, count)
            return low, floor
        finally:
            self._files.close(fileno)

    def _keep_window(self, fileno: int, slot: int, count: int) -> None:
        """Keep a window of the entries from `slot` on; the first `count` entries are in the file."""
        size = min(WINDOW_ENTRIES, count - slot) * OFFSET_ENTRY.size
        data = self._files.pread(fileno, size, slot * OFFSET_ENTRY.size)
        if len(data) == size:
            self._windows = (window_of(data), *self._windows)[:MAX_WINDOWS]

    def _guess(self, fileno: int, count: int, column: int, bound: int) -> int:
        if self._entry is not OFFSET_ENTRY or count <= SEARCH_BLOCK:
            return count // 2
        last = self._read(fileno, count - 1)[column]
        return count * max(bound, 0) // last if last > 0 else count // 2

    def _read_block(self, fileno: int, start: int, stop: int) -> list[tuple[int, int]]:
        size = self._entry.size
        data = self._files.pread(fileno, (stop - start) * size, start * size)
        if len(data) != (stop - start) * size:
            raise struct.error("an index file that is shorter than it was")
        return list(self._entry.iter_unpack(data))
