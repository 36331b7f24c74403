"""The rights for Produce requests. Their handler works on frames and has no guard before it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.produce import FIRST_TOPIC_ID_VERSION, ProduceHead
from barnabas.protocol.records.batch_header import is_transactional
from barnabas.security.acls import Operation
from barnabas.server.producing.delayed import Topics, refused

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.security.access import Access


def may_write_transaction(access: Access, head: ProduceHead) -> bool:
    """Whether the client may write the transactional batches in the request; True if there are none."""
    if not any(each.records is not None and is_transactional(each.records) for _, wanted in head.topics for each in wanted):
        return True
    return head.transactional_id is not None and access.allows_transaction(Operation.WRITE, head.transactional_id)


def split_produce(image: MetadataImage, access: Access, version: int, head: ProduceHead) -> tuple[ProduceHead, Topics]:
    """The allowed part of a request, and the refusals of the rest. The handler answers unknown topic ids."""
    by_id = version >= FIRST_TOPIC_ID_VERSION
    allowed, denied = [], []
    for topic in head.topics:
        key, wanted = topic
        name = image.topic_name(UUID(bytes=key)) if by_id else key.decode(errors="replace")
        if name is None or access.allows_topic(Operation.WRITE, name):
            allowed.append(topic)
        else:
            denied.append((key, [refused(each.partition, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for each in wanted]))
    return (head._replace(topics=allowed) if denied else head), denied
