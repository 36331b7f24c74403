"""DescribeProducersRequest and DescribeProducersResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class TopicRequest(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partition_indexes", "int32", is_array=True),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partition_indexes: Sequence[int] = partition_indexes


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("topics", "struct", is_array=True, item=TopicRequest),)

    def __init__(self, *, topics: Sequence[TopicRequest] = ()) -> None:
        self.topics: Sequence[TopicRequest] = topics


class ProducerState(Message):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("producer_id", "int64"),
        FieldSpec("producer_epoch", "int32"),
        FieldSpec("last_sequence", "int32"),
        FieldSpec("last_timestamp", "int64"),
        FieldSpec("coordinator_epoch", "int32"),
        FieldSpec("current_txn_start_offset", "int64"),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset


class PartitionResponse(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "active_producers",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("active_producers", "struct", is_array=True, item=ProducerState),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: Sequence[ProducerState] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: Sequence[ProducerState] = active_producers


class TopicResponse(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=PartitionResponse),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[PartitionResponse] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[PartitionResponse] = partitions


class DescribeProducersResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("topics", "struct", is_array=True, item=TopicResponse),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[TopicResponse] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[TopicResponse] = topics
