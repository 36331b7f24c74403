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
        FieldSpec("partition_index", "int32"),
        FieldSpec("committed_offset", "int64"),
        FieldSpec("commit_timestamp", "int64", first_version=1, last_version=1),
        FieldSpec("committed_leader_epoch", "int32", first_version=6),
        FieldSpec("committed_metadata", "string", first_nullable_version=0),
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
        FieldSpec("name", "string", last_version=9),
        FieldSpec("topic_id", "uuid", first_version=10),
        FieldSpec("partitions", "struct", is_array=True, item=OffsetCommitRequestPartition),
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
        FieldSpec("group_id", "string"),
        FieldSpec("generation_id_or_member_epoch", "int32", first_version=1),
        FieldSpec("member_id", "string", first_version=1),
        FieldSpec("retention_time_ms", "int64", first_version=2, last_version=4),
        FieldSpec("group_instance_id", "string", first_version=7, first_nullable_version=7),
        FieldSpec("topics", "struct", is_array=True, item=OffsetCommitRequestTopic),
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
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
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
        FieldSpec("name", "string", last_version=9),
        FieldSpec("topic_id", "uuid", first_version=10),
        FieldSpec("partitions", "struct", is_array=True, item=OffsetCommitResponsePartition),
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
        FieldSpec("throttle_time_ms", "int32", first_version=3),
        FieldSpec("topics", "struct", is_array=True, item=OffsetCommitResponseTopic),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[OffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[OffsetCommitResponseTopic] = topics
