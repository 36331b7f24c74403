"""ListPartitionReassignmentsRequest and ListPartitionReassignmentsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ListPartitionReassignmentsTopics(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partition_indexes", "int32", is_array=True),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partition_indexes: Sequence[int] = partition_indexes


class ListPartitionReassignmentsRequest(Message):
    __slots__ = (
        "timeout_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("timeout_ms", "int32"),
        FieldSpec("topics", "struct", is_array=True, first_nullable_version=0, item=ListPartitionReassignmentsTopics),
    )

    def __init__(self, *, timeout_ms: int = 60000, topics: Sequence[ListPartitionReassignmentsTopics] | None = ()) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: Sequence[ListPartitionReassignmentsTopics] | None = topics


class OngoingPartitionReassignment(Message):
    __slots__ = (
        "partition_index",
        "replicas",
        "adding_replicas",
        "removing_replicas",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("replicas", "int32", is_array=True),
        FieldSpec("adding_replicas", "int32", is_array=True),
        FieldSpec("removing_replicas", "int32", is_array=True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: Sequence[int] = (),
        adding_replicas: Sequence[int] = (),
        removing_replicas: Sequence[int] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: Sequence[int] = replicas
        self.adding_replicas: Sequence[int] = adding_replicas
        self.removing_replicas: Sequence[int] = removing_replicas


class OngoingTopicReassignment(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=OngoingPartitionReassignment),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OngoingPartitionReassignment] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[OngoingPartitionReassignment] = partitions


class ListPartitionReassignmentsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("topics", "struct", is_array=True, item=OngoingTopicReassignment),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: Sequence[OngoingTopicReassignment] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: Sequence[OngoingTopicReassignment] = topics
