"""AlterShareGroupOffsetsRequest and AlterShareGroupOffsetsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class AlterShareGroupOffsetsRequestPartition(Message):
    __slots__ = (
        "partition_index",
        "start_offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("start_offset", "int64"),
    )

    def __init__(self, *, partition_index: int = 0, start_offset: int = 0) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=AlterShareGroupOffsetsRequestPartition),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = partitions


class AlterShareGroupOffsetsRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, item=AlterShareGroupOffsetsRequestTopic),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[AlterShareGroupOffsetsRequestTopic] = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[AlterShareGroupOffsetsRequestTopic] = topics


class AlterShareGroupOffsetsResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=AlterShareGroupOffsetsResponsePartition),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: UUID = ZERO_UUID,
        partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = partitions


class AlterShareGroupOffsetsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("responses", "struct", is_array=True, item=AlterShareGroupOffsetsResponseTopic),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: Sequence[AlterShareGroupOffsetsResponseTopic] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: Sequence[AlterShareGroupOffsetsResponseTopic] = responses
