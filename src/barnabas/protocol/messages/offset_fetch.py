"""OffsetFetchRequest and OffsetFetchResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class OffsetFetchRequestTopic(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", last_version=7),
        FieldSpec("partition_indexes", "int32", is_array=True, last_version=7),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partition_indexes: Sequence[int] = partition_indexes


class OffsetFetchRequestTopics(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partition_indexes",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 8, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=8, last_version=9),
        FieldSpec("topic_id", "uuid", first_version=10),
        FieldSpec("partition_indexes", "int32", is_array=True, first_version=8),
    )

    def __init__(self, *, name: str = "", topic_id: UUID = ZERO_UUID, partition_indexes: Sequence[int] = ()) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.partition_indexes: Sequence[int] = partition_indexes


class OffsetFetchRequestGroup(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 8, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string", first_version=8),
        FieldSpec("member_id", "string", first_version=9, first_nullable_version=9),
        FieldSpec("member_epoch", "int32", first_version=9),
        FieldSpec("topics", "struct", is_array=True, first_version=8, first_nullable_version=8, item=OffsetFetchRequestTopics),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: Sequence[OffsetFetchRequestTopics] | None = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: Sequence[OffsetFetchRequestTopics] | None = topics


class OffsetFetchRequest(Message):
    __slots__ = (
        "group_id",
        "groups",
        "topics",
        "require_stable",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string", last_version=7),
        FieldSpec("groups", "struct", is_array=True, first_version=8, item=OffsetFetchRequestGroup),
        FieldSpec(
            "topics",
            "struct",
            is_array=True,
            last_version=7,
            first_nullable_version=2,
            last_nullable_version=7,
            item=OffsetFetchRequestTopic,
        ),
        FieldSpec("require_stable", "bool", first_version=7),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        groups: Sequence[OffsetFetchRequestGroup] = (),
        topics: Sequence[OffsetFetchRequestTopic] | None = (),
        require_stable: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.groups: Sequence[OffsetFetchRequestGroup] = groups
        self.topics: Sequence[OffsetFetchRequestTopic] | None = topics
        self.require_stable: bool = require_stable


class OffsetFetchResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32", last_version=7),
        FieldSpec("committed_offset", "int64", last_version=7),
        FieldSpec("committed_leader_epoch", "int32", first_version=5, last_version=7),
        FieldSpec("metadata", "string", last_version=7, first_nullable_version=0, last_nullable_version=7),
        FieldSpec("error_code", "int16", last_version=7),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


class OffsetFetchResponsePartitions(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 8, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32", first_version=8),
        FieldSpec("committed_offset", "int64", first_version=8),
        FieldSpec("committed_leader_epoch", "int32", first_version=8),
        FieldSpec("metadata", "string", first_version=8, first_nullable_version=8),
        FieldSpec("error_code", "int16", first_version=8),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


class OffsetFetchResponseTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 7, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", last_version=7),
        FieldSpec("partitions", "struct", is_array=True, last_version=7, item=OffsetFetchResponsePartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetFetchResponsePartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[OffsetFetchResponsePartition] = partitions


class OffsetFetchResponseTopics(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 8, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=8, last_version=9),
        FieldSpec("topic_id", "uuid", first_version=10),
        FieldSpec("partitions", "struct", is_array=True, first_version=8, item=OffsetFetchResponsePartitions),
    )

    def __init__(
        self, *, name: str = "", topic_id: UUID = ZERO_UUID, partitions: Sequence[OffsetFetchResponsePartitions] = ()
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[OffsetFetchResponsePartitions] = partitions


class OffsetFetchResponseGroup(Message):
    __slots__ = (
        "group_id",
        "topics",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 8, 10, 8
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string", first_version=8),
        FieldSpec("topics", "struct", is_array=True, first_version=8, item=OffsetFetchResponseTopics),
        FieldSpec("error_code", "int16", first_version=8),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[OffsetFetchResponseTopics] = (), error_code: int = 0) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[OffsetFetchResponseTopics] = topics
        self.error_code: int = error_code


class OffsetFetchResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "groups",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 10, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=3),
        FieldSpec("topics", "struct", is_array=True, last_version=7, item=OffsetFetchResponseTopic),
        FieldSpec("groups", "struct", is_array=True, first_version=8, item=OffsetFetchResponseGroup),
        FieldSpec("error_code", "int16", first_version=2, last_version=7),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[OffsetFetchResponseTopic] = (),
        groups: Sequence[OffsetFetchResponseGroup] = (),
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[OffsetFetchResponseTopic] = topics
        self.groups: Sequence[OffsetFetchResponseGroup] = groups
        self.error_code: int = error_code
