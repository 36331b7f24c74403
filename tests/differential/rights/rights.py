"""The rights that the questions are asked with: none, each operation on each type of resource, all of one, and some that deny."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.messages.create_acls import AclCreation
from barnabas.security.acls import CLUSTER_NAME, OPERATIONS, Operation, PatternType, Permission, ResourceType
from tests.differential.rights.place import MINE, Place

WALKED = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID, ResourceType.USER)
ALICE = "User:alice"
Right = tuple[tuple[ResourceType, Operation, PatternType, Permission], ...]


def rights() -> Iterator[tuple[str, Right]]:
    """Each right by its name."""
    allow, deny, literal, prefixed = Permission.ALLOW, Permission.DENY, PatternType.LITERAL, PatternType.PREFIXED
    yield "nothing", ()
    for kind in WALKED:
        for operation in sorted(OPERATIONS[kind]):
            yield f"{kind.name} {operation.name}".lower(), ((kind, operation, literal, allow),)
        yield f"{kind.name} all".lower(), ((kind, Operation.ALL, literal, allow),)
    yield "topic read by prefix", ((ResourceType.TOPIC, Operation.READ, prefixed, allow),)
    everything = tuple((kind, Operation.ALL, literal, allow) for kind in WALKED)
    yield "everything", everything
    yield "everything but writing to topics", (*everything, (ResourceType.TOPIC, Operation.WRITE, literal, deny))
    yield "everything but describing", (*everything, *((kind, Operation.DESCRIBE, literal, deny) for kind in WALKED))


def bindings(place: Place, right: Right) -> list[AclCreation]:
    """The bindings that give alice a right at a place."""
    return [
        AclCreation(
            resource_type=kind,
            resource_name=f"User:{name}" if kind is ResourceType.USER else name,
            resource_pattern_type=pattern,
            principal=ALICE,
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for kind, operation, pattern, permission in right
        for name in ((CLUSTER_NAME,) if kind is ResourceType.CLUSTER else map(place.name, MINE))
    ]
