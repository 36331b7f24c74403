"""What of a Produce or Fetch request may be done, for their handlers, which work on frames and have no guard before them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.produce import FIRST_TOPIC_ID_VERSION, ProduceHead
from barnabas.protocol.records.batch_header import is_transactional
from barnabas.security.acls import AUDIT_TOPIC, Operation
from barnabas.server.producing.delayed import Topics, refused

if TYPE_CHECKING:
    from barnabas.server.authorization.access_control import Access
    from barnabas.server.broker import Broker
    from barnabas.server.fetching.fetch_session import FetchedPartition


def may_write_transaction(access: Access, head: ProduceHead) -> bool:
    """Whether the batches of a transaction in the request may be written by who sent it; True where there are none."""
    if not any(each.records is not None and is_transactional(each.records) for _, wanted in head.topics for each in wanted):
        return True
    return head.transactional_id is not None and access.allows_transaction(Operation.WRITE, head.transactional_id)


def split_produce(broker: Broker, access: Access, version: int, head: ProduceHead) -> tuple[ProduceHead, Topics]:
    """What of a request may be appended, and the refusals of the rest; a topic id that nobody has is left to the handler."""
    by_id = version >= FIRST_TOPIC_ID_VERSION
    allowed, denied = [], []
    for topic in head.topics:
        key, wanted = topic
        name = broker.metadata.topic_name(UUID(bytes=key)) if by_id else key.decode(errors="replace")
        if name is None or access.allows_topic(Operation.WRITE, name):
            allowed.append(topic)
        else:
            denied.append((key, [refused(each.partition, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for each in wanted]))
    return (head._replace(topics=allowed) if denied else head), denied


def why_not_fetch(broker: Broker, access: Access, replica_id: int, wanted: FetchedPartition) -> ErrorCode | None:
    """Why a partition may not be fetched; None where it may, or where its topic id is nobody's."""
    name = broker.metadata.topic_name(wanted.topic) if isinstance(wanted.topic, UUID) else wanted.topic
    if name is None:
        return None
    if replica_id < 0:
        allowed = access.allows_topic(Operation.READ, name)
    else:  # followers of the audit log would fetch entries about their fetching, for ever
        is_copied = name == AUDIT_TOPIC and access.silent.allows_cluster(Operation.CLUSTER_ACTION)
        allowed = is_copied or access.allows_cluster(Operation.CLUSTER_ACTION)
    return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
