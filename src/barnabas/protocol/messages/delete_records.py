"""DeleteRecordsRequest and DeleteRecordsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DeleteRecordsPartition(Message):
    __slots__ = (
        "partition_index",
        "offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("offset", "int64"),
    )

    def __init__(self, *, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset


class DeleteRecordsTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=DeleteRecordsPartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[DeleteRecordsPartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[DeleteRecordsPartition] = partitions


class DeleteRecordsRequest(Message):
    __slots__ = (
        "topics",
        "timeout_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "struct", is_array=True, item=DeleteRecordsTopic),
        FieldSpec("timeout_ms", "int32"),
    )

    def __init__(self, *, topics: Sequence[DeleteRecordsTopic] = (), timeout_ms: int = 0) -> None:
        self.topics: Sequence[DeleteRecordsTopic] = topics
        self.timeout_ms: int = timeout_ms


class DeleteRecordsPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "low_watermark",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("low_watermark", "int64"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, low_watermark: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.low_watermark: int = low_watermark
        self.error_code: int = error_code


class DeleteRecordsTopicResult(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=DeleteRecordsPartitionResult),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[DeleteRecordsPartitionResult] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[DeleteRecordsPartitionResult] = partitions


class DeleteRecordsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("topics", "struct", is_array=True, item=DeleteRecordsTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[DeleteRecordsTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: Sequence[DeleteRecordsTopicResult] = topics
