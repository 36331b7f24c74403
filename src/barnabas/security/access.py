"""The rights of a session, as far as its requests have asked for them.

A decision is remembered as long as the authorizer's version stays the same. The number of remembered decisions is bounded
(`limits`). When it is exceeded, all are forgotten.
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
        """Whether the session may do the operation with a resource."""
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
        """The same for questions that are nobody's deed: what is left out of a list, which of two rights somebody has."""
        return self

    def note(self, operation: Operation, kind: ResourceType, name: str) -> None:
        """Something is done by a right on something else: for the audit log."""

    def sampled(self, operation: Operation, kind: ResourceType, name: str) -> Callable[[int], None] | None:
        """The part that counts repeated uses of a right; None if nothing counts them."""
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
        """Whether there can be a resource of this type with which the session may do the operation."""
        asked = (operation, kind)
        if asked not in self._anywhere:
            self._anywhere[asked] = self._authorizer.is_allowed_anywhere(self.session, operation, kind)
        return self._anywhere[asked]

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that the session may do, as a bit field (KIP-430)."""
        return sum(1 << operation for operation in self._authorizer.operations(self.session, Resource(kind, name)))
