"""OffsetDeleteRequest and OffsetDeleteResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("partition_index", "int32"),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index: int = partition_index


class OffsetDeleteRequestTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=OffsetDeleteRequestPartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetDeleteRequestPartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[OffsetDeleteRequestPartition] = partitions


class OffsetDeleteRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, item=OffsetDeleteRequestTopic),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[OffsetDeleteRequestTopic] = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[OffsetDeleteRequestTopic] = topics


class OffsetDeleteResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class OffsetDeleteResponseTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=OffsetDeleteResponsePartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetDeleteResponsePartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[OffsetDeleteResponsePartition] = partitions


class OffsetDeleteResponse(Message):
    __slots__ = (
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("topics", "struct", is_array=True, item=OffsetDeleteResponseTopic),
    )

    def __init__(
        self, *, error_code: int = 0, throttle_time_ms: int = 0, topics: Sequence[OffsetDeleteResponseTopic] = ()
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[OffsetDeleteResponseTopic] = topics
