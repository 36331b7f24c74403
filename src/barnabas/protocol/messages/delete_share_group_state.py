"""DeleteShareGroupStateRequest and DeleteShareGroupStateResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class PartitionData(Message):
    __slots__ = ("partition",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("partition", "int32"),)

    def __init__(self, *, partition: int = 0) -> None:
        self.partition: int = partition


class DeleteStateData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=PartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[PartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[PartitionData] = partitions


class DeleteShareGroupStateRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, item=DeleteStateData),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[DeleteStateData] = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[DeleteStateData] = topics


class PartitionResult(Message):
    __slots__ = (
        "partition",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteStateResult(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=PartitionResult),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[PartitionResult] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[PartitionResult] = partitions


class DeleteShareGroupStateResponse(Message):
    __slots__ = ("results",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("results", "struct", is_array=True, item=DeleteStateResult),)

    def __init__(self, *, results: Sequence[DeleteStateResult] = ()) -> None:
        self.results: Sequence[DeleteStateResult] = results
