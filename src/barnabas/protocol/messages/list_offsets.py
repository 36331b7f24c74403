"""ListOffsetsRequest and ListOffsetsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ListOffsetsPartition(Message):
    __slots__ = (
        "partition_index",
        "current_leader_epoch",
        "timestamp",
        "max_num_offsets",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 11, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("current_leader_epoch", "int32", first_version=4),
        FieldSpec("timestamp", "int64"),
        FieldSpec("max_num_offsets", "int32", last_version=0),
    )

    def __init__(
        self, *, partition_index: int = 0, current_leader_epoch: int = -1, timestamp: int = 0, max_num_offsets: int = 1
    ) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp
        self.max_num_offsets: int = max_num_offsets


class ListOffsetsTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 11, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ListOffsetsPartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ListOffsetsPartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[ListOffsetsPartition] = partitions


class ListOffsetsRequest(Message):
    __slots__ = (
        "replica_id",
        "isolation_level",
        "topics",
        "timeout_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 11, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("replica_id", "int32"),
        FieldSpec("isolation_level", "int8", first_version=2),
        FieldSpec("topics", "struct", is_array=True, item=ListOffsetsTopic),
        FieldSpec("timeout_ms", "int32", first_version=10),
    )

    def __init__(
        self, *, replica_id: int = 0, isolation_level: int = 0, topics: Sequence[ListOffsetsTopic] = (), timeout_ms: int = 0
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: Sequence[ListOffsetsTopic] = topics
        self.timeout_ms: int = timeout_ms


class ListOffsetsPartitionResponse(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "old_style_offsets",
        "timestamp",
        "offset",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 11, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("old_style_offsets", "int64", is_array=True, last_version=0),
        FieldSpec("timestamp", "int64", first_version=1),
        FieldSpec("offset", "int64", first_version=1),
        FieldSpec("leader_epoch", "int32", first_version=4),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        old_style_offsets: Sequence[int] = (),
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.old_style_offsets: Sequence[int] = old_style_offsets
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch


class ListOffsetsTopicResponse(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 11, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ListOffsetsPartitionResponse),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ListOffsetsPartitionResponse] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[ListOffsetsPartitionResponse] = partitions


class ListOffsetsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 11, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=2),
        FieldSpec("topics", "struct", is_array=True, item=ListOffsetsTopicResponse),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[ListOffsetsTopicResponse] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[ListOffsetsTopicResponse] = topics
