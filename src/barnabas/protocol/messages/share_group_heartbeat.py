"""ShareGroupHeartbeatRequest and ShareGroupHeartbeatResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class ShareGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "rack_id",
        "subscribed_topic_names",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string", first_version=1),
        FieldSpec("member_id", "string", first_version=1),
        FieldSpec("member_epoch", "int32", first_version=1),
        FieldSpec("rack_id", "string", first_version=1, first_nullable_version=1),
        FieldSpec("subscribed_topic_names", "string", is_array=True, first_version=1, first_nullable_version=1),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: Sequence[str] | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.rack_id: str | None = rack_id
        self.subscribed_topic_names: Sequence[str] | None = subscribed_topic_names


class TopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=1),
        FieldSpec("partitions", "int32", is_array=True, first_version=1),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[int] = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_partitions", "struct", is_array=True, first_version=1, item=TopicPartitions),
    )

    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ()) -> None:
        self.topic_partitions: Sequence[TopicPartitions] = topic_partitions


class ShareGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16", first_version=1),
        FieldSpec("error_message", "string", first_version=1, first_nullable_version=1),
        FieldSpec("member_id", "string", first_version=1, first_nullable_version=1),
        FieldSpec("member_epoch", "int32", first_version=1),
        FieldSpec("heartbeat_interval_ms", "int32", first_version=1),
        FieldSpec("assignment", "struct", first_version=1, first_nullable_version=1, item=Assignment),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: Assignment | None = assignment
