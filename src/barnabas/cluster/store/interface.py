"""The store interface: what the cluster remembers outside of the logs, and the session in which a broker uses it.

One small tree of entries, each a path, bytes and a version, as ZooKeeper has it; an embedded SQLite file and a dictionary serve
it as well. What the entries mean (paths, encodings) is said once, in `metadata/store_entries.py`, above every store.

Rules
  1. `commit` is all or nothing: every operation's expectation holds and all of them are done, or `StoreConflict` is raised
     and none is.
  2. Versions start at 0 when an entry is made and grow by one with each write. An operation that carries an expected version
     is a compare-and-set. ABSENT means "must not exist", ANY means "whatever is there".
  3. What `commit` returned from is durable, except entries made `ephemeral`: they vanish when the session that made them
     closes or expires. An entry stays what it was made as; to take over somebody's ephemeral entry, remove it and make it
     again in one commit.
  4. A watcher is told of every change after it was made, in order. It is told paths, not values: it reads again what it
     needs. A path may be told though nothing changed there. ROOT means "anything may have changed": it is told whenever
     changes may have been missed, after every lost connection.
  5. Paths are absolute and made of segments: "/topics/orders". Parents are implied; no entry lies under another entry.
  6. `revision` grows with each commit and survives reopening; it orders images made from the store: what is read in a session
     holds at least all commits up to its revision.

The session
  7. CONNECTED: commits are answered. SUSPENDED: the connection is lost; ephemeral entries stay for what is left of
     `session_timeout_ms`, which nobody here can know, so whoever holds an office by such an entry must stop acting on it in
     good time. EXPIRED: the store gave the session up, its ephemeral entries are gone; the next CONNECTED carries the id of a
     new session. CLOSED: by `close`.
  8. While the session is SUSPENDED, `commit` and reads wait a bounded time for it to come back and raise StoreUnavailable if
     it does not. Whether a commit that raised StoreUnavailable was done is not known, but it is decided: it is never done
     after the first read that follows it in the same session object. So a caller finds out by reading what it wrote: a value
     that names its writer, or a version that only its commit can have made.
  9. Watchers of changes and of the session are called one at a time, in the order of what happened, on the thread that the
     store was told to use (in `commit` and `close`, where the store has no thread of its own).

A store may block: the caller decides on which thread. The embedded one answers in well under a millisecond but for the fsync of
a commit; ZooKeeper in about a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import TracebackType
from typing import NamedTuple, Protocol

from msgspec import Struct

from barnabas.errors import BarnabasError

ABSENT = -1  # expected version of an entry that must not exist
ANY = -2  # no expectation
ROOT = "/"  # told to watchers: anything may have changed

MAX_COMMIT_BYTES = 1_000_000  # of paths and values in one commit; a ZooKeeper server drops who sends 1,048,575 bytes or more

Watcher = Callable[[Sequence[str]], None]


class SessionState(Enum):
    """See rule 7."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


class SessionEvent(NamedTuple):
    """The session came into `state`; `session_id` is that of the session it is about."""

    state: SessionState
    session_id: int


SessionWatcher = Callable[[SessionEvent], None]


class Entry(NamedTuple):
    path: str
    value: bytes
    version: int  # 0 when made, one more with each write


class Put(Struct, frozen=True):
    """Make or replace an entry; `expected` is the version it must have now, ABSENT to make it.

    Args:
        ephemeral: it ends with the session; for entries that are made, with ABSENT.
    """

    path: str
    value: bytes
    expected: int = ANY
    ephemeral: bool = False

    def __post_init__(self) -> None:
        if self.ephemeral and self.expected != ABSENT:
            raise ValueError(f"{self.path}: only an entry that is made can be made ephemeral; remove the one that is there first")


class Remove(Struct, frozen=True):
    """Take an entry away; with ANY it may be gone already."""

    path: str
    expected: int = ANY


class Check(Struct, frozen=True):
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


class CommitTooLarge(BarnabasError):
    """A commit that a store which brokers share does not take; nothing of it was done."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(path, size)
        self.path = path
        self.size = size

    def __str__(self) -> str:
        return f"a commit of {self.size} bytes, most of them in {self.path}; allowed are {MAX_COMMIT_BYTES}"


class MetadataStore(Protocol):
    """See the module's rules."""

    def get(self, path: str) -> Entry | None:
        """One entry."""
        ...

    def get_many(self, paths: Sequence[str]) -> Sequence[Entry | None]:
        """Several entries, as they are asked for; not one moment of the tree where others write."""
        ...

    def list(self, prefix: str) -> Iterable[Entry]:
        """The entries whose paths begin with `prefix`, in the order of their paths."""
        ...

    def commit(self, operations: Sequence[Operation]) -> int:
        """Do all of them and return the new revision; raises StoreConflict, StoreUnavailable, and CommitTooLarge where it has a bound."""
        ...

    @property
    def revision(self) -> int:
        """Of the last commit that this session knows of."""
        ...

    def catch_up(self) -> None:
        """Return when watchers were told of every commit, of whichever session, that had returned before; raises StoreUnavailable."""
        ...

    def position(self) -> int:
        """The revision that the server has reached; watchers were told of all commits up to it. Raises StoreUnavailable."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of all changes from now on."""
        ...

    def watch_session(self, watcher: SessionWatcher) -> None:
        """Tell `watcher` of all that happens to the session from now on."""
        ...

    @property
    def session(self) -> SessionEvent:
        """Which session this is, and its state."""
        ...

    @property
    def session_timeout_ms(self) -> int:
        """How long after the loss of the connection the session may still be alive; 0 where it cannot be lost."""
        ...

    @property
    def believed_ms(self) -> float:
        """For how long from now on the session is sure to live; infinite where it cannot be lost."""
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


def check_size(operations: Sequence[Operation]) -> None:
    """Raises CommitTooLarge. For stores that brokers share; the embedded one takes more: a folder is adopted in one commit."""
    sizes = [(_size(operation), operation.path) for operation in operations]
    total = sum(size for size, _ in sizes)
    if total > MAX_COMMIT_BYTES:
        raise CommitTooLarge(max(sizes)[1], total)


def _size(operation: Operation) -> int:
    overhead = 64  # of the protocol, rounded up
    return overhead + len(operation.path) + (len(operation.value) if isinstance(operation, Put) else 0)
