"""The store of a cluster: a ZooKeeper ensemble (3.6 or later, for persistent watches).

Rules
  1. An entry is a node of the same path below the address's root. Its parents are container nodes without a value, created as
     needed; the server removes them when they are empty.
  2. A commit is one transaction. The store refuses a commit above the server's limit itself, because the server would close the
     connection without an answer.
  3. The revision is the number of ZooKeeper's last transaction.
  4. The first read after a lost connection or an unanswered commit waits until its server has caught up with the ensemble, so
     that its result is final (rule 8 of the interface).
  5. Notifications of watchers go through `run`; if many paths changed, one notification has many of them.

`list` reads level by level, many entries in a request: 20,000 to 50,000 entries a second on one core (one in a request: 3,000).
With concurrent writers the result is not of one moment; watchers are notified of changes after its start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.protocol.serialization import Create, Exists, GetChildren, GetData, Sync, Transaction
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from barnabas.cluster.store.interface import (
    ABSENT,
    ANY,
    ROOT,
    Entry,
    Operation,
    SessionEvent,
    SessionState,
    SessionWatcher,
    StoreConflict,
    StoreUnavailable,
    Watcher,
    check_size,
)
from barnabas.cluster.zookeeper.access import ANYBODY, ZooKeeperAccess
from barnabas.cluster.zookeeper.address import ZooKeeperAddress
from barnabas.cluster.zookeeper.client import ZooKeeperClient
from barnabas.cluster.zookeeper.requests import CreateContainer
from barnabas.cluster.zookeeper.transaction import ZooKeeperTransaction

MAX_ATTEMPTS = 50  # of a commit whose refused entry has no expected version
SESSION_TIMEOUT_MS = 18_000
OWN_NODES = "/zookeeper"  # a path that the server reserves

Run = Callable[[Callable[[], None]], object]


class ZooKeeperStore:
    """An open session; any thread may use it, but not two at once.

    Args:
        run: schedules a function on the thread of the watchers, and returns at once (`loop.call_soon_threadsafe`). Without it,
            watchers run on a thread of the client and must not use the store there.
        session_timeout_ms: the server may grant another one, see the property.
        connection_timeout_ms: the longest wait for a connection or an answer.
        access: encryption, log-in, and whether created entries are private to this user.

    Raises:
        ConfigError: key or trust store of `access` cannot be read.
        StoreUnavailable: no server answered in time.
    """

    def __init__(
        self,
        address: ZooKeeperAddress,
        *,
        run: Run | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int | None = None,
        access: ZooKeeperAccess = ANYBODY,
    ) -> None:
        self.address = address
        self._acl = CREATOR_ALL_ACL if access.is_private else OPEN_ACL_UNSAFE
        self._root = address.root
        self._run = run or (lambda function: function())
        self._watchers: list[Watcher] = []
        self._session_watchers: list[SessionWatcher] = []
        self._events: list[str | SessionEvent] = []  # pending notifications
        self._events_lock = threading.Lock()
        self._scheduled = False
        self._parents: set[str] = set()  # parents that existed at the last check
        self._revision = 0
        self._unsure = True
        self._closed: SessionEvent | None = None
        self._client = ZooKeeperClient(
            address.servers,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms or session_timeout_ms,
            on_session=self._session_changed,
            on_change=self._node_changed,
            on_watching=lambda: self._told(ROOT),
            access=access,
        )
        try:
            self._make_root()
        except BaseException:
            self.close()
            raise

    def _make_root(self) -> None:
        segments = self._root.split("/")
        paths = ["/".join(segments[: end + 1]) for end in range(1, len(segments))]
        for outcome in self._client.pipeline(Create(path, b"", self._acl, 0) for path in paths):
            _raise_unless(outcome, NodeExistsError)
        self._catch_up()

    # The session

    @property
    def session(self) -> SessionEvent:
        return self._closed or self._client.session

    @property
    def session_timeout_ms(self) -> int:
        return self._client.session_timeout_ms

    @property
    def believed_ms(self) -> float:
        return self._client.believed_ms

    def watch(self, watcher: Watcher) -> None:
        self._check_open()
        try:
            self._client.watch(self._root or "/")
        except KazooException as error:
            raise StoreUnavailable(
                f"{self.address} refuses lasting watches; ZooKeeper 3.6 or later is needed: {error!r}"
            ) from error
        self._watchers.append(watcher)

    def watch_session(self, watcher: SessionWatcher) -> None:
        self._session_watchers.append(watcher)

    def close(self) -> None:
        if self._closed is None:
            self._closed = SessionEvent(SessionState.CLOSED, self._client.session.session_id)
            self._client.close()
            self._told(self._closed)

    def _session_changed(self, event: SessionEvent) -> None:
        self._unsure = True
        self._told(event)

    def _node_changed(self, node: str) -> None:
        path = node.removeprefix(self._root)
        if path and not (not self._root and path.startswith(OWN_NODES)):
            self._told(path)

    def _told(self, event: str | SessionEvent) -> None:
        with self._events_lock:
            self._events.append(event)
            scheduled, self._scheduled = self._scheduled, True
        if not scheduled:
            self._run(self._tell)

    def _tell(self) -> None:
        while True:
            with self._events_lock:
                events, self._events = self._events, []
                if not events:
                    self._scheduled = False
                    return
            paths: dict[str, None] = {}
            for event in events:
                if isinstance(event, str):
                    paths[event] = None
                    continue
                self._tell_paths(paths)
                for session_watcher in list(self._session_watchers):
                    session_watcher(event)
            self._tell_paths(paths)

    def _tell_paths(self, paths: dict[str, None]) -> None:
        told = tuple(paths)
        paths.clear()
        if told:
            for watcher in list(self._watchers):
                watcher(told)

    # Reading

    @property
    def revision(self) -> int:
        return self._revision

    def catch_up(self) -> None:
        """Wait until the server has applied all earlier decisions of the ensemble; it sends watch events before that answer."""
        self._check_open()
        self._unsure = True
        self._catch_up()

    def position(self) -> int:
        self._check_open()
        return self._client.ask(Exists(self._root or "/", None)).zxid

    def get(self, path: str) -> Entry | None:
        self._check_open()
        self._catch_up()
        (found,) = self._client.pipeline([GetData(self._root + path, None)])
        return _entry(path, found)

    def get_many(self, paths: Sequence[str]) -> Sequence[Entry | None]:
        self._check_open()
        self._catch_up()
        found = self._client.read(GetData(self._root + path, None) for path in paths)
        return [_entry(path, outcome) for path, outcome in zip(paths, found, strict=True)]

    def list(self, prefix: str) -> Iterable[Entry]:
        self._check_open()
        self._unsure = True
        self._catch_up()
        entries: list[Entry] = []
        parents = [prefix.rpartition("/")[0]]
        while parents:
            paths = [path for path in self._children(parents) if path.startswith(prefix) and (self._root or path != OWN_NODES)]
            parents = []
            found = self._client.read(GetData(self._root + path, None) for path in paths)
            for path, outcome in zip(paths, found, strict=True):
                if isinstance(outcome, NoNodeError):
                    continue  # removed after its parent was read
                _raise_unless(outcome)
                value, status = outcome
                if value is not None:
                    entries.append(Entry(path, value, status.version))
                if status.children_count:
                    parents.append(path)
        return sorted(entries)

    def _children(self, parents: Sequence[str]) -> Iterable[str]:
        answers = self._client.read(GetChildren(self._root + parent or "/", None) for parent in parents)
        for parent, names in zip(parents, answers, strict=True):
            if not isinstance(names, NoNodeError):
                _raise_unless(names)
                yield from (f"{parent}/{name}" for name in names)

    def _catch_up(self) -> None:
        """Make the next read see all earlier decisions of the ensemble."""
        if self._unsure:
            self._unsure = False
            try:
                self._revision = max(self._revision, self._client.ask(Sync(self._root or "/")).zxid)
            except StoreUnavailable:
                self._unsure = True
                raise

    # Writing

    def commit(self, operations: Sequence[Operation]) -> int:
        self._check_open()
        check_size(operations)
        for _ in range(MAX_ATTEMPTS):
            transaction = ZooKeeperTransaction(self._root, self._look_up(operations), self._acl)
            for operation in operations:
                transaction.add(operation)
            self._make_parents(transaction.made())
            try:
                reply = self._client.ask(Transaction(transaction.requests))
            except StoreUnavailable:
                self._unsure = True
                raise
            except KazooException as error:
                raise StoreUnavailable(f"{self.address}: {error!r}") from error
            refusal = transaction.refusal(reply.value)
            if refusal is None:
                self._revision = max(self._revision + 1, reply.zxid)
                return self._revision
            path, expected = refusal.operation.path, refusal.operation.expected
            if refusal.parent_is_missing:
                self._parents.difference_update(_parents(path))
            elif not refusal.is_conflict:
                raise StoreUnavailable(f"{self.address}: {path}: {refusal.error!r}") from refusal.error
            elif not refusal.may_be_tried_again:
                found = self._versions([path])[path] if refusal.before is None else refusal.before
                raise StoreConflict(path, expected, found)
        raise StoreConflict(path, expected, self._versions([path])[path])

    def _look_up(self, operations: Sequence[Operation]) -> dict[str, int]:
        return self._versions(dict.fromkeys(operation.path for operation in operations if operation.expected == ANY))

    def _versions(self, paths: Iterable[str]) -> dict[str, int]:
        wanted = tuple(paths)
        found = self._client.pipeline(Exists(self._root + path, None) for path in wanted)
        versions = {}
        for path, status in zip(wanted, found, strict=True):
            _raise_unless(status)
            versions[path] = ABSENT if status is None else status.version
        return versions

    def _make_parents(self, paths: Iterable[str]) -> None:
        missing = {parent: None for path in paths for parent in _parents(path) if parent not in self._parents}
        made = self._client.pipeline(CreateContainer(self._root + path, self._acl) for path in missing)
        for outcome in made:
            # Another client may remove a parent before its child is created: the commit retries.
            _raise_unless(outcome, NodeExistsError, NoNodeError)
        self._parents.update(missing)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise StoreUnavailable("the session is closed")

    def __enter__(self) -> ZooKeeperStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _parents(path: str) -> list[str]:
    """The parents of `path`, from the top."""
    segments = path.split("/")
    return ["/".join(segments[:end]) for end in range(2, len(segments))]


def _entry(path: str, outcome: Any) -> Entry | None:
    """The entry in the server's answer to GetData; a parent without a value is not an entry."""
    if isinstance(outcome, NoNodeError):
        return None
    _raise_unless(outcome)
    value, status = outcome
    return None if value is None else Entry(path, value, status.version)


def _raise_unless(outcome: object, *expected: type[Exception]) -> None:
    if isinstance(outcome, Exception) and not isinstance(outcome, expected):
        raise StoreUnavailable(f"ZooKeeper: {outcome!r}") from outcome
