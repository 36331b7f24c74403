"""The store interface: the cluster's state outside of the logs, and a broker's session with the store.

A store is a small tree of entries, each with a path, bytes and a version, as in ZooKeeper; an embedded SQLite file and a
dictionary implement it too. `metadata/store_entries.py` defines the entries (paths, encodings) for every store.

Rules
  1. `commit` is all or nothing: if every operation's expectation holds, the store does all of them; otherwise it does none and
     raises `StoreConflict`.
  2. Versions start at 0 when an entry is made and grow by one with each write. An operation that carries an expected version
     is a compare-and-set. ABSENT means "must not exist", ANY means "no expectation".
  3. After `commit` returns, its changes are durable. `ephemeral` entries vanish when the session that created them closes or
     expires. An entry keeps its kind; to take over an ephemeral entry of another session, remove it and create it again in one
     commit.
  4. The store notifies a watcher of every change after it was made, in order. It gets paths, not values, and reads the entries
     that it needs. It may get a path without a change. ROOT means "anything may have changed": a watcher gets it after every
     lost connection, when it may have missed changes.
  5. Paths are absolute and made of segments: "/topics/orders". Parents are implied; no entry is below another entry.
  6. `revision` grows with each commit and survives reopening; it orders the images that brokers make from the store. Reads in
     a session include at least all commits up to its revision.

The session
  7. CONNECTED: the store answers commits. SUSPENDED: the connection is lost; ephemeral entries stay for the rest of
     `session_timeout_ms`, and the client does not know how long that is. So the owner of such an entry must stop acting on it
     in time.
     EXPIRED: the store ended the session and its ephemeral entries; the next CONNECTED has the id of another session.
     CLOSED: by `close`.
  8. While the session is SUSPENDED, `commit` and reads wait a bounded time for the connection, and then raise
     StoreUnavailable. A commit that raised StoreUnavailable may or may not have been done, but it is never done after the next
     read in the same session object. So a caller finds the outcome by reading its entries: it looks for a value that names the
     writer, or for a version that only its commit can have created.
  9. Watchers of changes and of the session are called one at a time, in the order of the events, on the configured thread (in
     `commit` and `close` if the store has no thread of its own).

A store may block: the caller decides on which thread. The embedded one answers in well under a millisecond, except for the
fsync of a commit; ZooKeeper in about a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import TracebackType
from typing import NamedTuple, Protocol

from msgspec import Struct

from barnabas.errors import BarnabasError

ABSENT = -1  # expected version of an entry that must not exist
ANY = -2  # no expected version
ROOT = "/"  # for watchers: anything may have changed

MAX_COMMIT_BYTES = (
    1_000_000  # of paths and values in one commit; a ZooKeeper server closes the connection at 1,048,575 bytes or more
)

Watcher = Callable[[Sequence[str]], None]


class SessionState(Enum):
    """See rule 7."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


class SessionEvent(NamedTuple):
    """The session changed to `state`; `session_id` is its id."""

    state: SessionState
    session_id: int


SessionWatcher = Callable[[SessionEvent], None]


class Entry(NamedTuple):
    path: str
    value: bytes
    version: int  # 0 after the creation; each write adds 1


class Put(Struct, frozen=True):
    """Create or replace an entry; `expected` is its current version, ABSENT to create it.

    Args:
        ephemeral: the entry ends with the session; only with ABSENT.
    """

    path: str
    value: bytes
    expected: int = ANY
    ephemeral: bool = False

    def __post_init__(self) -> None:
        if self.ephemeral and self.expected != ABSENT:
            raise ValueError(f"{self.path}: only a created entry can be ephemeral; remove the existing one first")


class Remove(Struct, frozen=True):
    """Remove an entry; with ANY it may be missing."""

    path: str
    expected: int = ANY


class Check(Struct, frozen=True):
    """The entry must have this version (ABSENT: must not exist); fences a deposed controller."""

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
    """The store cannot be reached or used; the last commit may or may not have been done."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"metadata store: {self.reason}"


class CommitTooLarge(BarnabasError):
    """The commit is too large for a shared store; nothing of it was done."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(path, size)
        self.path = path
        self.size = size

    def __str__(self) -> str:
        return f"a commit of {self.size} bytes, most of them in {self.path}; allowed are {MAX_COMMIT_BYTES}"


class MetadataStore(Protocol):
    """See the module's rules."""

    def get(self, path: str) -> Entry | None:
        """One entry; None if it does not exist."""
        ...

    def get_many(self, paths: Sequence[str]) -> Sequence[Entry | None]:
        """Several entries in the given order; with concurrent writers they may be of different moments."""
        ...

    def list(self, prefix: str) -> Iterable[Entry]:
        """The entries whose paths begin with `prefix`, in the order of their paths."""
        ...

    def commit(self, operations: Sequence[Operation]) -> int:
        """Do all operations and return the new revision; raises StoreConflict, StoreUnavailable, and CommitTooLarge if the
        store has a bound."""
        ...

    @property
    def revision(self) -> int:
        """The revision of the last commit that this session knows."""
        ...

    def catch_up(self) -> None:
        """Wait until watchers were notified of all commits, of any session, that returned before this call; raises
        StoreUnavailable."""
        ...

    def position(self) -> int:
        """The revision of the server, after watchers were notified of all commits up to it. Raises StoreUnavailable."""
        ...

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of all changes from now on."""
        ...

    def watch_session(self, watcher: SessionWatcher) -> None:
        """Notify `watcher` of all session events from now on."""
        ...

    @property
    def session(self) -> SessionEvent:
        """The id and the state of the session."""
        ...

    @property
    def session_timeout_ms(self) -> int:
        """How long the session may live after the connection was lost, in milliseconds; 0 if the connection cannot be lost."""
        ...

    @property
    def believed_ms(self) -> float:
        """How long the session is certain to live from now on, in milliseconds; infinite if the connection cannot be lost."""
        ...

    def close(self) -> None:
        """End the session: its ephemeral entries vanish."""
        ...

    def __enter__(self) -> MetadataStore: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def apply_operation(operation: Operation, found: Entry | None) -> Entry | None:
    """The entry after `operation`; raises StoreConflict. Every store must give the same result."""
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
    """Raises CommitTooLarge. For shared stores; the embedded one accepts more, because an adoption is one commit."""
    sizes = [(_size(operation), operation.path) for operation in operations]
    total = sum(size for size, _ in sizes)
    if total > MAX_COMMIT_BYTES:
        raise CommitTooLarge(max(sizes)[1], total)


def _size(operation: Operation) -> int:
    overhead = 64  # of the protocol, rounded up
    return overhead + len(operation.path) + (len(operation.value) if isinstance(operation, Put) else 0)
