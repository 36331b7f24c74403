"""ProduceRequest and ProduceResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, Buffer, FieldSpec, Message


class PartitionProduceData(Message):
    __slots__ = (
        "index",
        "records",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("index", "int32"),
        FieldSpec("records", "records", first_nullable_version=0),
    )

    def __init__(self, *, index: int = 0, records: Buffer | None = None) -> None:
        self.index: int = index
        self.records: Buffer | None = records


class TopicProduceData(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partition_data",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", last_version=12),
        FieldSpec("topic_id", "uuid", first_version=13),
        FieldSpec("partition_data", "struct", is_array=True, item=PartitionProduceData),
    )

    def __init__(
        self, *, name: str = "", topic_id: UUID = ZERO_UUID, partition_data: Sequence[PartitionProduceData] = ()
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.partition_data: Sequence[PartitionProduceData] = partition_data


class ProduceRequest(Message):
    __slots__ = (
        "transactional_id",
        "acks",
        "timeout_ms",
        "topic_data",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string", first_version=3, first_nullable_version=3),
        FieldSpec("acks", "int16"),
        FieldSpec("timeout_ms", "int32"),
        FieldSpec("topic_data", "struct", is_array=True, item=TopicProduceData),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: Sequence[TopicProduceData] = (),
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: Sequence[TopicProduceData] = topic_data


class BatchIndexAndErrorMessage(Message):
    __slots__ = (
        "batch_index",
        "batch_index_error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 8, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("batch_index", "int32", first_version=8),
        FieldSpec("batch_index_error_message", "string", first_version=8, first_nullable_version=8),
    )

    def __init__(self, *, batch_index: int = 0, batch_index_error_message: str | None = None) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message


class LeaderIdAndEpoch(Message):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 10, 13, 10
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("leader_id", "int32", first_version=10),
        FieldSpec("leader_epoch", "int32", first_version=10),
    )

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class NodeEndpoint(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 10, 13, 10
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32", first_version=10),
        FieldSpec("host", "string", first_version=10),
        FieldSpec("port", "int32", first_version=10),
        FieldSpec("rack", "string", first_version=10, first_nullable_version=10),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class PartitionProduceResponse(Message):
    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("base_offset", "int64"),
        FieldSpec("log_append_time_ms", "int64", first_version=2),
        FieldSpec("log_start_offset", "int64", first_version=5),
        FieldSpec("record_errors", "struct", is_array=True, first_version=8, item=BatchIndexAndErrorMessage),
        FieldSpec("error_message", "string", first_version=8, first_nullable_version=8),
        FieldSpec("current_leader", "struct", first_version=10, tag=0, item=LeaderIdAndEpoch),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: Sequence[BatchIndexAndErrorMessage] = (),
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: Sequence[BatchIndexAndErrorMessage] = record_errors
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader


class TopicProduceResponse(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partition_responses",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", last_version=12),
        FieldSpec("topic_id", "uuid", first_version=13),
        FieldSpec("partition_responses", "struct", is_array=True, item=PartitionProduceResponse),
    )

    def __init__(
        self, *, name: str = "", topic_id: UUID = ZERO_UUID, partition_responses: Sequence[PartitionProduceResponse] = ()
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.partition_responses: Sequence[PartitionProduceResponse] = partition_responses


class ProduceResponse(Message):
    __slots__ = (
        "responses",
        "throttle_time_ms",
        "node_endpoints",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 13, 9
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("responses", "struct", is_array=True, item=TopicProduceResponse),
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("node_endpoints", "struct", is_array=True, first_version=10, tag=0, item=NodeEndpoint),
    )

    def __init__(
        self,
        *,
        responses: Sequence[TopicProduceResponse] = (),
        throttle_time_ms: int = 0,
        node_endpoints: Sequence[NodeEndpoint] = (),
    ) -> None:
        self.responses: Sequence[TopicProduceResponse] = responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: Sequence[NodeEndpoint] = node_endpoints
