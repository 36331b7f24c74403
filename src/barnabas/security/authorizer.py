"""Authorization: Kafka's rules over a set of access control lists.

Owns the bindings, with an index, so that a decision reads only the bindings of one resource.

Rules
  1. A super user may do everything.
  2. A binding that denies overrules every binding that allows. ALL means every operation.
  3. READ, WRITE, DELETE and ALTER each imply DESCRIBE; ALTER_CONFIGS implies DESCRIBE_CONFIGS. A denial implies no other denial.
  4. If no binding matches a resource, only super users may use it, unless `allow.everyone.if.no.acl.found` is set.
  5. A binding applies to a session if it names the session's principal, one of its groups ("Group:finance"), or "User:*" (every
     principal).
  6. A role is the principal of a set of bindings ("Role:auditor"). Its members are bindings too: a binding on the resource USER
     with the role's name allows ALL to the member (`membership`), and its host limits the membership to connections from this
     host. So every tool for bindings works with roles. If a binding denies ALL on the role to a principal, the principal does
     not have the role, even if other bindings give it.
  7. Only principals with CLUSTER_ACTION may create, write and change the topic of the audit log. A right on all topics does not
     include it: otherwise its owner could forge or delete entries, or create the topic before the broker does, with settings
     that keep no entries.
  8. `version` grows with each change, so that caches of decisions know when to drop them.

How it works: for each resource type there is a dictionary of literal names and one of prefixes. A resource has as many prefixes
as its name has characters. So the time for a decision depends on the length of the name, not on the number of bindings.
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
    """The requester: a principal ("User:alice"), the address of its connection, and its groups ("Group:finance")."""

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
    """Decides whether sessions may do operations.

    Args:
        super_users: the principals that may do everything.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`.
    """

    def __init__(self, acls: Iterable[Acl] = (), *, super_users: Iterable[str] = (), allow_if_no_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self.version = 0
        self._literal: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._prefixed: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._lengths: dict[ResourceType, Counter[int]] = {}  # resource type -> prefix length -> number of prefixes
        self._by_length: dict[ResourceType, tuple[int, ...]] = {}  # the same lengths in sorted order, computed on demand
        self._memberships: dict[str, dict[Acl, None]] = {}  # member -> memberships in roles
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        """Add a binding; an existing one stays."""
        self.version += 1
        index, key = self._index(acl), (acl.resource_type, acl.name)
        if key not in index:
            index[key] = {}
            self._note_length(acl, 1)
        index[key][acl] = None
        if is_membership(acl):
            self._memberships.setdefault(acl.principal, {})[acl] = None

    def remove(self, acl: Acl) -> None:
        """Remove a binding, if it exists."""
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
        """The session with its roles as groups, so that later decisions need not resolve roles."""
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
        """The bindings that match a filter, sorted by their fields; for one principal also the bindings of its roles."""
        found = {acl for acl in self._all() if wanted.matches(acl)}
        if wanted.principal is not None:
            found.update(acl for acl in self._by_roles(wanted.principal) if wanted.matches(acl))
        return sorted(found)

    def _by_roles(self, principal: str) -> Iterator[Acl]:
        """The bindings of a principal's roles, as if they were its own."""
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
        """All operations of the resource's type that the session may do."""
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
        """The bindings that apply to the session's operations on a resource."""
        return sorted(acl for acl in self._about(resource) if _is_about(acl, session))

    def is_super_user(self, session: Session) -> bool:
        return session.principal in self._super_users

    def is_allowed_anywhere(self, session: Session, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the session may do the operation on at least one possible resource of the type (KIP-679).

        An allowed literal or prefix counts, unless all its names are denied: by `*`, by the same pattern, or by a prefix of it.
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
        """Count an added or removed prefix by its length. A decision looks up a name once for each length that prefixes have,
        independent of the name's length."""
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
    """Whether the address `host` equals the pattern in any spelling, or is in the pattern's range."""
    if pattern in (host, WILDCARD):
        return True
    if "/" not in pattern:
        is_ipv6 = ":" in pattern or ":" in host  # an IPv4 address or a host name has only one spelling
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
    """The range of addresses in a text; None if it does not parse."""
    try:
        return ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return None


def _is_dominated(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether all names that the pattern of `acl` matches are denied."""
    if acl.pattern is PatternType.LITERAL and (PatternType.LITERAL, acl.name) in denied:
        return True
    if acl.pattern is PatternType.LITERAL and acl.name == WILDCARD:
        return (PatternType.PREFIXED, "") in denied
    return any((PatternType.PREFIXED, acl.name[:end]) in denied for end in range(len(acl.name) + 1))
