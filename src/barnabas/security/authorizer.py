"""Whether somebody may do something: Kafka's rules over a set of access control lists.

Owns the bindings, indexed so that a decision looks at those of one resource only.

Rules
  1. A super user may do everything.
  2. One binding that denies decides, whatever allows it. ALL stands for every operation.
  3. What allows READ, WRITE, DELETE or ALTER allows DESCRIBE; what allows ALTER_CONFIGS allows DESCRIBE_CONFIGS. Denials imply nothing.
  4. Where no binding is about a resource, nobody may use it, unless `allow.everyone.if.no.acl.found`.
  5. A binding is somebody's by its principal, by that of a group they are in ("Group:finance"), or by "User:*", which is everybody.
  6. A role is the principal of a set of bindings ("Role:auditor"). Who has it is said by bindings too: on the resource USER of the role's
     name, ALL is allowed to the member (`membership`), and its host says from where. So every tool that knows bindings knows roles.
     Who is denied ALL there does not have the role, whatever gives it to him.
  7. The topic of the audit log is made and changed by who may act for the cluster (CLUSTER_ACTION), and by nobody else: a right on all
     topics is none to write other entries, to delete these, or to make the topic first with settings that keep nothing.
  8. `version` grows with each change, so that who remembers decisions knows when to forget them.

How it works: bindings lie by resource type in one dictionary of literal names and one of prefixes; a resource has as many prefixes as its
name has characters, so a decision takes as long as the name is, however many bindings there are.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from barnabas.addresses import plain_address
from barnabas.security.acls import (
    AUDIT_TOPIC,
    CLUSTER,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)

ANY_USER = "User:*"
ROLE = "Role:"
_IMPLIED_BY = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
_NOTHING: frozenset[Operation] = frozenset()
_AUDIT = Resource(ResourceType.TOPIC, AUDIT_TOPIC)
_CHANGES = frozenset({Operation.CREATE, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS})


class Session(NamedTuple):
    """Who asks from where: a principal ("User:alice"), the address of its connection, and the groups it is in ("Group:finance")."""

    principal: str
    host: str
    groups: tuple[str, ...] = ()


def membership(role: str, member: str, host: str = WILDCARD) -> Acl:
    """The binding that gives a role ("Role:auditor") to a principal ("User:alice", "Group:finance")."""
    return Acl(ResourceType.USER, role, PatternType.LITERAL, member, host, Operation.ALL, Permission.ALLOW)


def is_membership(acl: Acl) -> bool:
    return (
        acl.resource_type is ResourceType.USER
        and acl.name.startswith(ROLE)
        and acl == membership(acl.name, acl.principal, acl.host)
    )


class Authorizer:
    """Decides by the bindings it was given.

    Args:
        super_users: principals that may do everything.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`.
    """

    def __init__(self, acls: Iterable[Acl] = (), *, super_users: Iterable[str] = (), allow_if_no_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self.version = 0
        self._literal: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._prefixed: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._lengths: dict[ResourceType, Counter[int]] = {}  # that prefixes of resources of a type have, and how many of them
        self._by_length: dict[ResourceType, tuple[int, ...]] = {}  # these lengths in order, found again when they are needed
        self._memberships: dict[str, dict[Acl, None]] = {}  # by member
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        """Take a binding in; one that is there already stays."""
        self.version += 1
        index, key = self._index(acl), (acl.resource_type, acl.name)
        if key not in index:
            index[key] = {}
            self._note_length(acl, 1)
        index[key][acl] = None
        if is_membership(acl):
            self._memberships.setdefault(acl.principal, {})[acl] = None

    def remove(self, acl: Acl) -> None:
        """Forget a binding; nothing happens if it is not there."""
        self.version += 1
        index, key = self._index(acl), (acl.resource_type, acl.name)
        bindings = index.get(key)
        if bindings is not None:
            bindings.pop(acl, None)
            if not bindings:
                del index[key]
                self._note_length(acl, -1)
        members = self._memberships.get(acl.principal, {})
        if acl in members:
            del members[acl]
            if not members:
                del self._memberships[acl.principal]

    def with_roles(self, session: Session) -> Session:
        """The session with the roles that it has as groups: who decides for it needs to know of roles no more."""
        roles = {
            acl.name
            for principal in (session.principal, ANY_USER, *session.groups)
            for acl in self._memberships.get(principal, ())
            if covers_host(acl.host, session.host) and not self._is_denied_role(session, acl.name)
        }
        return session._replace(groups=(*session.groups, *sorted(roles))) if roles else session

    def _is_denied_role(self, session: Session, role: str) -> bool:
        return any(
            acl.permission is Permission.DENY and acl.operation is Operation.ALL and _is_about(acl, session)
            for acl in self._about(Resource(ResourceType.USER, role))
        )

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """The bindings that a filter means, in the order of their fields; for one principal those too that follow from its roles."""
        found = {acl for acl in self._all() if wanted.matches(acl)}
        if wanted.principal is not None:
            found.update(acl for acl in self._by_roles(wanted.principal) if wanted.matches(acl))
        return sorted(found)

    def _by_roles(self, principal: str) -> Iterator[Acl]:
        """What follows for a principal from its roles: their bindings, as if they were its own."""
        hosts: dict[str, list[str]] = {}
        for acl in self._memberships.get(principal, ()):
            hosts.setdefault(acl.name, []).append(acl.host)
        for acl in self._all():
            for host in hosts.get(acl.principal, ()) if hosts else ():
                if WILDCARD in (host, acl.host) or plain_address(host) == plain_address(acl.host):
                    yield acl._replace(principal=principal, host=acl.host if host == WILDCARD else host)

    def is_allowed(self, session: Session, operation: Operation, resource: Resource) -> bool:
        """Whether the session may do the operation."""
        if session.principal in self._super_users:
            return True
        if resource == _AUDIT and operation in _CHANGES:
            return self._is_allowed(session, Operation.CLUSTER_ACTION, list(self._about(CLUSTER)))
        return self._is_allowed(session, operation, list(self._about(resource)))

    def operations(self, session: Session, resource: Resource) -> list[Operation]:
        """Every operation that the session may do with a resource, as far as its type knows it."""
        known = sorted(OPERATIONS[resource.type])
        if session.principal in self._super_users:
            return known
        if resource == _AUDIT:
            return [operation for operation in known if self.is_allowed(session, operation, resource)]
        about = list(self._about(resource))
        return [operation for operation in known if self._is_allowed(session, operation, about)]

    def _is_allowed(self, session: Session, operation: Operation, about: Iterable[Acl]) -> bool:
        allowed = found = False
        for acl in about:
            found = True
            if not _is_about(acl, session):
                continue
            if acl.permission is Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation in (operation, Operation.ALL) or acl.operation in _IMPLIED_BY.get(operation, _NOTHING):
                allowed = True
        return allowed or (not found and self._allow_if_no_acl)

    def bindings_about(self, session: Session, resource: Resource) -> list[Acl]:
        """The bindings by which is decided what the session may do with a resource."""
        return sorted(acl for acl in self._about(resource) if _is_about(acl, session))

    def is_super_user(self, session: Session) -> bool:
        return session.principal in self._super_users

    def is_allowed_anywhere(self, session: Session, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there can be a resource of the type with which the session may do the operation (KIP-679).

        A literal or prefix that is allowed counts unless everything under it is denied: by `*`, by itself, or by a prefix of it.
        """
        if session.principal in self._super_users:
            return True
        allowed: list[Acl] = []
        denied: set[tuple[PatternType, str]] = set()
        for acl in self._all():
            if acl.resource_type is not resource_type or not _is_about(acl, session):
                continue
            if acl.operation not in (operation, Operation.ALL):
                continue
            if acl.permission is Permission.DENY:
                denied.add((acl.pattern, acl.name))
            else:
                allowed.append(acl)
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        if self._allow_if_no_acl:
            return True
        return any(not _is_dominated(acl, denied) for acl in allowed)

    def _about(self, resource: Resource) -> Iterator[Acl]:
        kind, name = resource
        yield from self._literal.get((kind, name), ())
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), ())
        for end in self._lengths_in_order(kind):
            if end > len(name):
                return
            yield from self._prefixed.get((kind, name[:end]), ())

    def _note_length(self, acl: Acl, change: int) -> None:
        """One name more or less. A name is looked at once for each length that prefixes have, however long a peer has made it."""
        if acl.pattern is PatternType.PREFIXED:
            lengths = self._lengths.setdefault(acl.resource_type, Counter())
            lengths[len(acl.name)] += change
            self._by_length.pop(acl.resource_type, None)

    def _lengths_in_order(self, kind: ResourceType) -> tuple[int, ...]:
        found = self._by_length.get(kind)
        if found is None:
            found = self._by_length[kind] = tuple(sorted(+self._lengths.get(kind, Counter())))
        return found

    def _all(self) -> Iterator[Acl]:
        for index in (self._literal, self._prefixed):
            for bindings in index.values():
                yield from bindings

    def _index(self, acl: Acl) -> dict[tuple[ResourceType, str], dict[Acl, None]]:
        return self._prefixed if acl.pattern is PatternType.PREFIXED else self._literal


def _is_about(acl: Acl, session: Session) -> bool:
    return (acl.principal in (session.principal, ANY_USER) or acl.principal in session.groups) and covers_host(
        acl.host, session.host
    )


def covers_host(pattern: str, host: str) -> bool:
    """Whether an address is the one that is meant, however it is spelled, or in the range that is."""
    if pattern in (host, WILDCARD):
        return True
    if "/" not in pattern:
        is_ipv6 = ":" in pattern or ":" in host  # others have one spelling
        return is_ipv6 and plain_address(pattern) == plain_address(host)
    network = network_of(pattern)
    if network is None:
        return False
    try:
        return ipaddress.ip_address(host) in network
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def network_of(pattern: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The range of addresses that is written there; None where it cannot be read."""
    try:
        return ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return None


def _is_dominated(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether everything under the pattern of `acl` is denied too."""
    if acl.pattern is PatternType.LITERAL and (PatternType.LITERAL, acl.name) in denied:
        return True
    if acl.pattern is PatternType.LITERAL and acl.name == WILDCARD:
        return (PatternType.PREFIXED, "") in denied
    return any((PatternType.PREFIXED, acl.name[:end]) in denied for end in range(len(acl.name) + 1))
