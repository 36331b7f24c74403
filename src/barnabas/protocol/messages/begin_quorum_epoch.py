"""BeginQuorumEpochRequest and BeginQuorumEpochResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class LeaderEndpoint(Message):
    __slots__ = (
        "name",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=1),
        FieldSpec("host", "string", first_version=1),
        FieldSpec("port", "uint16", first_version=1),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


class RequestPartitionData(Message):
    __slots__ = (
        "partition_index",
        "voter_directory_id",
        "leader_id",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("voter_directory_id", "uuid", first_version=1),
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32"),
    )

    def __init__(
        self, *, partition_index: int = 0, voter_directory_id: UUID = ZERO_UUID, leader_id: int = 0, leader_epoch: int = 0
    ) -> None:
        self.partition_index: int = partition_index
        self.voter_directory_id: UUID = voter_directory_id
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class RequestTopicData(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=RequestPartitionData),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[RequestPartitionData] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[RequestPartitionData] = partitions


class BeginQuorumEpochRequest(Message):
    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
        "leader_endpoints",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("cluster_id", "string", first_nullable_version=0),
        FieldSpec("voter_id", "int32", first_version=1),
        FieldSpec("topics", "struct", is_array=True, item=RequestTopicData),
        FieldSpec("leader_endpoints", "struct", is_array=True, first_version=1, item=LeaderEndpoint),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: Sequence[RequestTopicData] = (),
        leader_endpoints: Sequence[LeaderEndpoint] = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: Sequence[RequestTopicData] = topics
        self.leader_endpoints: Sequence[LeaderEndpoint] = leader_endpoints


class NodeEndpoint(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32", first_version=1),
        FieldSpec("host", "string", first_version=1),
        FieldSpec("port", "uint16", first_version=1),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port


class ResponsePartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class ResponseTopicData(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ResponsePartitionData),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[ResponsePartitionData] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[ResponsePartitionData] = partitions


class BeginQuorumEpochResponse(Message):
    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("topics", "struct", is_array=True, item=ResponseTopicData),
        FieldSpec("node_endpoints", "struct", is_array=True, first_version=1, tag=0, item=NodeEndpoint),
    )

    def __init__(
        self, *, error_code: int = 0, topics: Sequence[ResponseTopicData] = (), node_endpoints: Sequence[NodeEndpoint] = ()
    ) -> None:
        self.error_code: int = error_code
        self.topics: Sequence[ResponseTopicData] = topics
        self.node_endpoints: Sequence[NodeEndpoint] = node_endpoints
