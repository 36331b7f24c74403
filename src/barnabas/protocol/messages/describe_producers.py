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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partition_indexes", "int32", True, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partition_indexes: Sequence[int] = partition_indexes


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (("topics", "struct", True, 0, 32767, 32767, 32767, None, TopicRequest),)

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
        ("producer_id", "int64", False, 0, 32767, 32767, 32767, None, None),
        ("producer_epoch", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("last_sequence", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("last_timestamp", "int64", False, 0, 32767, 32767, 32767, None, None),
        ("coordinator_epoch", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("current_txn_start_offset", "int64", False, 0, 32767, 32767, 32767, None, None),
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
        ("partition_index", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
        ("active_producers", "struct", True, 0, 32767, 32767, 32767, None, ProducerState),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partitions", "struct", True, 0, 32767, 32767, 32767, None, PartitionResponse),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, TopicResponse),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[TopicResponse] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[TopicResponse] = topics
