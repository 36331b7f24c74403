"""A simulated disk that models the result of a power failure at any moment.

Owns files and folders, each in two states: the state in the page cache, which processes see, and the state on the platter. It
also has the changes between the two states, in their order.

Rules
  1. Only a sync of the file makes its bytes and its size durable. Only a sync of the folder makes names durable.
  2. After a power cut each sector with unsynced writes has its old content or that of one of these writes. The size of the file
     is one of its earlier sizes: the disk keeps changes of size in order, like a journal. In a file that grew, a sector without
     a write contains zeros.
  3. After a power cut a folder has any subset of its unsynced changes of names. A rename is atomic.
  4. `tear` damages a file that was synced, like a file system that reported a sync it did not do. The simulation does this to
     files that a broker can create again.
  5. A failed sync writes a part of the changes and forgets the rest, as in Linux. Processes can read the rest until a power cut
     or until the cache is dropped.

How it works: a sync applies all changes to the platter's state, a power cut some of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from random import Random

from msgspec import Struct, field

SECTOR_BYTES = 512


class CrashOutcome(Enum):
    """The effect of a power cut on the unsynced changes of one file or folder."""

    KEPT = "kept"
    LOST = "lost"
    PREFIX = "prefix"  # the first changes; the last of them is torn
    MIXED = "mixed"  # any subset of the changes


CRASH_OUTCOMES = (
    CrashOutcome.KEPT,
    CrashOutcome.LOST,
    CrashOutcome.PREFIX,
    CrashOutcome.PREFIX,
    CrashOutcome.MIXED,
    CrashOutcome.MIXED,
)


class Write(Struct):
    """`data` was written at the byte `position`."""

    position: int
    data: bytes

    def sectors(self) -> Iterator[tuple[int, bytes]]:
        """The write, split at the borders of sectors."""
        start = 0
        while start < len(self.data):
            position = self.position + start
            stop = min(len(self.data), start + SECTOR_BYTES - position % SECTOR_BYTES)
            yield position, self.data[start:stop]
            start = stop


class Truncate(Struct):
    """The file was cut or extended to `size` bytes."""

    size: int


class File(Struct, eq=False):
    """One file; `pending` has the changes from `durable` to `data`, in order."""

    data: bytearray = field(default_factory=bytearray)  # the content that processes read
    durable: bytearray = field(default_factory=bytearray)  # the content on the disk itself
    pending: list[Write | Truncate] = field(default_factory=list)
    modified_ms: int = 0

    def write(self, position: int, data: bytes) -> None:
        put(self.data, position, data)
        self.pending.append(Write(position, data))

    def truncate(self, size: int) -> None:
        if size != len(self.data):
            resize(self.data, size)
            self.pending.append(Truncate(size))

    def sync(self) -> None:
        for change in self.pending:
            if isinstance(change, Write):
                put(self.durable, change.position, change.data)
            else:
                resize(self.durable, change.size)
        self.pending.clear()

    def fail_sync(self, random: Random) -> None:
        self._settle(random)
        self.pending.clear()

    def forget_cached(self) -> None:
        """Drop clean pages from the page cache: reads now return the platter's bytes with the pending changes."""
        self.data = bytearray(self.durable)
        for change in self.pending:
            if isinstance(change, Write):
                put(self.data, change.position, change.data)
            else:
                resize(self.data, change.size)

    def lose_power(self, random: Random) -> None:
        self._settle(random)
        self.pending.clear()
        self.data = bytearray(self.durable)

    def _settle(self, random: Random) -> None:
        """Apply some of the pending changes to the platter."""
        if not self.pending:
            return
        outcome = random.choice(CRASH_OUTCOMES)
        kept = {CrashOutcome.KEPT: len(self.pending), CrashOutcome.LOST: 0}.get(outcome, random.randint(0, len(self.pending)))
        end: int | None = None  # the disk has old blocks after this position, because a truncation has not reached it yet
        for number, change in enumerate(self.pending):
            grows = number < kept  # whether the change of the file's size has reached the disk
            if isinstance(change, Truncate):
                if grows:
                    resize(self.durable, change.size)
                else:
                    end = change.size if end is None else min(end, change.size)
                continue
            if grows and change.position + len(change.data) > len(self.durable):
                resize(self.durable, change.position + len(change.data))
            for position, piece in change.sectors():
                whole = grows and not (outcome is CrashOutcome.PREFIX and number == kept - 1)
                if whole and outcome is not CrashOutcome.MIXED:
                    got_there = True
                elif outcome is CrashOutcome.MIXED or whole != grows:
                    got_there = random.random() < 0.5
                else:
                    got_there = False
                limit = len(self.durable) if end is None else min(end, len(self.durable))
                if got_there and position < limit:
                    put(self.durable, position, piece[: limit - position])


class Folder(Struct, eq=False):
    """One folder: like a file, with names instead of bytes."""

    names: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    pending: list[tuple[tuple[str, Node | None], ...]] = field(
        default_factory=list
    )  # each change maps names to files; None removes a name

    def change(self, *names: tuple[str, Node | None]) -> None:
        apply(self.names, names)
        self.pending.append(names)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        outcome = random.choice(CRASH_OUTCOMES)
        kept = {CrashOutcome.KEPT: len(self.pending), CrashOutcome.LOST: 0}.get(outcome, random.randint(0, len(self.pending)))
        for number, names in enumerate(self.pending):
            if number < kept if outcome is not CrashOutcome.MIXED else random.random() < 0.5:
                apply(self.durable, names)
        self.pending.clear()
        self.names = dict(self.durable)
        for _, node in sorted(self.names.items()):
            node.lose_power(random)


Node = File | Folder


def apply(names: dict[str, Node], changes: tuple[tuple[str, Node | None], ...]) -> None:
    """Apply changes to `names`: each is a name and its node, or None if the name is removed."""
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def put(target: bytearray, position: int, data: bytes) -> None:
    """Write `data` at the byte `position`; a gap after the end is filled with zeros."""
    if position > len(target):
        resize(target, position)
    target[position : position + len(data)] = data


def resize(target: bytearray, size: int) -> None:
    """Give `target` this many bytes: its end is cut off, or zeros are added."""
    if size <= len(target):
        del target[size:]
    else:
        target.extend(bytes(size - len(target)))


class Disk:
    """One file system; survives the processes that use it and, as far as it was synced, the power.

    Args:
        random: decides which changes a power cut keeps.
        capacity_bytes: the limit for all files together; None for no limit.
        now_ms: the wall clock.
    """

    def __init__(self, random: Random, capacity_bytes: int | None = None, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.random = random
        self.root = Folder()
        self.locked: set[File] = set()
        self.capacity_bytes = capacity_bytes
        self.now_ms = now_ms
        self.used_bytes = 0
        self.has_rotten_bits = False

    def find(self, path: Path) -> Node | None:
        node: Node = self.root
        for part in path.parts[1:]:
            if not isinstance(node, Folder):
                return None
            found = node.names.get(part)
            if found is None:
                return None
            node = found
        return node

    def file(self, path: Path) -> File:
        node = self.find(path)
        if node is None:
            raise missing(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return node

    def folder(self, path: Path) -> Folder:
        node = self.find(path)
        if node is None:
            raise missing(path)
        if isinstance(node, File):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return node

    def make_durable(self, path: Path) -> None:
        """Create a folder and its parents as durable, as if they existed before the run."""
        node = self.root
        for part in path.parts[1:]:
            below = node.names.setdefault(part, Folder())
            node.durable[part] = below
            assert isinstance(below, Folder)
            node = below

    def lose_power(self) -> None:
        """Cut the power: unsynced changes are kept, lost or torn, and all locks are released."""
        self.locked.clear()
        self.root.lose_power(self.random)
        self.used_bytes = sum(len(file.data) for _, file in self.files())

    def files(self) -> Iterator[tuple[Path, File]]:
        """Every file that has a name, sorted by it."""
        waiting: list[tuple[Path, Node]] = [(Path("/"), self.root)]
        while waiting:
            path, node = waiting.pop()
            if isinstance(node, File):
                yield path, node
            else:
                waiting.extend((path / name, below) for name, below in sorted(node.names.items(), reverse=True))

    def tear(self, file: File) -> None:
        """Replace a file by nothing, by its first part, or by zeros. The first part never has a whole number of entries,
        because a reader could not distinguish that from a complete file."""
        size = len(file.data)
        kept = self.random.choice((b"", file.data[: size // 2 | 1], bytes(size)))
        file.data[:] = kept
        file.durable = bytearray(file.data)
        file.pending.clear()
        self.used_bytes += len(file.data) - size

    def flip_bit(self, file: File, position: int) -> None:
        """Flip a bit on the platter and in the page cache."""
        self.has_rotten_bits = True
        mask = 1 << self.random.randrange(8)
        file.durable[position] ^= mask
        if position < len(file.data):
            file.data[position] ^= mask


def missing(path: Path) -> FileNotFoundError:
    """The error for a path that does not exist."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
