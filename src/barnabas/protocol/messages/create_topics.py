"""CreateTopicsRequest and CreateTopicsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class CreatableReplicaAssignment(Message):
    __slots__ = (
        "partition_index",
        "broker_ids",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("broker_ids", "int32", is_array=True),
    )

    def __init__(self, *, partition_index: int = 0, broker_ids: Sequence[int] = ()) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: Sequence[int] = broker_ids


class CreatableTopicConfig(Message):
    __slots__ = (
        "name",
        "value",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("value", "string", first_nullable_version=0),
    )

    def __init__(self, *, name: str = "", value: str | None = "") -> None:
        self.name: str = name
        self.value: str | None = value


class CreatableTopic(Message):
    __slots__ = (
        "name",
        "num_partitions",
        "replication_factor",
        "assignments",
        "configs",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("num_partitions", "int32"),
        FieldSpec("replication_factor", "int16"),
        FieldSpec("assignments", "struct", is_array=True, item=CreatableReplicaAssignment),
        FieldSpec("configs", "struct", is_array=True, item=CreatableTopicConfig),
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: Sequence[CreatableReplicaAssignment] = (),
        configs: Sequence[CreatableTopicConfig] = (),
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: Sequence[CreatableReplicaAssignment] = assignments
        self.configs: Sequence[CreatableTopicConfig] = configs


class CreateTopicsRequest(Message):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "struct", is_array=True, item=CreatableTopic),
        FieldSpec("timeout_ms", "int32"),
        FieldSpec("validate_only", "bool", first_version=1),
    )

    def __init__(self, *, topics: Sequence[CreatableTopic] = (), timeout_ms: int = 60000, validate_only: bool = False) -> None:
        self.topics: Sequence[CreatableTopic] = topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


class CreatableTopicConfigs(Message):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 5, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=5),
        FieldSpec("value", "string", first_version=5, first_nullable_version=5),
        FieldSpec("read_only", "bool", first_version=5),
        FieldSpec("config_source", "int8", first_version=5),
        FieldSpec("is_sensitive", "bool", first_version=5),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive


class CreatableTopicResult(Message):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("topic_id", "uuid", first_version=7),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_version=1, first_nullable_version=1),
        FieldSpec("topic_config_error_code", "int16", first_version=5, tag=0),
        FieldSpec("num_partitions", "int32", first_version=5),
        FieldSpec("replication_factor", "int16", first_version=5),
        FieldSpec("configs", "struct", is_array=True, first_version=5, first_nullable_version=5, item=CreatableTopicConfigs),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: Sequence[CreatableTopicConfigs] | None = (),
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topic_config_error_code: int = topic_config_error_code
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: Sequence[CreatableTopicConfigs] | None = configs


class CreateTopicsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=2),
        FieldSpec("topics", "struct", is_array=True, item=CreatableTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[CreatableTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[CreatableTopicResult] = topics
