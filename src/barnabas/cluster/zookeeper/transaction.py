"""Converts a commit to one ZooKeeper transaction, and interprets its refusal.

ZooKeeper has create, set, delete and check by version, but neither "create or set" nor "must not exist". So a look-up just
before decides whether ANY becomes a create or a set, and the commit is retried if the entry appeared or vanished in between.
"Must not exist" becomes a create and a delete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.protocol.serialization import CheckVersion, Create, Delete, SetData
from kazoo.security import ACL
from msgspec import Struct, field

from barnabas.cluster.store.interface import ABSENT, ANY, Check, Operation, Put, Remove

EPHEMERAL = 1
ANY_VERSION = -1  # ZooKeeper accepts any version then, but the entry must exist


class ZooKeeperTransaction(Struct):
    """The requests of a commit, each with its operation.

    Args:
        root: prefix of every path.
        looked_up: versions (or ABSENT) of the paths of operations without expectation.
        acl: access control list of created entries.
    """

    root: str
    looked_up: Mapping[str, int]
    acl: Sequence[ACL]
    requests: list[Any] = field(default_factory=list)
    _sources: list[tuple[Operation, int | None]] = field(
        default_factory=list
    )  # operation of each request, and the known version before it
    _versions: dict[str, int] = field(default_factory=dict)  # versions after earlier operations

    def add(self, operation: Operation) -> None:
        path = self.root + operation.path
        before = self._versions.get(operation.path)
        expected = operation.expected
        if expected == ANY:
            expected = self.looked_up[operation.path] if before is None else before
        version = ANY_VERSION if operation.expected == ANY else expected
        after = expected
        match operation:
            case Put(_, value) if expected == ABSENT:
                flags = EPHEMERAL if operation.ephemeral else 0
                self._request(operation, before, Create(path, value, self.acl, flags))
                after = 0
            case Put(_, value):
                self._request(operation, before, SetData(path, value, version))
                after = expected + 1
            case Remove() | Check() if expected == ABSENT:
                self._request(operation, before, Create(path, b"", self.acl, 0))
                self._request(operation, before, Delete(path, 0))
            case Remove():
                self._request(operation, before, Delete(path, version))
                after = ABSENT
            case Check():
                self._request(operation, before, CheckVersion(path, expected))
        self._versions[operation.path] = after

    def _request(self, operation: Operation, before: int | None, request: Any) -> None:
        self.requests.append(request)
        self._sources.append((operation, before))

    def made(self) -> list[str]:
        """The created paths; their parents must exist."""
        return [operation.path for (operation, _), request in self._pairs() if isinstance(request, Create)]

    def _pairs(self) -> list[tuple[tuple[Operation, int | None], Any]]:
        return list(zip(self._sources, self.requests, strict=True))

    def refusal(self, results: Sequence[Any]) -> Refusal | None:
        """The refused operation; None if all were done."""
        for (source, request), result in zip(self._pairs(), results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, (RolledBackError, RuntimeInconsistency)):
                operation, before = source
                return Refusal(operation, before, result, isinstance(request, Create) and isinstance(result, NoNodeError))
        return None


class Refusal(Struct, frozen=True):
    """One operation that the server refused.

    Args:
        before: the version after earlier operations of the commit; None if there are none on this path.
    """

    operation: Operation
    before: int | None
    error: Exception
    parent_is_missing: bool

    @property
    def is_conflict(self) -> bool:
        """Whether an expectation did not hold."""
        return isinstance(self.error, (BadVersionError, NodeExistsError, NoNodeError))

    @property
    def may_be_tried_again(self) -> bool:
        return self.parent_is_missing or (self.is_conflict and self.operation.expected == ANY)
