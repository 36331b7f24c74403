"""Access control lists with Kafka's semantics: bindings, and filters of bindings.

Owns the numbers of the protocol (resource types, pattern types, operations, permissions), the matching of filters, and the
stored form of a binding: a JSON object of words, with a key that is the same for equal bindings. The module `authorizer` makes
decisions from bindings.

Source: the schemas of CreateAcls, DescribeAcls and DeleteAcls, and KIP-290 for prefixed patterns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

WILDCARD = "*"  # as a literal name: all resources; as a host: all hosts


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """ANY and MATCH are only for filters: ANY matches every pattern, MATCH every pattern that matches the name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


AUDIT_TOPIC = "__audit_log"  # brokers write allowed and refused operations to this topic
CLUSTER_NAME = "kafka-cluster"  # name of the only resource of type CLUSTER

_O = Operation
OPERATIONS: dict[ResourceType, frozenset[Operation]] = {  # operations that each resource type supports, without ALL
    ResourceType.TOPIC: frozenset(
        {_O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}
    ),
    ResourceType.GROUP: frozenset({_O.READ, _O.DESCRIBE, _O.DELETE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}),
    ResourceType.CLUSTER: frozenset(
        {
            _O.CREATE,
            _O.CLUSTER_ACTION,
            _O.DESCRIBE_CONFIGS,
            _O.ALTER_CONFIGS,
            _O.IDEMPOTENT_WRITE,
            _O.ALTER,
            _O.DESCRIBE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset({_O.DESCRIBE, _O.WRITE, _O.TWO_PHASE_COMMIT}),
    ResourceType.DELEGATION_TOKEN: frozenset({_O.DESCRIBE}),
    ResourceType.USER: frozenset({_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS}),
}


class Resource(NamedTuple):
    """A resource of a request."""

    type: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


class Acl(NamedTuple):
    """One binding: `principal` ("User:alice", "User:*") at `host` may, or may not, do `operation` on the resources of a pattern.

    Args:
        pattern: LITERAL or PREFIXED.
        host: an address, `*`, or a range of addresses (10.0.0.0/8).
    """

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def covers(self, resource: Resource) -> bool:
        """Whether the pattern matches the resource."""
        if self.resource_type is not resource.type:
            return False
        if self.pattern is PatternType.PREFIXED:
            return resource.name.startswith(self.name)
        return self.name in (resource.name, WILDCARD)


class AclFilter(NamedTuple):
    """A filter of bindings; a field of None matches every name, principal or host."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == acl.name
        if acl.pattern is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name in (self.name, WILDCARD)


def acl_as_json(acl: Acl) -> dict[str, str]:
    """The stored form of a binding."""
    return {
        "resource": acl.resource_type.name,
        "name": acl.name,
        "pattern": acl.pattern.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


def acl_from_json(kept: Mapping[str, Any]) -> Acl:
    """Parses the text of `acl_as_json`."""
    return Acl(
        ResourceType[kept["resource"]],
        kept["name"],
        PatternType[kept["pattern"]],
        kept["principal"],
        kept["host"],
        Operation[kept["operation"]],
        Permission[kept["permission"]],
    )


def acl_key(acl: Acl) -> str:
    """The key of a stored binding; its length is fixed, independent of the names."""
    return hashlib.sha256(json.dumps(acl_as_json(acl), sort_keys=True).encode()).hexdigest()[:32]
