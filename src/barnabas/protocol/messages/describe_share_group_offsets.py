"""DescribeShareGroupOffsetsRequest and DescribeShareGroupOffsetsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[int] = partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, first_nullable_version=0, item=DescribeShareGroupOffsetsRequestTopic),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = topics


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("groups", "struct", is_array=True, item=DescribeShareGroupOffsetsRequestGroup),
    )

    def __init__(self, *, groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = ()) -> None:
        self.groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = groups


class DescribeShareGroupOffsetsResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("start_offset", "int64"),
        FieldSpec("leader_epoch", "int32"),
        FieldSpec("lag", "int64", first_version=1),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.leader_epoch: int = leader_epoch
        self.lag: int = lag
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "struct", is_array=True, item=DescribeShareGroupOffsetsResponsePartition),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: UUID = ZERO_UUID,
        partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    __slots__ = (
        "group_id",
        "topics",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("topics", "struct", is_array=True, item=DescribeShareGroupOffsetsResponseTopic),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = (),
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = topics
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DescribeShareGroupOffsetsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("groups", "struct", is_array=True, item=DescribeShareGroupOffsetsResponseGroup),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = groups
