"""OffsetCommitRequest and OffsetCommitResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class OffsetCommitRequestPartition(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "commit_timestamp",
        "committed_leader_epoch",
        "committed_metadata",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("partition_index", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("committed_offset", "int64", False, 0, 32767, 32767, 32767, None, None),
        ("commit_timestamp", "int64", False, 1, 1, 32767, 32767, None, None),
        ("committed_leader_epoch", "int32", False, 6, 32767, 32767, 32767, None, None),
        ("committed_metadata", "string", False, 0, 32767, 0, 32767, None, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        commit_timestamp: int = -1,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.commit_timestamp: int = commit_timestamp
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


class OffsetCommitRequestTopic(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("name", "string", False, 0, 9, 32767, 32767, None, None),
        ("topic_id", "uuid", False, 10, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, OffsetCommitRequestPartition),
    )

    def __init__(
        self, *, name: str = "", topic_id: UUID = ZERO_UUID, partitions: Sequence[OffsetCommitRequestPartition] = ()
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[OffsetCommitRequestPartition] = partitions


class OffsetCommitRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "retention_time_ms",
        "group_instance_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("group_id", "string", False, 0, 32767, 32767, 32767, None, None),
        ("generation_id_or_member_epoch", "int32", False, 1, 32767, 32767, 32767, None, None),
        ("member_id", "string", False, 1, 32767, 32767, 32767, None, None),
        ("retention_time_ms", "int64", False, 2, 4, 32767, 32767, None, None),
        ("group_instance_id", "string", False, 7, 32767, 7, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, OffsetCommitRequestTopic),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time_ms: int = -1,
        group_instance_id: str | None = None,
        topics: Sequence[OffsetCommitRequestTopic] = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.retention_time_ms: int = retention_time_ms
        self.group_instance_id: str | None = group_instance_id
        self.topics: Sequence[OffsetCommitRequestTopic] = topics


class OffsetCommitResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("partition_index", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class OffsetCommitResponseTopic(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("name", "string", False, 0, 9, 32767, 32767, None, None),
        ("topic_id", "uuid", False, 10, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, OffsetCommitResponsePartition),
    )

    def __init__(
        self, *, name: str = "", topic_id: UUID = ZERO_UUID, partitions: Sequence[OffsetCommitResponsePartition] = ()
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[OffsetCommitResponsePartition] = partitions


class OffsetCommitResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("throttle_time_ms", "int32", False, 3, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, OffsetCommitResponseTopic),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[OffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[OffsetCommitResponseTopic] = topics
