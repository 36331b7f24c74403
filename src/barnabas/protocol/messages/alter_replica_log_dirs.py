"""AlterReplicaLogDirsRequest and AlterReplicaLogDirsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class AlterReplicaLogDirTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[int] = partitions


class AlterReplicaLogDir(Message):
    __slots__ = (
        "path",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("path", "string"),
        FieldSpec("topics", "struct", is_array=True, item=AlterReplicaLogDirTopic),
    )

    def __init__(self, *, path: str = "", topics: Sequence[AlterReplicaLogDirTopic] = ()) -> None:
        self.path: str = path
        self.topics: Sequence[AlterReplicaLogDirTopic] = topics


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("dirs", "struct", is_array=True, item=AlterReplicaLogDir),)

    def __init__(self, *, dirs: Sequence[AlterReplicaLogDir] = ()) -> None:
        self.dirs: Sequence[AlterReplicaLogDir] = dirs


class AlterReplicaLogDirPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class AlterReplicaLogDirTopicResult(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=AlterReplicaLogDirPartitionResult),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[AlterReplicaLogDirPartitionResult] = ()) -> None:
        self.topic_name: str = topic_name
        self.partitions: Sequence[AlterReplicaLogDirPartitionResult] = partitions


class AlterReplicaLogDirsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results", "struct", is_array=True, item=AlterReplicaLogDirTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[AlterReplicaLogDirTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[AlterReplicaLogDirTopicResult] = results
