"""DeleteTopicsRequest and DeleteTopicsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class DeleteTopicState(Message):
    __slots__ = (
        "name",
        "topic_id",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 6, 6, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=6, first_nullable_version=6),
        FieldSpec("topic_id", "uuid", first_version=6),
    )

    def __init__(self, *, name: str | None = None, topic_id: UUID = ZERO_UUID) -> None:
        self.name: str | None = name
        self.topic_id: UUID = topic_id


class DeleteTopicsRequest(Message):
    __slots__ = (
        "topic_names",
        "topics",
        "timeout_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_names", "string", is_array=True, last_version=5),
        FieldSpec("topics", "struct", is_array=True, first_version=6, item=DeleteTopicState),
        FieldSpec("timeout_ms", "int32"),
    )

    def __init__(self, *, topic_names: Sequence[str] = (), topics: Sequence[DeleteTopicState] = (), timeout_ms: int = 0) -> None:
        self.topic_names: Sequence[str] = topic_names
        self.topics: Sequence[DeleteTopicState] = topics
        self.timeout_ms: int = timeout_ms


class DeletableTopicResult(Message):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_nullable_version=6),
        FieldSpec("topic_id", "uuid", first_version=6),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_version=5, first_nullable_version=5),
    )

    def __init__(
        self, *, name: str | None = "", topic_id: UUID = ZERO_UUID, error_code: int = 0, error_message: str | None = None
    ) -> None:
        self.name: str | None = name
        self.topic_id: UUID = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteTopicsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("responses", "struct", is_array=True, item=DeletableTopicResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, responses: Sequence[DeletableTopicResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: Sequence[DeletableTopicResult] = responses
