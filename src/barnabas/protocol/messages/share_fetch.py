"""ShareFetchRequest and ShareFetchResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, Buffer, FieldSpec, Message


class ForgottenTopic(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=1),
        FieldSpec("partitions", "int32", is_array=True, first_version=1),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[int] = partitions


class AcknowledgementBatch(Message):
    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("first_offset", "int64", first_version=1),
        FieldSpec("last_offset", "int64", first_version=1),
        FieldSpec("acknowledge_types", "int8", is_array=True, first_version=1),
    )

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, acknowledge_types: Sequence[int] = ()) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: Sequence[int] = acknowledge_types


class FetchPartition(Message):
    __slots__ = (
        "partition_index",
        "acknowledgement_batches",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32", first_version=1),
        FieldSpec("acknowledgement_batches", "struct", is_array=True, first_version=1, item=AcknowledgementBatch),
    )

    def __init__(self, *, partition_index: int = 0, acknowledgement_batches: Sequence[AcknowledgementBatch] = ()) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: Sequence[AcknowledgementBatch] = acknowledgement_batches


class FetchTopic(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=1),
        FieldSpec("partitions", "struct", is_array=True, first_version=1, item=FetchPartition),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[FetchPartition] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[FetchPartition] = partitions


class ShareFetchRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string", first_version=1, first_nullable_version=1),
        FieldSpec("member_id", "string", first_version=1, first_nullable_version=1),
        FieldSpec("share_session_epoch", "int32", first_version=1),
        FieldSpec("max_wait_ms", "int32", first_version=1),
        FieldSpec("min_bytes", "int32", first_version=1),
        FieldSpec("max_bytes", "int32", first_version=1),
        FieldSpec("max_records", "int32", first_version=1),
        FieldSpec("batch_size", "int32", first_version=1),
        FieldSpec("share_acquire_mode", "int8", first_version=2),
        FieldSpec("is_renew_ack", "bool", first_version=2),
        FieldSpec("topics", "struct", is_array=True, first_version=1, item=FetchTopic),
        FieldSpec("forgotten_topics_data", "struct", is_array=True, first_version=1, item=ForgottenTopic),
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: Sequence[FetchTopic] = (),
        forgotten_topics_data: Sequence[ForgottenTopic] = (),
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.max_records: int = max_records
        self.batch_size: int = batch_size
        self.share_acquire_mode: int = share_acquire_mode
        self.is_renew_ack: bool = is_renew_ack
        self.topics: Sequence[FetchTopic] = topics
        self.forgotten_topics_data: Sequence[ForgottenTopic] = forgotten_topics_data


class NodeEndpoint(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32", first_version=1),
        FieldSpec("host", "string", first_version=1),
        FieldSpec("port", "int32", first_version=1),
        FieldSpec("rack", "string", first_version=1, first_nullable_version=1),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class LeaderIdAndEpoch(Message):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("leader_id", "int32", first_version=1),
        FieldSpec("leader_epoch", "int32", first_version=1),
    )

    def __init__(self, *, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class AcquiredRecords(Message):
    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_count",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("first_offset", "int64", first_version=1),
        FieldSpec("last_offset", "int64", first_version=1),
        FieldSpec("delivery_count", "int16", first_version=1),
    )

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, delivery_count: int = 0) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_count: int = delivery_count


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32", first_version=1),
        FieldSpec("error_code", "int16", first_version=1),
        FieldSpec("error_message", "string", first_version=1, first_nullable_version=1),
        FieldSpec("acknowledge_error_code", "int16", first_version=1),
        FieldSpec("acknowledge_error_message", "string", first_version=1, first_nullable_version=1),
        FieldSpec("current_leader", "struct", first_version=1, item=LeaderIdAndEpoch),
        FieldSpec("records", "records", first_version=1),
        FieldSpec("acquired_records", "struct", is_array=True, first_version=1, item=AcquiredRecords),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: Buffer | None = None,
        acquired_records: Sequence[AcquiredRecords] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acknowledge_error_code: int = acknowledge_error_code
        self.acknowledge_error_message: str | None = acknowledge_error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.records: Buffer | None = records
        self.acquired_records: Sequence[AcquiredRecords] = acquired_records


class ShareFetchableTopicResponse(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=1),
        FieldSpec("partitions", "struct", is_array=True, first_version=1, item=PartitionData),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[PartitionData] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[PartitionData] = partitions


class ShareFetchResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16", first_version=1),
        FieldSpec("error_message", "string", first_version=1, first_nullable_version=1),
        FieldSpec("acquisition_lock_timeout_ms", "int32", first_version=1),
        FieldSpec("responses", "struct", is_array=True, first_version=1, item=ShareFetchableTopicResponse),
        FieldSpec("node_endpoints", "struct", is_array=True, first_version=1, item=NodeEndpoint),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: Sequence[ShareFetchableTopicResponse] = (),
        node_endpoints: Sequence[NodeEndpoint] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: Sequence[ShareFetchableTopicResponse] = responses
        self.node_endpoints: Sequence[NodeEndpoint] = node_endpoints
