"""ElectLeadersRequest and ElectLeadersResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class TopicPartitions(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[int] = partitions


class ElectLeadersRequest(Message):
    __slots__ = (
        "election_type",
        "topic_partitions",
        "timeout_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("election_type", "int8", first_version=1),
        FieldSpec("topic_partitions", "struct", is_array=True, first_nullable_version=0, item=TopicPartitions),
        FieldSpec("timeout_ms", "int32"),
    )

    def __init__(
        self, *, election_type: int = 0, topic_partitions: Sequence[TopicPartitions] | None = (), timeout_ms: int = 60000
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: Sequence[TopicPartitions] | None = topic_partitions
        self.timeout_ms: int = timeout_ms


class PartitionResult(Message):
    __slots__ = (
        "partition_id",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_id", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, partition_id: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class ReplicaElectionResult(Message):
    __slots__ = (
        "topic",
        "partition_result",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partition_result", "struct", is_array=True, item=PartitionResult),
    )

    def __init__(self, *, topic: str = "", partition_result: Sequence[PartitionResult] = ()) -> None:
        self.topic: str = topic
        self.partition_result: Sequence[PartitionResult] = partition_result


class ElectLeadersResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "replica_election_results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16", first_version=1),
        FieldSpec("replica_election_results", "struct", is_array=True, item=ReplicaElectionResult),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, replica_election_results: Sequence[ReplicaElectionResult] = ()
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: Sequence[ReplicaElectionResult] = replica_election_results
