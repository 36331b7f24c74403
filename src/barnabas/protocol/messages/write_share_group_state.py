"""WriteShareGroupStateRequest and WriteShareGroupStateResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class StateBatch(Message):
    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_state",
        "delivery_count",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("first_offset", "int64"),
        FieldSpec("last_offset", "int64"),
        FieldSpec("delivery_state", "int8"),
        FieldSpec("delivery_count", "int16"),
    )

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count


class PartitionData(Message):
    __slots__ = (
        "partition",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("state_epoch", "int32"),
        FieldSpec("leader_epoch", "int32"),
        FieldSpec("start_offset", "int64"),
        FieldSpec("delivery_complete_count", "int32", first_version=1),
        FieldSpec("state_batches", "struct", is_array=True, item=StateBatch),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: Sequence[StateBatch] = (),
    ) -> None:
        self.partition: int = partition
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.state_batches: Sequence[StateBatch] = state_batches


class WriteStateData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=PartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[PartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[PartitionData] = partitions


class WriteShareGroupStateRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, item=WriteStateData),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[WriteStateData] = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[WriteStateData] = topics


class PartitionResult(Message):
    __slots__ = (
        "partition",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class WriteStateResult(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=PartitionResult),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[PartitionResult] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[PartitionResult] = partitions


class WriteShareGroupStateResponse(Message):
    __slots__ = ("results",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("results", "struct", is_array=True, item=WriteStateResult),)

    def __init__(self, *, results: Sequence[WriteStateResult] = ()) -> None:
        self.results: Sequence[WriteStateResult] = results
