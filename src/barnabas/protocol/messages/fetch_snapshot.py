"""FetchSnapshotRequest and FetchSnapshotResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, Buffer, FieldSpec, Message


class RequestSnapshotId(Message):
    __slots__ = (
        "end_offset",
        "epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("end_offset", "int64"),
        FieldSpec("epoch", "int32"),
    )

    def __init__(self, *, end_offset: int = 0, epoch: int = 0) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class RequestPartitionSnapshot(Message):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "snapshot_id",
        "position",
        "replica_directory_id",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition", "int32"),
        FieldSpec("current_leader_epoch", "int32"),
        FieldSpec("snapshot_id", "struct", item=RequestSnapshotId),
        FieldSpec("position", "int64"),
        FieldSpec("replica_directory_id", "uuid", first_version=1, tag=0),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: RequestSnapshotId | None = None,
        position: int = 0,
        replica_directory_id: UUID = ZERO_UUID,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.snapshot_id: RequestSnapshotId = RequestSnapshotId() if snapshot_id is None else snapshot_id
        self.position: int = position
        self.replica_directory_id: UUID = replica_directory_id


class RequestTopicSnapshot(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=RequestPartitionSnapshot),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[RequestPartitionSnapshot] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[RequestPartitionSnapshot] = partitions


class FetchSnapshotRequest(Message):
    __slots__ = (
        "cluster_id",
        "replica_id",
        "max_bytes",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("cluster_id", "string", first_nullable_version=0, tag=0),
        FieldSpec("replica_id", "int32"),
        FieldSpec("max_bytes", "int32"),
        FieldSpec("topics", "struct", is_array=True, item=RequestTopicSnapshot),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: Sequence[RequestTopicSnapshot] = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.max_bytes: int = max_bytes
        self.topics: Sequence[RequestTopicSnapshot] = topics


class NodeEndpoint(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("node_id", "int32", first_version=1),
        FieldSpec("host", "string", first_version=1),
        FieldSpec("port", "uint16", first_version=1),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port


class ResponseSnapshotId(Message):
    __slots__ = (
        "end_offset",
        "epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("end_offset", "int64"),
        FieldSpec("epoch", "int32"),
    )

    def __init__(self, *, end_offset: int = 0, epoch: int = 0) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class LeaderIdAndEpoch(Message):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32"),
    )

    def __init__(self, *, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class ResponsePartitionSnapshot(Message):
    __slots__ = (
        "index",
        "error_code",
        "snapshot_id",
        "current_leader",
        "size",
        "position",
        "unaligned_records",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("index", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("snapshot_id", "struct", item=ResponseSnapshotId),
        FieldSpec("current_leader", "struct", tag=0, item=LeaderIdAndEpoch),
        FieldSpec("size", "int64"),
        FieldSpec("position", "int64"),
        FieldSpec("unaligned_records", "records"),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: ResponseSnapshotId | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        size: int = 0,
        position: int = 0,
        unaligned_records: Buffer | None = None,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.snapshot_id: ResponseSnapshotId = ResponseSnapshotId() if snapshot_id is None else snapshot_id
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.size: int = size
        self.position: int = position
        self.unaligned_records: Buffer | None = unaligned_records


class ResponseTopicSnapshot(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=ResponsePartitionSnapshot),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ResponsePartitionSnapshot] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[ResponsePartitionSnapshot] = partitions


class FetchSnapshotResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
        "node_endpoints",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("topics", "struct", is_array=True, item=ResponseTopicSnapshot),
        FieldSpec("node_endpoints", "struct", is_array=True, first_version=1, tag=0, item=NodeEndpoint),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: Sequence[ResponseTopicSnapshot] = (),
        node_endpoints: Sequence[NodeEndpoint] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: Sequence[ResponseTopicSnapshot] = topics
        self.node_endpoints: Sequence[NodeEndpoint] = node_endpoints
