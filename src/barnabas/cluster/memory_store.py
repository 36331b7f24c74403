"""The store as a dictionary: for tests and for the simulator.

Several sessions share one `MemoryTree` as clients share a ZooKeeper; a session that dies (`expire`) loses its ephemeral entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType

from barnabas.cluster.store import Check, Entry, Operation, Put, StoreUnavailable, Watcher, apply_operation


class MemoryTree:
    """What the sessions share."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.owners: dict[str, MemoryStore] = {}  # of the ephemeral entries
        self.watchers: list[tuple[MemoryStore, Watcher]] = []
        self.revision = 0

    def commit(self, session: MemoryStore, operations: Sequence[Operation]) -> int:
        changed: dict[str, Entry | None] = {}
        owners: dict[str, MemoryStore] = {}
        for operation in operations:
            path = operation.path
            after = apply_operation(operation, changed[path] if path in changed else self.entries.get(path))
            if not isinstance(operation, Check):
                changed[path] = after
            if isinstance(operation, Put) and operation.ephemeral:
                owners[path] = session
        self._write(changed, owners)
        return self.revision

    def _write(self, changed: dict[str, Entry | None], owners: dict[str, MemoryStore]) -> None:
        self.revision += 1
        for path, entry in changed.items():
            self.owners.pop(path, None)
            if entry is None:
                self.entries.pop(path, None)
            else:
                self.entries[path] = entry
        self.owners.update(owners)
        for _, watcher in list(self.watchers):
            watcher(tuple(changed))

    def end(self, session: MemoryStore) -> None:
        self.watchers = [pair for pair in self.watchers if pair[0] is not session]
        lost = [path for path, owner in self.owners.items() if owner is session]
        if lost:
            self._write(dict.fromkeys(lost), {})


class MemoryStore:
    """A session with a `MemoryTree`."""

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self.tree = MemoryTree() if tree is None else tree
        self._open = True

    @property
    def revision(self) -> int:
        return self.tree.revision

    def get(self, path: str) -> Entry | None:
        self._check_open()
        return self.tree.entries.get(path)

    def list(self, prefix: str) -> Iterable[Entry]:
        self._check_open()
        return [entry for path, entry in sorted(self.tree.entries.items()) if path.startswith(prefix)]

    def commit(self, operations: Sequence[Operation]) -> int:
        self._check_open()
        return self.tree.commit(self, operations)

    def watch(self, watcher: Watcher) -> None:
        self._check_open()
        self.tree.watchers.append((self, watcher))

    def close(self) -> None:
        if self._open:
            self._open = False
            self.tree.end(self)

    expire = close  # a session that the store gave up looks the same from outside

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._open:
            raise StoreUnavailable("the session is closed")
