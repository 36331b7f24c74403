"""DescribeQuorumRequest and DescribeQuorumResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class RequestPartitionData(Message):
    __slots__ = ("partition_index",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("partition_index", "int32"),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index: int = partition_index


class RequestTopicData(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=RequestPartitionData),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[RequestPartitionData] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[RequestPartitionData] = partitions


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("topics", "struct", is_array=True, item=RequestTopicData),)

    def __init__(self, *, topics: Sequence[RequestTopicData] = ()) -> None:
        self.topics: Sequence[RequestTopicData] = topics


class ReplicaState(Message):
    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("replica_id", "int32"),
        FieldSpec("replica_directory_id", "uuid", first_version=2),
        FieldSpec("log_end_offset", "int64"),
        FieldSpec("last_fetch_timestamp", "int64", first_version=1),
        FieldSpec("last_caught_up_timestamp", "int64", first_version=1),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: UUID = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: UUID = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp


class Listener(Message):
    __slots__ = (
        "name",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=2),
        FieldSpec("host", "string", first_version=2),
        FieldSpec("port", "uint16", first_version=2),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


class ResponsePartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_version=2, first_nullable_version=2),
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32"),
        FieldSpec("high_watermark", "int64"),
        FieldSpec("current_voters", "struct", is_array=True, item=ReplicaState),
        FieldSpec("observers", "struct", is_array=True, item=ReplicaState),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: Sequence[ReplicaState] = (),
        observers: Sequence[ReplicaState] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: Sequence[ReplicaState] = current_voters
        self.observers: Sequence[ReplicaState] = observers


class Node(Message):
    __slots__ = (
        "node_id",
        "listeners",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32", first_version=2),
        FieldSpec("listeners", "struct", is_array=True, first_version=2, item=Listener),
    )

    def __init__(self, *, node_id: int = 0, listeners: Sequence[Listener] = ()) -> None:
        self.node_id: int = node_id
        self.listeners: Sequence[Listener] = listeners


class ResponseTopicData(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ResponsePartitionData),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[ResponsePartitionData] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[ResponsePartitionData] = partitions


class DescribeQuorumResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "topics",
        "nodes",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_version=2, first_nullable_version=2),
        FieldSpec("topics", "struct", is_array=True, item=ResponseTopicData),
        FieldSpec("nodes", "struct", is_array=True, first_version=2, item=Node),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: Sequence[ResponseTopicData] = (),
        nodes: Sequence[Node] = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: Sequence[ResponseTopicData] = topics
        self.nodes: Sequence[Node] = nodes
