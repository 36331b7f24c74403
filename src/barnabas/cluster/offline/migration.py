"""Turns a standalone broker into a cluster: copies its metadata from its data folder into the cluster's store.

Rules
  1. The cluster id is written last. Without it the cluster does not exist, and an interrupted copy starts again.
  2. A store with a cluster stays unchanged, and so does one with entries of other programs.
  3. Entries of a session (registrations, the controller's entry) are not copied.

The broker registers FENCED when it starts in its cluster, so every partition that it led begins a new leader epoch there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.store.interface import ABSENT, Entry, MetadataStore, Operation, Put, Remove
from barnabas.errors import BarnabasError

COMMIT_BYTES = 400_000  # of values in one commit; ZooKeeper accepts 1 MB in all
COMMIT_OPERATIONS = 500


class ClusterExists(BarnabasError):
    """The store has a cluster already."""

    def __init__(self, cluster_id: str) -> None:
        super().__init__(cluster_id)
        self.cluster_id = cluster_id

    def __str__(self) -> str:
        return f"there is a cluster already at that address: {self.cluster_id}"


class ForeignEntry(BarnabasError):
    """The store has an entry that is not part of a barnabas cluster."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} at that address is not barnabas' own; give the cluster a root that nothing else uses"


class Migration(NamedTuple):
    """The result of a copy."""

    cluster_id: str
    topics: int
    partitions: int
    entries: int


def migrate(source: MetadataStore, target: MetadataStore) -> Migration:
    """Copy all of `source`; raises ClusterExists, ForeignEntry, StoreUnavailable."""
    found = target.get(store_entries.CLUSTER)
    if found is not None:
        raise ClusterExists(store_entries.decode(found.value)["id"])
    there = [entry.path for entry in target.list("/")]
    foreign = next((path for path in there if not store_entries.is_own(path)), None)
    if foreign is not None:
        raise ForeignEntry(foreign)
    entries = [entry for entry in source.list("/") if not _is_of_session(entry.path)]
    (name,) = [entry for entry in entries if entry.path == store_entries.CLUSTER]
    kept = {entry.path for entry in entries}
    left_over = [Remove(path) for path in there if path not in kept]
    copies = [Put(entry.path, entry.value) for entry in entries if entry.path != store_entries.CLUSTER]
    for commit in _in_pieces([*left_over, *copies]):
        target.commit(commit)
    target.commit([Put(name.path, name.value, ABSENT)])
    heads = [store_entries.decode_head(entry.value) for entry in entries if entry.path.startswith(store_entries.TOPICS)]
    return Migration(store_entries.decode(name.value)["id"], len(heads), sum(count for _, count in heads), len(entries))


def is_named(entries: Iterable[Entry]) -> bool:
    """Whether the entries contain a cluster to copy."""
    return any(entry.path == store_entries.CLUSTER for entry in entries)


def _is_of_session(path: str) -> bool:
    return path.startswith(store_entries.BROKERS) or path == store_entries.CONTROLLER


def _in_pieces(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    piece: list[Operation] = []
    size = 0
    for operation in operations:
        added = len(operation.value) if isinstance(operation, Put) else 0
        if piece and (size + added > COMMIT_BYTES or len(piece) == COMMIT_OPERATIONS):
            yield piece
            piece, size = [], 0
        piece.append(operation)
        size += added
    if piece:
        yield piece
