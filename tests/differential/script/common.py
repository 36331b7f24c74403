"""Requests that several families use."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.differential.batch import Batch
from tests.differential.wire import Line


def produce(
    topic: str,
    *batches: Batch | bytes,
    partition: int = 0,
    acks: int = -1,
    topic_id: UUID = ZERO_UUID,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One partition's record data."""
    records = b"".join(each.to_bytes() if isinstance(each, Batch) else each for each in batches)
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


class Member:
    """A member of a classic group and its connection."""

    def __init__(
        self,
        line: Line,
        group: str,
        name: str,
        instance_id: str | None = None,
        *,
        session_timeout_ms: int = 30_000,
        protocols: Sequence[str] = ("range", "roundrobin"),
    ) -> None:
        self.line = line
        self.group = group
        self.name = name
        self.instance_id = instance_id
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.member_id = ""
        self.generation = -1

    def learn(self, joined: Any) -> None:
        """Take the member id and the generation from the answer to a join."""
        self.member_id = joined.member_id or self.member_id
        self.generation = joined.generation_id


def subscription(topic: str, user_data: bytes) -> bytes:
    """A consumer's metadata, version 0; Kafka leaves a group of type `consumer` hanging when it cannot read it."""
    return struct.pack(f">hih{len(topic)}si", 0, 1, len(topic), topic.encode(), len(user_data)) + user_data


def join(member: Member) -> JoinGroupRequest:
    """The member's wish to be in its group."""
    protocols = [
        JoinGroupRequestProtocol(name=name, metadata=subscription("events", f"{member.name} by {name}".encode()))
        for name in member.protocols
    ]
    return JoinGroupRequest(
        group_id=member.group,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=30_000,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        protocol_type="consumer",
        protocols=protocols,
        reason="the script says so",
    )


def sync(member: Member, assignments: dict[str, bytes]) -> SyncGroupRequest:
    """The member's question for its share, with everybody's when it leads."""
    shares = [SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in assignments.items()]
    return SyncGroupRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        protocol_type="consumer",
        protocol_name=member.protocols[0],
        assignments=shares,
    )
