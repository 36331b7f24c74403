"""ReadShareGroupStateSummaryRequest and ReadShareGroupStateSummaryResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class PartitionData(Message):
    __slots__ = (
        "partition",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("leader_epoch", "int32"),
    )

    def __init__(self, *, partition: int = 0, leader_epoch: int = 0) -> None:
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch


class ReadStateSummaryData(Message):
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


class ReadShareGroupStateSummaryRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, item=ReadStateSummaryData),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[ReadStateSummaryData] = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[ReadStateSummaryData] = topics


class PartitionResult(Message):
    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("state_epoch", "int32"),
        FieldSpec("leader_epoch", "int32"),
        FieldSpec("start_offset", "int64"),
        FieldSpec("delivery_complete_count", "int32", first_version=1),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count


class ReadStateSummaryResult(Message):
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


class ReadShareGroupStateSummaryResponse(Message):
    __slots__ = ("results",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("results", "struct", is_array=True, item=ReadStateSummaryResult),)

    def __init__(self, *, results: Sequence[ReadStateSummaryResult] = ()) -> None:
        self.results: Sequence[ReadStateSummaryResult] = results
