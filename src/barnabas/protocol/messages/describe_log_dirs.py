"""DescribeLogDirsRequest and DescribeLogDirsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribableLogDirTopic(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[int] = partitions


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "struct", is_array=True, first_nullable_version=0, item=DescribableLogDirTopic),
    )

    def __init__(self, *, topics: Sequence[DescribableLogDirTopic] | None = ()) -> None:
        self.topics: Sequence[DescribableLogDirTopic] | None = topics


class DescribeLogDirsPartition(Message):
    __slots__ = (
        "partition_index",
        "partition_size",
        "offset_lag",
        "is_future_key",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("partition_size", "int64"),
        FieldSpec("offset_lag", "int64"),
        FieldSpec("is_future_key", "bool"),
    )

    def __init__(
        self, *, partition_index: int = 0, partition_size: int = 0, offset_lag: int = 0, is_future_key: bool = False
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key


class DescribeLogDirsTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=DescribeLogDirsPartition),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[DescribeLogDirsPartition] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[DescribeLogDirsPartition] = partitions


class DescribeLogDirsResult(Message):
    __slots__ = (
        "error_code",
        "log_dir",
        "topics",
        "total_bytes",
        "usable_bytes",
        "is_cordoned",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("log_dir", "string"),
        FieldSpec("topics", "struct", is_array=True, item=DescribeLogDirsTopic),
        FieldSpec("total_bytes", "int64", first_version=4),
        FieldSpec("usable_bytes", "int64", first_version=4),
        FieldSpec("is_cordoned", "bool", first_version=5),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: Sequence[DescribeLogDirsTopic] = (),
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: Sequence[DescribeLogDirsTopic] = topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes
        self.is_cordoned: bool = is_cordoned


class DescribeLogDirsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16", first_version=3),
        FieldSpec("results", "struct", is_array=True, item=DescribeLogDirsResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, results: Sequence[DescribeLogDirsResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: Sequence[DescribeLogDirsResult] = results
