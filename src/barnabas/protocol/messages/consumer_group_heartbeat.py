"""ConsumerGroupHeartbeatRequest and ConsumerGroupHeartbeatResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class RequestTopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[int] = partitions


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("member_id", "string"),
        FieldSpec("member_epoch", "int32"),
        FieldSpec("instance_id", "string", first_nullable_version=0),
        FieldSpec("rack_id", "string", first_nullable_version=0),
        FieldSpec("rebalance_timeout_ms", "int32"),
        FieldSpec("subscribed_topic_names", "string", is_array=True, first_nullable_version=0),
        FieldSpec("subscribed_topic_regex", "string", first_version=1, first_nullable_version=1),
        FieldSpec("server_assignor", "string", first_nullable_version=0),
        FieldSpec("topic_partitions", "struct", is_array=True, first_nullable_version=0, item=RequestTopicPartitions),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: Sequence[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: Sequence[RequestTopicPartitions] | None = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.subscribed_topic_names: Sequence[str] | None = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.server_assignor: str | None = server_assignor
        self.topic_partitions: Sequence[RequestTopicPartitions] | None = topic_partitions


class ResponseTopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: Sequence[int] = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_partitions", "struct", is_array=True, item=ResponseTopicPartitions),
    )

    def __init__(self, *, topic_partitions: Sequence[ResponseTopicPartitions] = ()) -> None:
        self.topic_partitions: Sequence[ResponseTopicPartitions] = topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("member_id", "string", first_nullable_version=0),
        FieldSpec("member_epoch", "int32"),
        FieldSpec("heartbeat_interval_ms", "int32"),
        FieldSpec("assignment", "struct", first_nullable_version=0, item=Assignment),
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
