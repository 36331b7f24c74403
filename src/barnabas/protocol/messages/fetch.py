"""FetchRequest and FetchResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, Buffer, FieldSpec, Message


class FetchPartition(Message):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("current_leader_epoch", "int32", first_version=9),
        FieldSpec("fetch_offset", "int64"),
        FieldSpec("last_fetched_epoch", "int32", first_version=12),
        FieldSpec("log_start_offset", "int64", first_version=5),
        FieldSpec("partition_max_bytes", "int32"),
        FieldSpec("replica_directory_id", "uuid", first_version=17, tag=0),
        FieldSpec("high_watermark", "int64", first_version=18, tag=1),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: UUID = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: UUID = replica_directory_id
        self.high_watermark: int = high_watermark


class ForgottenTopic(Message):
    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 7, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string", first_version=7, last_version=12),
        FieldSpec("topic_id", "uuid", first_version=13),
        FieldSpec("partitions", "int32", is_array=True, first_version=7),
    )

    def __init__(self, *, topic: str = "", topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic: str = topic
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[int] = partitions


class ReplicaState(Message):
    __slots__ = (
        "replica_id",
        "replica_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 15, 18, 15
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("replica_id", "int32", first_version=15),
        FieldSpec("replica_epoch", "int64", first_version=15),
    )

    def __init__(self, *, replica_id: int = -1, replica_epoch: int = -1) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch


class FetchTopic(Message):
    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string", last_version=12),
        FieldSpec("topic_id", "uuid", first_version=13),
        FieldSpec("partitions", "struct", is_array=True, item=FetchPartition),
    )

    def __init__(self, *, topic: str = "", topic_id: UUID = ZERO_UUID, partitions: Sequence[FetchPartition] = ()) -> None:
        self.topic: str = topic
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[FetchPartition] = partitions


class FetchRequest(Message):
    __slots__ = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("cluster_id", "string", first_version=12, first_nullable_version=12, tag=0),
        FieldSpec("replica_id", "int32", last_version=14),
        FieldSpec("replica_state", "struct", first_version=15, tag=1, item=ReplicaState),
        FieldSpec("max_wait_ms", "int32"),
        FieldSpec("min_bytes", "int32"),
        FieldSpec("max_bytes", "int32", first_version=3),
        FieldSpec("isolation_level", "int8", first_version=4),
        FieldSpec("session_id", "int32", first_version=7),
        FieldSpec("session_epoch", "int32", first_version=7),
        FieldSpec("topics", "struct", is_array=True, item=FetchTopic),
        FieldSpec("forgotten_topics_data", "struct", is_array=True, first_version=7, item=ForgottenTopic),
        FieldSpec("rack_id", "string", first_version=11),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: Sequence[FetchTopic] = (),
        forgotten_topics_data: Sequence[ForgottenTopic] = (),
        rack_id: str = "",
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.replica_state: ReplicaState = ReplicaState() if replica_state is None else replica_state
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: Sequence[FetchTopic] = topics
        self.forgotten_topics_data: Sequence[ForgottenTopic] = forgotten_topics_data
        self.rack_id: str = rack_id


class AbortedTransaction(Message):
    __slots__ = (
        "producer_id",
        "first_offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 4, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("producer_id", "int64", first_version=4),
        FieldSpec("first_offset", "int64", first_version=4),
    )

    def __init__(self, *, producer_id: int = 0, first_offset: int = 0) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset


class EpochEndOffset(Message):
    __slots__ = (
        "epoch",
        "end_offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 12, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("epoch", "int32", first_version=12),
        FieldSpec("end_offset", "int64", first_version=12),
    )

    def __init__(self, *, epoch: int = -1, end_offset: int = -1) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset


class LeaderIdAndEpoch(Message):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 12, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("leader_id", "int32", first_version=12),
        FieldSpec("leader_epoch", "int32", first_version=12),
    )

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class SnapshotId(Message):
    __slots__ = (
        "end_offset",
        "epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 12, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("end_offset", "int64", first_version=12),
        FieldSpec("epoch", "int32", first_version=12),
    )

    def __init__(self, *, end_offset: int = -1, epoch: int = -1) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class NodeEndpoint(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 16, 18, 16
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32", first_version=16),
        FieldSpec("host", "string", first_version=16),
        FieldSpec("port", "int32", first_version=16),
        FieldSpec("rack", "string", first_version=16, first_nullable_version=16),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("high_watermark", "int64"),
        FieldSpec("last_stable_offset", "int64", first_version=4),
        FieldSpec("log_start_offset", "int64", first_version=5),
        FieldSpec("diverging_epoch", "struct", first_version=12, tag=0, item=EpochEndOffset),
        FieldSpec("current_leader", "struct", first_version=12, tag=1, item=LeaderIdAndEpoch),
        FieldSpec("snapshot_id", "struct", first_version=12, tag=2, item=SnapshotId),
        FieldSpec(
            "aborted_transactions", "struct", is_array=True, first_version=4, first_nullable_version=4, item=AbortedTransaction
        ),
        FieldSpec("preferred_read_replica", "int32", first_version=11),
        FieldSpec("records", "records", first_nullable_version=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: Sequence[AbortedTransaction] | None = (),
        preferred_read_replica: int = -1,
        records: Buffer | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.diverging_epoch: EpochEndOffset = EpochEndOffset() if diverging_epoch is None else diverging_epoch
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id
        self.aborted_transactions: Sequence[AbortedTransaction] | None = aborted_transactions
        self.preferred_read_replica: int = preferred_read_replica
        self.records: Buffer | None = records


class FetchableTopicResponse(Message):
    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string", last_version=12),
        FieldSpec("topic_id", "uuid", first_version=13),
        FieldSpec("partitions", "struct", is_array=True, item=PartitionData),
    )

    def __init__(self, *, topic: str = "", topic_id: UUID = ZERO_UUID, partitions: Sequence[PartitionData] = ()) -> None:
        self.topic: str = topic
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[PartitionData] = partitions


class FetchResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "session_id",
        "responses",
        "node_endpoints",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 18, 12
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16", first_version=7),
        FieldSpec("session_id", "int32", first_version=7),
        FieldSpec("responses", "struct", is_array=True, item=FetchableTopicResponse),
        FieldSpec("node_endpoints", "struct", is_array=True, first_version=16, tag=0, item=NodeEndpoint),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: Sequence[FetchableTopicResponse] = (),
        node_endpoints: Sequence[NodeEndpoint] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: Sequence[FetchableTopicResponse] = responses
        self.node_endpoints: Sequence[NodeEndpoint] = node_endpoints
