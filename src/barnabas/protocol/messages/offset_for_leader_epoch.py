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
        ("partition", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("current_leader_epoch", "int32", False, 2, 32767, 32767, 32767, None, None),
        ("leader_epoch", "int32", False, 0, 32767, 32767, 32767, None, None),
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
        ("topic", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, OffsetForLeaderPartition),
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
        ("replica_id", "int32", False, 3, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, OffsetForLeaderTopic),
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
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("partition", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("leader_epoch", "int32", False, 1, 32767, 32767, 32767, None, None),
        ("end_offset", "int64", False, 0, 32767, 32767, 32767, None, None),
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
        ("topic", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, EpochEndOffset),
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
        ("throttle_time_ms", "int32", False, 2, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, OffsetForLeaderTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[OffsetForLeaderTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[OffsetForLeaderTopicResult] = topics
