"""CreatePartitionsRequest and CreatePartitionsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("broker_ids", "int32", is_array=True),)

    def __init__(self, *, broker_ids: Sequence[int] = ()) -> None:
        self.broker_ids: Sequence[int] = broker_ids


class CreatePartitionsTopic(Message):
    __slots__ = (
        "name",
        "count",
        "assignments",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("count", "int32"),
        FieldSpec("assignments", "struct", is_array=True, first_nullable_version=0, item=CreatePartitionsAssignment),
    )

    def __init__(self, *, name: str = "", count: int = 0, assignments: Sequence[CreatePartitionsAssignment] | None = ()) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: Sequence[CreatePartitionsAssignment] | None = assignments


class CreatePartitionsRequest(Message):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "struct", is_array=True, item=CreatePartitionsTopic),
        FieldSpec("timeout_ms", "int32"),
        FieldSpec("validate_only", "bool"),
    )

    def __init__(self, *, topics: Sequence[CreatePartitionsTopic] = (), timeout_ms: int = 0, validate_only: bool = False) -> None:
        self.topics: Sequence[CreatePartitionsTopic] = topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


class CreatePartitionsTopicResult(Message):
    __slots__ = (
        "name",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, name: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class CreatePartitionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results", "struct", is_array=True, item=CreatePartitionsTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[CreatePartitionsTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[CreatePartitionsTopicResult] = results
