"""The store as a dictionary that behaves like a faulty ZooKeeper: for tests and for the simulator.

Several clients (`MemoryStore`) share one `MemoryTree` as they share a ZooKeeper. Everything happens inside the calls: there is
no thread and no clock. So the caller decides when a connection is lost, a session expires, a reply is lost, or a watch event is
late.

Rules
  1. The tree knows nothing of connections: a session lives in it until `expire` or `close`. A client learns that its session
     expired when its connection is back, as with ZooKeeper.
  2. A client gets events one at a time and in order, even if a watcher commits and so causes the next one.
  3. A suspended client loses its events; when the connection is back, it gets ROOT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from barnabas.cluster.store.interface import (
    ROOT,
    Check,
    Entry,
    Operation,
    Put,
    SessionEvent,
    SessionState,
    SessionWatcher,
    StoreUnavailable,
    Watcher,
    apply_operation,
    check_size,
)

SESSION_TIMEOUT_MS = 18_000


class MemoryTree:
    """The state that the clients share."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.owners: dict[str, int] = {}  # path -> session id, of ephemeral entries
        self.clients: list[MemoryStore] = []
        self.sessions: set[int] = set()  # live sessions
        self.observers: list[Callable[[tuple[str, ...]], None]] = []  # called with the changed paths during each write
        self.revision = 0
        self._last_session = 0

    def new_session(self) -> int:
        self._last_session += 1
        self.sessions.add(self._last_session)
        return self._last_session

    def commit(self, session_id: int, operations: Sequence[Operation]) -> int:
        changed: dict[str, Entry | None] = {}
        owners: dict[str, int | None] = {}  # path of a created or removed entry -> session id if it is ephemeral now
        for operation in operations:
            path = operation.path
            before = changed[path] if path in changed else self.entries.get(path)
            after = apply_operation(operation, before)
            if isinstance(operation, Check):
                continue
            changed[path] = after
            if before is None or after is None:
                owners[path] = session_id if isinstance(operation, Put) and operation.ephemeral else None
        self._write(changed, owners)
        return self.revision

    def _write(self, changed: dict[str, Entry | None], owners: dict[str, int | None]) -> None:
        self.revision += 1
        for path, owner in owners.items():
            self.owners.pop(path, None)
            if owner is not None:
                self.owners[path] = owner
        for path, entry in changed.items():
            if entry is None:
                self.entries.pop(path, None)
            else:
                self.entries[path] = entry
        paths = tuple(changed)
        for observer in self.observers:
            observer(paths)
        for client in list(self.clients):
            client.hear(paths)

    def end(self, session_id: int) -> None:
        """End the session; its ephemeral entries vanish."""
        self.sessions.discard(session_id)
        lost = [path for path, owner in self.owners.items() if owner == session_id]
        if lost:
            self._write(dict.fromkeys(lost), dict.fromkeys(lost))


class MemoryStore:
    """A client of a `MemoryTree`."""

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self.tree = MemoryTree() if tree is None else tree
        self.session = SessionEvent(SessionState.CONNECTED, self.tree.new_session())
        self._watchers: list[Watcher] = []
        self._session_watchers: list[SessionWatcher] = []
        self._events: list[tuple[str, ...] | SessionEvent] = []  # pending events
        self._telling = False
        self._late = False
        self._held_at: int | None = None  # the revision at which the client began to hold back events
        self._next_reply_lost: bool | None = None
        self.tree.clients.append(self)

    @property
    def revision(self) -> int:
        return self.tree.revision

    @property
    def session_timeout_ms(self) -> int:
        return SESSION_TIMEOUT_MS

    @property
    def believed_ms(self) -> float:
        return self.session_timeout_ms / 3  # a real client notices a silent connection after up to two thirds of it

    def catch_up(self) -> None:
        self._check_connected()
        self._tell_waiting()
        if self._held_at is not None:
            self._held_at = self.tree.revision

    def position(self) -> int:
        self._check_connected()
        return self.tree.revision if self._held_at is None else self._held_at

    def get(self, path: str) -> Entry | None:
        self._check_connected()
        return self.tree.entries.get(path)

    def get_many(self, paths: Sequence[str]) -> Sequence[Entry | None]:
        self._check_connected()
        return [self.tree.entries.get(path) for path in paths]

    def list(self, prefix: str) -> Iterable[Entry]:
        self._check_connected()
        return [entry for path, entry in sorted(self.tree.entries.items()) if path.startswith(prefix)]

    def commit(self, operations: Sequence[Operation]) -> int:
        self._check_connected()
        check_size(operations)
        lost, self._next_reply_lost = self._next_reply_lost, None
        if lost is not False:
            revision = self.tree.commit(self.session.session_id, operations)
        if lost is not None:
            self.suspend()
            raise StoreUnavailable("the connection was lost before the reply")
        return revision

    def watch(self, watcher: Watcher) -> None:
        self._check_connected()
        self._watchers.append(watcher)

    def watch_session(self, watcher: SessionWatcher) -> None:
        self._session_watchers.append(watcher)

    def close(self) -> None:
        if self.session.state is SessionState.CLOSED:
            return
        self.tree.clients.remove(self)
        self.tree.end(self.session.session_id)
        self._become(SessionState.CLOSED)
        self._tell()

    # Faults

    def suspend(self) -> None:
        """Lose the connection."""
        if self.session.state is SessionState.CONNECTED:
            self._become(SessionState.SUSPENDED)
            self._tell()

    def resume(self) -> None:
        """Restore the connection, with another session if the session expired in the meantime."""
        if self.session.state is not SessionState.SUSPENDED:
            return
        if self.session.session_id not in self.tree.sessions:
            self._become(SessionState.EXPIRED)
            self.session = SessionEvent(SessionState.EXPIRED, self.tree.new_session())
        self._become(SessionState.CONNECTED)
        self._events.append((ROOT,))
        self._tell()

    def expire(self) -> None:
        """End the session in the store; a suspended client learns it in `resume`, a connected client at once."""
        connected = self.session.state is SessionState.CONNECTED
        self.suspend()
        self.tree.end(self.session.session_id)
        if connected:
            self.resume()

    def lose_next_reply(self, *, done: bool) -> None:
        """The next commit gets no answer; `done` decides whether it is done."""
        self._next_reply_lost = done

    def hold_watches(self) -> None:
        """Hold back all events until `release_watches`."""
        self._late = True
        self._held_at = self.tree.revision

    def release_watches(self) -> None:
        self._late = False
        self._held_at = None
        self._tell()

    def hear(self, paths: tuple[str, ...]) -> None:
        """Tell the watchers that these paths changed; a suspended client loses the event."""
        if self.session.state is SessionState.CONNECTED and paths:
            self._events.append(paths)
            self._tell()

    def _become(self, state: SessionState) -> None:
        self.session = SessionEvent(state, self.session.session_id)
        self._events.append(self.session)

    def _tell(self) -> None:
        if not self._late:
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        if self._telling:
            return
        self._telling = True
        try:
            while self._events:
                self._tell_one(self._events.pop(0))
        finally:
            self._telling = False

    def _tell_one(self, event: tuple[str, ...] | SessionEvent) -> None:
        if isinstance(event, SessionEvent):
            for session_watcher in list(self._session_watchers):
                session_watcher(event)
        else:
            for watcher in list(self._watchers):
                watcher(event)

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _check_connected(self) -> None:
        if self.session.state is SessionState.CLOSED:
            raise StoreUnavailable("the session is closed")
        if self.session.state is not SessionState.CONNECTED:
            raise StoreUnavailable("the connection is lost")
