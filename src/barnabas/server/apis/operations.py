"""The operations that a principal may do on a resource, as the bit fields of Metadata and of the Describe APIs (KIP-430)."""

from __future__ import annotations

from barnabas.security.acls import OPERATIONS, ResourceType

NOT_ASKED = -(2**31)


def _all_on(kind: ResourceType) -> int:
    return sum(1 << operation for operation in OPERATIONS[kind])


ALL_ON_TOPIC = _all_on(ResourceType.TOPIC)
ALL_ON_GROUP = _all_on(ResourceType.GROUP)
ALL_ON_CLUSTER = _all_on(ResourceType.CLUSTER)
