"""DeleteShareGroupOffsetsRequest and DeleteShareGroupOffsetsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class DeleteShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (("topic_name", "string", False, 0, 32767, 32767, 32767, None, None),)

    def __init__(self, *, topic_name: str = "") -> None:
        self.topic_name: str = topic_name


class DeleteShareGroupOffsetsRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("group_id", "string", False, 0, 32767, 32767, 32767, None, None),
        ("topics", "struct", True, 0, 32767, 32767, 32767, None, DeleteShareGroupOffsetsRequestTopic),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = ()) -> None:
        self.group_id: str = group_id
        self.topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = topics


class DeleteShareGroupOffsetsResponseTopic(Message):
    __slots__ = (
        "topic_name",
        "topic_id",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("topic_name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("topic_id", "uuid", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
    )

    def __init__(
        self, *, topic_name: str = "", topic_id: UUID = ZERO_UUID, error_code: int = 0, error_message: str | None = None
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: UUID = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteShareGroupOffsetsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
        ("responses", "struct", True, 0, 32767, 32767, 32767, None, DeleteShareGroupOffsetsResponseTopic),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = responses
