"""DescribeTopicPartitionsRequest and DescribeTopicPartitionsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class TopicRequest(Message):
    __slots__ = ("name",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("name", "string"),)

    def __init__(self, *, name: str = "") -> None:
        self.name: str = name


class RequestCursor(Message):
    __slots__ = (
        "topic_name",
        "partition_index",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partition_index", "int32"),
    )

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


class DescribeTopicPartitionsRequest(Message):
    __slots__ = (
        "topics",
        "response_partition_limit",
        "cursor",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "struct", is_array=True, item=TopicRequest),
        FieldSpec("response_partition_limit", "int32"),
        FieldSpec("cursor", "struct", first_nullable_version=0, item=RequestCursor),
    )

    def __init__(
        self, *, topics: Sequence[TopicRequest] = (), response_partition_limit: int = 2000, cursor: RequestCursor | None = None
    ) -> None:
        self.topics: Sequence[TopicRequest] = topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: RequestCursor | None = cursor


class ResponseCursor(Message):
    __slots__ = (
        "topic_name",
        "partition_index",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partition_index", "int32"),
    )

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("partition_index", "int32"),
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32"),
        FieldSpec("replica_nodes", "int32", is_array=True),
        FieldSpec("isr_nodes", "int32", is_array=True),
        FieldSpec("eligible_leader_replicas", "int32", is_array=True, first_nullable_version=0),
        FieldSpec("last_known_elr", "int32", is_array=True, first_nullable_version=0),
        FieldSpec("offline_replicas", "int32", is_array=True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: Sequence[int] = (),
        isr_nodes: Sequence[int] = (),
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: Sequence[int] = replica_nodes
        self.isr_nodes: Sequence[int] = isr_nodes
        self.eligible_leader_replicas: Sequence[int] | None = eligible_leader_replicas
        self.last_known_elr: Sequence[int] | None = last_known_elr
        self.offline_replicas: Sequence[int] = offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("name", "string", first_nullable_version=0),
        FieldSpec("topic_id", "uuid"),
        FieldSpec("is_internal", "bool"),
        FieldSpec("partitions", "struct", is_array=True, item=DescribeTopicPartitionsResponsePartition),
        FieldSpec("topic_authorized_operations", "int32"),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: UUID = ZERO_UUID,
        is_internal: bool = False,
        partitions: Sequence[DescribeTopicPartitionsResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: UUID = topic_id
        self.is_internal: bool = is_internal
        self.partitions: Sequence[DescribeTopicPartitionsResponsePartition] = partitions
        self.topic_authorized_operations: int = topic_authorized_operations


class DescribeTopicPartitionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "next_cursor",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("topics", "struct", is_array=True, item=DescribeTopicPartitionsResponseTopic),
        FieldSpec("next_cursor", "struct", first_nullable_version=0, item=ResponseCursor),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[DescribeTopicPartitionsResponseTopic] = (),
        next_cursor: ResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[DescribeTopicPartitionsResponseTopic] = topics
        self.next_cursor: ResponseCursor | None = next_cursor
