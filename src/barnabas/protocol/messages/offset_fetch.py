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
        ("name", "string", False, 0, 7, 32767, 32767, None, None),
        ("partition_indexes", "int32", True, 0, 7, 32767, 32767, None, None),
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
        ("name", "string", False, 8, 9, 32767, 32767, None, None),
        ("topic_id", "uuid", False, 10, 32767, 32767, 32767, None, None),
        ("partition_indexes", "int32", True, 8, 32767, 32767, 32767, None, None),
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
        ("group_id", "string", False, 8, 32767, 32767, 32767, None, None),
        ("member_id", "string", False, 9, 32767, 9, 32767, None, None),
        ("member_epoch", "int32", False, 9, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 8, 32767, 8, 32767, None, OffsetFetchRequestTopics),
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
        ("group_id", "string", False, 0, 7, 32767, 32767, None, None),
        ("groups", "struct", True, 8, 32767, 32767, 32767, None, OffsetFetchRequestGroup),
        ("topics", "struct", True, 0, 7, 2, 7, None, OffsetFetchRequestTopic),
        ("require_stable", "bool", False, 7, 32767, 32767, 32767, None, None),
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
        ("partition_index", "int32", False, 0, 7, 32767, 32767, None, None),
        ("committed_offset", "int64", False, 0, 7, 32767, 32767, None, None),
        ("committed_leader_epoch", "int32", False, 5, 7, 32767, 32767, None, None),
        ("metadata", "string", False, 0, 7, 0, 7, None, None),
        ("error_code", "int16", False, 0, 7, 32767, 32767, None, None),
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
        ("partition_index", "int32", False, 8, 32767, 32767, 32767, None, None),
        ("committed_offset", "int64", False, 8, 32767, 32767, 32767, None, None),
        ("committed_leader_epoch", "int32", False, 8, 32767, 32767, 32767, None, None),
        ("metadata", "string", False, 8, 32767, 8, 32767, None, None),
        ("error_code", "int16", False, 8, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 0, 7, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 7, 32767, 32767, None, OffsetFetchResponsePartition),
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
        ("name", "string", False, 8, 9, 32767, 32767, None, None),
        ("topic_id", "uuid", False, 10, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 8, 32767, 32767, 32767, None, OffsetFetchResponsePartitions),
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
        ("group_id", "string", False, 8, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 8, 32767, 32767, 32767, None, OffsetFetchResponseTopics),
        ("error_code", "int16", False, 8, 32767, 32767, 32767, None, None),
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
        ("throttle_time_ms", "int32", False, 3, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 7, 32767, 32767, None, OffsetFetchResponseTopic),
        ("groups", "struct", True, 8, 32767, 32767, 32767, None, OffsetFetchResponseGroup),
        ("error_code", "int16", False, 2, 7, 32767, 32767, None, None),
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
