"""The store interface: what the cluster remembers outside of the logs.

One small tree of entries, each a path, bytes and a version, as ZooKeeper has it; an embedded SQLite file and a dictionary serve
it as well. What the entries mean (paths, encodings) is said once, in `records.py`, above every store.

Rules
  1. `commit` is all or nothing: every operation's expectation holds and all of them are done, or `StoreConflict` is raised
     and none is.
  2. Versions start at 0 when an entry is made and grow by one with each write. An operation that carries an expected version
     is a compare-and-set. ABSENT means "must not exist", ANY means "whatever is there".
  3. What `commit` returned from is durable, except entries that are `ephemeral`: they vanish when their session closes or
     dies.
  4. A watcher is told of every change after it was made, in order, on the thread that calls `poll` or, where the store is
     only used by one process, inside `commit`. It is told paths, not values: it reads again what it needs.
  5. Paths are absolute and made of segments: "/topics/orders". There are no implied parents.
  6. `revision` grows with each commit and survives reopening; it orders images made from the store.

A store may block: the caller decides on which thread. The embedded one answers in well under a millisecond but for the fsync of
a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol

from barnabas.errors import BarnabasError

ABSENT = -1  # expected version of an entry that must not exist
ANY = -2  # no expectation

Watcher = Callable[[Sequence[str]], None]


class Entry(NamedTuple):
    path: str
    value: bytes
    version: int  # 0 when made, one more with each write


@dataclass(frozen=True, slots=True)
class Put:
    """Make or replace an entry; `expected` is the version it must have now, ABSENT to make it."""

    path: str
    value: bytes
    expected: int = ANY
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """Take an entry away; with ANY it may be gone already."""

    path: str
    expected: int = ANY


@dataclass(frozen=True, slots=True)
class Check:
    """The entry must have this version (ABSENT: must not exist); fences a writer that lost its office."""

    path: str
    expected: int


Operation = Put | Remove | Check


class StoreConflict(BarnabasError):
    """An operation's expectation did not hold; nothing of its commit was done."""

    def __init__(self, path: str, expected: int, found: int) -> None:
        super().__init__(path, expected, found)
        self.path = path
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"{self.path} has version {self.found}, expected {self.expected} ({ABSENT} stands for absent)"


class StoreUnavailable(BarnabasError):
    """The store cannot be reached or used; whether the last commit was done is not known."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"metadata store: {self.reason}"


class MetadataStore(Protocol):
    """See the module's rules."""

    def get(self, path: str) -> Entry | None:
        """One entry."""
        ...

    def list(self, prefix: str) -> Iterable[Entry]:
        """The entries whose paths begin with `prefix`, in the order of their paths."""
        ...

    def commit(self, operations: Sequence[Operation]) -> int:
        """Do all of them and return the new revision; raises StoreConflict, StoreUnavailable."""
        ...

    @property
    def revision(self) -> int:
        """Of the last commit."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of all changes from now on."""
        ...

    def close(self) -> None:
        """End the session: its ephemeral entries vanish."""
        ...

    def __enter__(self) -> MetadataStore: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def apply_operation(operation: Operation, found: Entry | None) -> Entry | None:
    """The entry after `operation`; raises StoreConflict. What every store must agree on."""
    version = ABSENT if found is None else found.version
    if operation.expected not in {ANY, version}:
        raise StoreConflict(operation.path, operation.expected, version)
    match operation:
        case Put(path, value):
            return Entry(path, value, version + 1)
        case Remove():
            return None
        case Check():
            return found
