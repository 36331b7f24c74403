"""A simulated disk that models the result of a power failure at any moment.

Owns files and folders, each twice: as the processes see it (what the page cache has), and as it is on the platter, with the changes that
lie between the two in the order in which they were made.

Rules
  1. Bytes and sizes of a file become durable when the file is synced, names when their folder is. Nothing else does either.
  2. After a power cut a file holds, sector by sector, an old or a newer version of what was written and not synced. Its size is one that
     it had: changes of size are kept in order, as a journal keeps them. A sector that no write got to, in a file that grew, holds zeros.
  3. A folder keeps any of its unsynced changes of names, or none; one rename is never halved.
  4. `tear` cuts a file that was synced, as a file system does that lied about it; the simulation does so to files that can be made again.
  5. A sync that failed has written some of it and forgotten the rest, though it can still be read until the power goes or the cache is
     dropped (as Linux does).

How it works: the platter's state is changed by applying changes to it: all of them at a sync, some at a power cut.
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
        """The write cut at the sectors' borders."""
        start = 0
        while start < len(self.data):
            position = self.position + start
            stop = min(len(self.data), start + SECTOR_BYTES - position % SECTOR_BYTES)
            yield position, self.data[start:stop]
            start = stop


class Truncate(Struct):
    """The file got `size` bytes, more or fewer than before."""

    size: int


class File(Struct, eq=False):
    """One file: what lies between `data` and `durable` is `pending`, in order."""

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
        """Let the page cache forget what it need not write: what is read from now on is what the platter has, and what is pending."""
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
        """Bring some of what is pending to the platter."""
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
    """One folder: as for a file, with names in the place of bytes."""

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
    """Make changes to `names`: each is a name and what it stands for, None where it goes."""
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def put(target: bytearray, position: int, data: bytes) -> None:
    """Write `data` at the byte `position`; what lies between the end and there becomes zeros."""
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
        random: decides what a power cut leaves.
        capacity_bytes: of all files together; None is endless.
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
        """Make a folder and those above it, which were there before anything began."""
        node = self.root
        for part in path.parts[1:]:
            below = node.names.setdefault(part, Folder())
            node.durable[part] = below
            assert isinstance(below, Folder)
            node = below

    def lose_power(self) -> None:
        """Cut the power: unsynced changes are kept, lost, or torn; nobody holds a lock any more."""
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
        """Leave nothing of a file, or the first part, or zeros; never a whole number of entries, which nobody can tell from all of them."""
        size = len(file.data)
        kept = self.random.choice((b"", file.data[: size // 2 | 1], bytes(size)))
        file.data[:] = kept
        file.durable = bytearray(file.data)
        file.pending.clear()
        self.used_bytes += len(file.data) - size

    def flip_bit(self, file: File, position: int) -> None:
        """A bit rots, on the platter and in what will be read of it."""
        self.has_rotten_bits = True
        mask = 1 << self.random.randrange(8)
        file.durable[position] ^= mask
        if position < len(file.data):
            file.data[position] ^= mask


def missing(path: Path) -> FileNotFoundError:
    """The error of a path that is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
