"""OffsetForLeaderEpochRequest and OffsetForLeaderEpochResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class OffsetForLeaderPartition(Message):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("current_leader_epoch", "int32", first_version=2),
        FieldSpec("leader_epoch", "int32"),
    )

    def __init__(self, *, partition: int = 0, current_leader_epoch: int = -1, leader_epoch: int = 0) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch


class OffsetForLeaderTopic(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=OffsetForLeaderPartition),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[OffsetForLeaderPartition] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[OffsetForLeaderPartition] = partitions


class OffsetForLeaderEpochRequest(Message):
    __slots__ = (
        "replica_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("replica_id", "int32", first_version=3),
        FieldSpec("topics", "struct", is_array=True, item=OffsetForLeaderTopic),
    )

    def __init__(self, *, replica_id: int = -2, topics: Sequence[OffsetForLeaderTopic] = ()) -> None:
        self.replica_id: int = replica_id
        self.topics: Sequence[OffsetForLeaderTopic] = topics


class EpochEndOffset(Message):
    __slots__ = (
        "error_code",
        "partition",
        "leader_epoch",
        "end_offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("partition", "int32"),
        FieldSpec("leader_epoch", "int32", first_version=1),
        FieldSpec("end_offset", "int64"),
    )

    def __init__(self, *, error_code: int = 0, partition: int = 0, leader_epoch: int = -1, end_offset: int = -1) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset


class OffsetForLeaderTopicResult(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=EpochEndOffset),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[EpochEndOffset] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[EpochEndOffset] = partitions


class OffsetForLeaderEpochResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=2),
        FieldSpec("topics", "struct", is_array=True, item=OffsetForLeaderTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[OffsetForLeaderTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[OffsetForLeaderTopicResult] = topics
