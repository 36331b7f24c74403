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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partition_indexes", "int32", True, 0, 32767, 32767, 32767, None, None),
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
        ("timeout_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 0, 32767, None, ListPartitionReassignmentsTopics),
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
        ("partition_index", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("replicas", "int32", True, 0, 32767, 32767, 32767, None, None),
        ("adding_replicas", "int32", True, 0, 32767, 32767, 32767, None, None),
        ("removing_replicas", "int32", True, 0, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, OngoingPartitionReassignment),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, OngoingTopicReassignment),
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
