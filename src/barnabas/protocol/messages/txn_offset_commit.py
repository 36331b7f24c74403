"""TxnOffsetCommitRequest and TxnOffsetCommitResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("committed_offset", "int64"),
        FieldSpec("committed_leader_epoch", "int32", first_version=2),
        FieldSpec("committed_metadata", "string", first_nullable_version=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=TxnOffsetCommitRequestPartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[TxnOffsetCommitRequestPartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[TxnOffsetCommitRequestPartition] = partitions


class TxnOffsetCommitRequest(Message):
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string"),
        FieldSpec("group_id", "string"),
        FieldSpec("producer_id", "int64"),
        FieldSpec("producer_epoch", "int16"),
        FieldSpec("generation_id", "int32", first_version=3),
        FieldSpec("member_id", "string", first_version=3),
        FieldSpec("group_instance_id", "string", first_version=3, first_nullable_version=3),
        FieldSpec("topics", "struct", is_array=True, item=TxnOffsetCommitRequestTopic),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: Sequence[TxnOffsetCommitRequestTopic] = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.group_id: str = group_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: Sequence[TxnOffsetCommitRequestTopic] = topics


class TxnOffsetCommitResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=TxnOffsetCommitResponsePartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[TxnOffsetCommitResponsePartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[TxnOffsetCommitResponsePartition] = partitions


class TxnOffsetCommitResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("topics", "struct", is_array=True, item=TxnOffsetCommitResponseTopic),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[TxnOffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[TxnOffsetCommitResponseTopic] = topics
