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
        ("topic_id", "uuid", False, 10, 32767, 32767, 32767, None, None),
        ("name", "string", False, 0, 32767, 10, 32767, None, None),
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
        ("topics", "struct", True, 0, 32767, 1, 32767, None, MetadataRequestTopic),
        ("allow_auto_topic_creation", "bool", False, 4, 32767, 32767, 32767, None, None),
        ("include_cluster_authorized_operations", "bool", False, 8, 10, 32767, 32767, None, None),
        ("include_topic_authorized_operations", "bool", False, 8, 32767, 32767, 32767, None, None),
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
        ("node_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("host", "string", False, 0, 32767, 32767, 32767, None, None),
        ("port", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("rack", "string", False, 1, 32767, 1, 32767, None, None),
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
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("partition_index", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("leader_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("leader_epoch", "int32", False, 7, 32767, 32767, 32767, None, None),
        ("replica_nodes", "int32", True, 0, 32767, 32767, 32767, None, None),
        ("isr_nodes", "int32", True, 0, 32767, 32767, 32767, None, None),
        ("offline_replicas", "int32", True, 5, 32767, 32767, 32767, None, None),
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
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("name", "string", False, 0, 32767, 12, 32767, None, None),
        ("topic_id", "uuid", False, 10, 32767, 32767, 32767, None, None),
        ("is_internal", "bool", False, 1, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, MetadataResponsePartition),
        ("topic_authorized_operations", "int32", False, 8, 32767, 32767, 32767, None, None),
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
        ("throttle_time_ms", "int32", False, 3, 32767, 32767, 32767, None, None),
        ("brokers", "struct", True, 0, 32767, 32767, 32767, None, MetadataResponseBroker),
        ("cluster_id", "string", False, 2, 32767, 2, 32767, None, None),
        ("controller_id", "int32", False, 1, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, MetadataResponseTopic),
        ("cluster_authorized_operations", "int32", False, 8, 10, 32767, 32767, None, None),
        ("error_code", "int16", False, 13, 32767, 32767, 32767, None, None),
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
