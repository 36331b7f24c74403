"""The rights of a session, with a cache of its decisions.

A decision is cached while the authorizer's version stays the same. The number of cached decisions is bounded (`limits`). If
there would be more, the whole cache is dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas import limits
from barnabas.security.acls import CLUSTER, Operation, Resource, ResourceType
from barnabas.security.authorizer import Authorizer, Session


class Access:
    """The rights of one session."""

    __slots__ = ("_anywhere", "_authorizer", "_decided", "groups", "principal", "session", "version")

    def __init__(self, session: Session, authorizer: Authorizer) -> None:
        self.principal, self.groups = session.principal, session.groups
        self.session = authorizer.with_roles(session)
        self.version = authorizer.version
        self._authorizer = authorizer
        self._decided: dict[tuple[Operation, ResourceType, str], bool] = {}
        # whether any binding allows an operation; cached, because it takes a search of all bindings
        self._anywhere: dict[tuple[Operation, ResourceType], bool] = {}

    def allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the session may do the operation on a resource."""
        asked = (operation, kind, name)
        allowed = self._decided.get(asked)
        if allowed is None:
            allowed = self._authorizer.is_allowed(self.session, operation, Resource(kind, name))
            if len(name) <= limits.MAX_REMEMBERED_NAME:
                if len(self._decided) >= limits.MAX_DECISIONS_PER_SESSION:
                    self._decided.clear()
                self._decided[asked] = allowed
        return allowed

    @property
    def silent(self) -> Access:
        """The same rights without entries in the audit log, for decisions that are not an action: to filter a list, or to find
        which of two rights a session has."""
        return self

    def note(self, operation: Operation, kind: ResourceType, name: str) -> None:
        """Record in the audit log an operation that was allowed by a right on another resource."""

    def sampled(self, operation: Operation, kind: ResourceType, name: str) -> Callable[[int], None] | None:
        """The function that counts repeated uses of a right; None if nothing counts them."""
        return None

    def allows_topic(self, operation: Operation, name: str) -> bool:
        return self.allows(operation, ResourceType.TOPIC, name)

    def allows_group(self, operation: Operation, name: str) -> bool:
        return self.allows(operation, ResourceType.GROUP, name)

    def allows_transaction(self, operation: Operation, transactional_id: str) -> bool:
        return self.allows(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def allows_cluster(self, operation: Operation) -> bool:
        return self.allows(operation, *CLUSTER)

    def allows_anywhere(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether the session may do the operation on at least one possible resource of this type."""
        asked = (operation, kind)
        if asked not in self._anywhere:
            self._anywhere[asked] = self._authorizer.is_allowed_anywhere(self.session, operation, kind)
        return self._anywhere[asked]

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that the session may do, as a bit field (KIP-430)."""
        return sum(1 << operation for operation in self._authorizer.operations(self.session, Resource(kind, name)))
