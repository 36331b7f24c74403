"""AssignReplicasToDirsRequest and AssignReplicasToDirsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class RequestPartitionData(Message):
    __slots__ = ("partition_index",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("partition_index", "int32"),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index: int = partition_index


class RequestTopicData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=RequestPartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[RequestPartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[RequestPartitionData] = partitions


class RequestDirectoryData(Message):
    __slots__ = (
        "id_",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("id_", "uuid"),
        FieldSpec("topics", "struct", is_array=True, item=RequestTopicData),
    )

    def __init__(self, *, id_: UUID = ZERO_UUID, topics: Sequence[RequestTopicData] = ()) -> None:
        self.id_: UUID = id_
        self.topics: Sequence[RequestTopicData] = topics


class AssignReplicasToDirsRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "directories",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("broker_id", "int32"),
        FieldSpec("broker_epoch", "int64"),
        FieldSpec("directories", "struct", is_array=True, item=RequestDirectoryData),
    )

    def __init__(self, *, broker_id: int = 0, broker_epoch: int = -1, directories: Sequence[RequestDirectoryData] = ()) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.directories: Sequence[RequestDirectoryData] = directories


class ResponsePartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class ResponseTopicData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=ResponsePartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[ResponsePartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[ResponsePartitionData] = partitions


class ResponseDirectoryData(Message):
    __slots__ = (
        "id_",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("id_", "uuid"),
        FieldSpec("topics", "struct", is_array=True, item=ResponseTopicData),
    )

    def __init__(self, *, id_: UUID = ZERO_UUID, topics: Sequence[ResponseTopicData] = ()) -> None:
        self.id_: UUID = id_
        self.topics: Sequence[ResponseTopicData] = topics


class AssignReplicasToDirsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "directories",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("directories", "struct", is_array=True, item=ResponseDirectoryData),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, directories: Sequence[ResponseDirectoryData] = ()
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.directories: Sequence[ResponseDirectoryData] = directories
