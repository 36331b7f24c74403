"""MetadataRequest and MetadataResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class MetadataRequestTopic(Message):
    __slots__ = (
        "topic_id",
        "name",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=10),
        FieldSpec("name", "string", first_nullable_version=10),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, name: str | None = "") -> None:
        self.topic_id: UUID = topic_id
        self.name: str | None = name


class MetadataRequest(Message):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "struct", is_array=True, first_nullable_version=1, item=MetadataRequestTopic),
        FieldSpec("allow_auto_topic_creation", "bool", first_version=4),
        FieldSpec("include_cluster_authorized_operations", "bool", first_version=8, last_version=10),
        FieldSpec("include_topic_authorized_operations", "bool", first_version=8),
    )

    def __init__(
        self,
        *,
        topics: Sequence[MetadataRequestTopic] | None = (),
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: Sequence[MetadataRequestTopic] | None = topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32"),
        FieldSpec("host", "string"),
        FieldSpec("port", "int32"),
        FieldSpec("rack", "string", first_version=1, first_nullable_version=1),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class MetadataResponsePartition(Message):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("partition_index", "int32"),
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32", first_version=7),
        FieldSpec("replica_nodes", "int32", is_array=True),
        FieldSpec("isr_nodes", "int32", is_array=True),
        FieldSpec("offline_replicas", "int32", is_array=True, first_version=5),
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
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: Sequence[int] = replica_nodes
        self.isr_nodes: Sequence[int] = isr_nodes
        self.offline_replicas: Sequence[int] = offline_replicas


class MetadataResponseTopic(Message):
    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("name", "string", first_nullable_version=12),
        FieldSpec("topic_id", "uuid", first_version=10),
        FieldSpec("is_internal", "bool", first_version=1),
        FieldSpec("partitions", "struct", is_array=True, item=MetadataResponsePartition),
        FieldSpec("topic_authorized_operations", "int32", first_version=8),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: UUID = ZERO_UUID,
        is_internal: bool = False,
        partitions: Sequence[MetadataResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: UUID = topic_id
        self.is_internal: bool = is_internal
        self.partitions: Sequence[MetadataResponsePartition] = partitions
        self.topic_authorized_operations: int = topic_authorized_operations


class MetadataResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=3),
        FieldSpec("brokers", "struct", is_array=True, item=MetadataResponseBroker),
        FieldSpec("cluster_id", "string", first_version=2, first_nullable_version=2),
        FieldSpec("controller_id", "int32", first_version=1),
        FieldSpec("topics", "struct", is_array=True, item=MetadataResponseTopic),
        FieldSpec("cluster_authorized_operations", "int32", first_version=8, last_version=10),
        FieldSpec("error_code", "int16", first_version=13),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: Sequence[MetadataResponseBroker] = (),
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: Sequence[MetadataResponseTopic] = (),
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: Sequence[MetadataResponseBroker] = brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: Sequence[MetadataResponseTopic] = topics
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.error_code: int = error_code
