"""Requests that several families use."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.message import ZERO_UUID
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.differential.batch import Batch


def produce(
    topic: str,
    *batches: Batch | bytes | None,
    partition: int = 0,
    acks: int = -1,
    topic_id: UUID = ZERO_UUID,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One partition's record data; None stands for null record data."""
    parts = [each.to_bytes() if isinstance(each, Batch) else each for each in batches]
    records = None if parts == [None] else b"".join(part or b"" for part in parts)
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])]
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=topics)


def fetch(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    topic_id: UUID = ZERO_UUID,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    isolation_level: int = 0,
) -> FetchRequest:
    """One partition, without a session."""
    place = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes, current_leader_epoch=leader_epoch
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[place])],
    )
