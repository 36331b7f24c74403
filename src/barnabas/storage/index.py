"""The sparse indexes of a segment: from offset to file position, and from timestamp to offset.

Owns `<base offset>.index` (entries of offset minus base offset int32 and position int32) and `.timeindex` (timestamp int64 and
offset minus base offset int32), big-endian, sorted in both columns, without header, as Kafka reads them.

Rules
  1. An entry says "a batch whose last offset is this begins here": a lookup of any offset finds a position at or before its
     batch.
  2. A time entry says "no batch before this offset is later than this timestamp"; timestamps and offsets never go down.
  3. The entries of the active segment live in memory and are written to the file by `write`, now and then and at a flush, a
     roll and a close: after a crash the file is not trusted past the recovery point anyway, so a write for each entry would buy
     nothing.
  4. A sealed index holds nothing in memory: it is searched in the file, which a broker with a hundred thousand segments can
     afford.

Ugly: `write` runs in the flush thread while the loop adds entries. It writes a copy of the part that is not yet in the file,
at the place where it belongs, so that the loop doing the same at a roll changes nothing.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from barnabas.storage.files import Files, sync_file, write_all

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
MAX_RELATIVE_OFFSET = 2**31 - 1
WRITTEN_AT_ONCE = 512  # entries; more would hold up the loop for over 0.1 ms


class SparseIndex:
    """A sorted file of pairs (key, value), in memory while it grows and searched in the file once sealed."""

    def __init__(self, files: Files, path: Path, entry: struct.Struct) -> None:
        self._files = files
        self.path = path
        self._entry = entry
        self._keys: array[int] | None = None
        self._values: array[int] = array("q")
        self._written = 0  # entries [0, _written) are in the file
        self._count = 0  # of a sealed index

    def __len__(self) -> int:
        return self._count if self._keys is None else len(self._keys)

    @property
    def sealed(self) -> bool:
        return self._keys is None

    @property
    def size_bytes(self) -> int:
        return len(self) * self._entry.size

    def load_sealed(self) -> None:
        """Take the file as it is; entries cut in the middle are ignored."""
        self._keys, self._values = None, array("q")
        self._count = self._files.file_size(self.path) // self._entry.size

    def start_empty(self) -> None:
        """Forget all entries, in the file too (at the next `write`)."""
        self._keys, self._values, self._written = array("q"), array("q"), 0

    def load_active(self) -> None:
        """Read the file into memory, to go on adding."""
        data = self._files.read_file(self.path)
        whole = len(data) - len(data) % self._entry.size
        pairs = list(self._entry.iter_unpack(data[:whole]))
        self._keys, self._values = array("q", (key for key, _ in pairs)), array("q", (value for _, value in pairs))
        self._written = len(pairs)

    def append(self, key: int, value: int) -> None:
        assert self._keys is not None, "a sealed index does not grow"
        self._keys.append(key)
        self._values.append(value)
        if len(self._keys) - self._written >= WRITTEN_AT_ONCE:
            self.write()

    def last(self) -> tuple[int, int] | None:
        count = len(self)
        return self.entry(count - 1) if count else None

    def entry(self, slot: int) -> tuple[int, int]:
        if self._keys is not None:
            return self._keys[slot], self._values[slot]
        fileno = self._files.open(self.path)
        try:
            return self._read(fileno, slot)
        finally:
            self._files.close(fileno)

    def floor(self, key: int) -> tuple[int, int] | None:
        """The last entry with a key at or below `key`."""
        if self._keys is not None:
            slot = bisect_right(self._keys, key) - 1
            return (self._keys[slot], self._values[slot]) if slot >= 0 else None
        return self._search(lambda pair: pair[0] > key)

    def floor_by_value(self, value: int) -> tuple[int, int] | None:
        """The last entry with a value at or below `value`."""
        if self._keys is not None:
            slot = bisect_right(self._values, value) - 1
            return (self._keys[slot], self._values[slot]) if slot >= 0 else None
        return self._search(lambda pair: pair[1] > value)

    def ceiling_by_value(self, value: int) -> tuple[int, int] | None:
        """The first entry with a value above `value`; reads a sealed index from its beginning, for rare use."""
        return next((pair for pair in map(self.entry, range(len(self))) if pair[1] > value), None)

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries of an active index."""
        assert self._keys is not None, "a sealed index is not truncated"
        del self._keys[count:]
        del self._values[count:]
        self._written = min(self._written, count)

    def truncate_below(self, *, key: int | None = None, value: int | None = None) -> None:
        """Keep the entries with keys below `key`, or with values below `value`."""
        assert self._keys is not None, "a sealed index is not truncated"
        column, bound = (self._keys, key) if key is not None else (self._values, value)
        assert bound is not None
        self.truncate(bisect_right(column, bound - 1))

    def write(self, *, exact: bool = False) -> None:
        """Put the entries added since the last time into the file; `exact` cuts what an older file has behind them."""
        keys = self._keys
        if keys is None:
            return
        start, count = self._written, len(keys)
        if start == count and not exact:
            return
        fileno = self._files.open(self.path, create=True)
        try:
            pack = self._entry.pack
            write_all(
                self._files, fileno, b"".join(map(pack, keys[start:count], self._values[start:count])), start * self._entry.size
            )
            if exact:
                self._files.truncate(fileno, count * self._entry.size)
        finally:
            self._files.close(fileno)
        self._written = max(self._written, count)

    def seal(self) -> None:
        """Write everything and let go of the memory."""
        if self._keys is not None:
            self.write(exact=True)
            self._count, self._keys, self._values = len(self._keys), None, array("q")

    def sync(self) -> None:
        """Write and block until it is on the disk."""
        self.write()
        if self._files.exists(self.path):
            sync_file(self._files, self.path)

    def _read(self, fileno: int, slot: int) -> tuple[int, int]:
        size = self._entry.size
        key, value = self._entry.unpack(self._files.pread(fileno, size, slot * size))
        return key, value

    def _search(self, is_past: Callable[[tuple[int, int]], bool]) -> tuple[int, int] | None:
        if not self._count:
            return None
        fileno = self._files.open(self.path)
        try:
            low, high = 0, self._count
            while low < high:
                middle = (low + high) // 2
                if is_past(self._read(fileno, middle)):
                    high = middle
                else:
                    low = middle + 1
            return self._read(fileno, low - 1) if low else None
        finally:
            self._files.close(fileno)
