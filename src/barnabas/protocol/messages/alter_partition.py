"""AlterPartitionRequest and AlterPartitionResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class BrokerState(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 3, 3, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("broker_id", "int32", first_version=3),
        FieldSpec("broker_epoch", "int64", first_version=3),
    )

    def __init__(self, *, broker_id: int = 0, broker_epoch: int = -1) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch


class RequestPartitionData(Message):
    __slots__ = (
        "partition_index",
        "leader_epoch",
        "new_isr",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32", first_version=2),
        FieldSpec("leader_epoch", "int32", first_version=2),
        FieldSpec("new_isr", "int32", is_array=True, first_version=2, last_version=2),
        FieldSpec("new_isr_with_epochs", "struct", is_array=True, first_version=3, item=BrokerState),
        FieldSpec("leader_recovery_state", "int8", first_version=2),
        FieldSpec("partition_epoch", "int32", first_version=2),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: Sequence[int] = (),
        new_isr_with_epochs: Sequence[BrokerState] = (),
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_epoch: int = leader_epoch
        self.new_isr: Sequence[int] = new_isr
        self.new_isr_with_epochs: Sequence[BrokerState] = new_isr_with_epochs
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch


class RequestTopicData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=2),
        FieldSpec("partitions", "struct", is_array=True, first_version=2, item=RequestPartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[RequestPartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[RequestPartitionData] = partitions


class AlterPartitionRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("broker_id", "int32", first_version=2),
        FieldSpec("broker_epoch", "int64", first_version=2),
        FieldSpec("topics", "struct", is_array=True, first_version=2, item=RequestTopicData),
    )

    def __init__(self, *, broker_id: int = 0, broker_epoch: int = -1, topics: Sequence[RequestTopicData] = ()) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.topics: Sequence[RequestTopicData] = topics


class ResponsePartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "isr",
        "leader_recovery_state",
        "partition_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32", first_version=2),
        FieldSpec("error_code", "int16", first_version=2),
        FieldSpec("leader_id", "int32", first_version=2),
        FieldSpec("leader_epoch", "int32", first_version=2),
        FieldSpec("isr", "int32", is_array=True, first_version=2),
        FieldSpec("leader_recovery_state", "int8", first_version=2),
        FieldSpec("partition_epoch", "int32", first_version=2),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: Sequence[int] = (),
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.isr: Sequence[int] = isr
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch


class ResponseTopicData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=2),
        FieldSpec("partitions", "struct", is_array=True, first_version=2, item=ResponsePartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[ResponsePartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[ResponsePartitionData] = partitions


class AlterPartitionResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 2, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=2),
        FieldSpec("error_code", "int16", first_version=2),
        FieldSpec("topics", "struct", is_array=True, first_version=2, item=ResponseTopicData),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, topics: Sequence[ResponseTopicData] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: Sequence[ResponseTopicData] = topics
