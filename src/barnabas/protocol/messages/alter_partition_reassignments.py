"""AlterPartitionReassignmentsRequest and AlterPartitionReassignmentsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ReassignablePartition(Message):
    __slots__ = (
        "partition_index",
        "replicas",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("replicas", "int32", is_array=True, first_nullable_version=0),
    )

    def __init__(self, *, partition_index: int = 0, replicas: Sequence[int] | None = None) -> None:
        self.partition_index: int = partition_index
        self.replicas: Sequence[int] | None = replicas


class ReassignableTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ReassignablePartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ReassignablePartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[ReassignablePartition] = partitions


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = (
        "timeout_ms",
        "allow_replication_factor_change",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("timeout_ms", "int32"),
        FieldSpec("allow_replication_factor_change", "bool", first_version=1),
        FieldSpec("topics", "struct", is_array=True, item=ReassignableTopic),
    )

    def __init__(
        self, *, timeout_ms: int = 60000, allow_replication_factor_change: bool = True, topics: Sequence[ReassignableTopic] = ()
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: Sequence[ReassignableTopic] = topics


class ReassignablePartitionResponse(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class ReassignableTopicResponse(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ReassignablePartitionResponse),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ReassignablePartitionResponse] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[ReassignablePartitionResponse] = partitions


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("allow_replication_factor_change", "bool", first_version=1),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("responses", "struct", is_array=True, item=ReassignableTopicResponse),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: Sequence[ReassignableTopicResponse] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: Sequence[ReassignableTopicResponse] = responses
