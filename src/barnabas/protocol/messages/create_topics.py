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
        ("partition_index", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("broker_ids", "int32", True, 0, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("value", "string", False, 0, 32767, 0, 32767, None, None),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("num_partitions", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("replication_factor", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("assignments", "struct", True, 0, 32767, 32767, 32767, None, CreatableReplicaAssignment),
        ("configs", "struct", True, 0, 32767, 32767, 32767, None, CreatableTopicConfig),
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
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, CreatableTopic),
        ("timeout_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("validate_only", "bool", False, 1, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 5, 32767, 32767, 32767, None, None),
        ("value", "string", False, 5, 32767, 5, 32767, None, None),
        ("read_only", "bool", False, 5, 32767, 32767, 32767, None, None),
        ("config_source", "int8", False, 5, 32767, 32767, 32767, None, None),
        ("is_sensitive", "bool", False, 5, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("topic_id", "uuid", False, 7, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 1, 32767, 1, 32767, None, None),
        ("topic_config_error_code", "int16", False, 5, 32767, 32767, 32767, 0, None),
        ("num_partitions", "int32", False, 5, 32767, 32767, 32767, None, None),
        ("replication_factor", "int16", False, 5, 32767, 32767, 32767, None, None),
        ("configs", "struct", True, 5, 32767, 5, 32767, None, CreatableTopicConfigs),
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
        ("throttle_time_ms", "int32", False, 2, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, CreatableTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[CreatableTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[CreatableTopicResult] = topics
