"""The rights for Fetch requests. Their handler works on frames and has no guard before it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.error_codes import ErrorCode
from barnabas.security.acls import AUDIT_TOPIC, Operation

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.security.access import Access
    from barnabas.server.fetching.fetch_session import FetchedPartition


def why_not_fetch(image: MetadataImage, access: Access, replica_id: int, wanted: FetchedPartition) -> ErrorCode | None:
    """The error if the client may not fetch a partition; None if it may, or if no topic has its topic id."""
    name = image.topic_name(wanted.topic) if isinstance(wanted.topic, UUID) else wanted.topic
    if name is None:
        return None
    if replica_id < 0:
        allowed = access.allows_topic(Operation.READ, name)
    else:  # `silent`, because followers of the audit log would cause entries about their own fetches, without end
        is_copied = name == AUDIT_TOPIC and access.silent.allows_cluster(Operation.CLUSTER_ACTION)
        allowed = is_copied or access.allows_cluster(Operation.CLUSTER_ACTION)
    return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
