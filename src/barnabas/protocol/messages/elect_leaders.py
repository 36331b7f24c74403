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
        ("topic", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partitions", "int32", True, 0, 32767, 32767, 32767, None, None),
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
        ("election_type", "int8", False, 1, 32767, 32767, 32767, None, None),
        ("topic_partitions", "struct", True, 0, 32767, 0, 32767, None, TopicPartitions),
        ("timeout_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
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
        ("partition_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
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
        ("topic", "string", False, 0, 32767, 32767, 32767, None, None),
        ("partition_result", "struct", True, 0, 32767, 32767, 32767, None, PartitionResult),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 1, 32767, 32767, 32767, None, None),
        ("replica_election_results", "struct", True, 0, 32767, 32767, 32767, None, ReplicaElectionResult),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, replica_election_results: Sequence[ReplicaElectionResult] = ()
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: Sequence[ReplicaElectionResult] = replica_election_results
