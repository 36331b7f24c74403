"""ShareGroupDescribeRequest and ShareGroupDescribeResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class ShareGroupDescribeRequest(Message):
    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_ids", "string", is_array=True, first_version=1),
        FieldSpec("include_authorized_operations", "bool", first_version=1),
    )

    def __init__(self, *, group_ids: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.group_ids: Sequence[str] = group_ids
        self.include_authorized_operations: bool = include_authorized_operations


class TopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "topic_name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid", first_version=1),
        FieldSpec("topic_name", "string", first_version=1),
        FieldSpec("partitions", "int32", is_array=True, first_version=1),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, topic_name: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.topic_name: str = topic_name
        self.partitions: Sequence[int] = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_partitions", "struct", is_array=True, first_version=1, item=TopicPartitions),
    )

    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ()) -> None:
        self.topic_partitions: Sequence[TopicPartitions] = topic_partitions


class Member(Message):
    __slots__ = (
        "member_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "assignment",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string", first_version=1),
        FieldSpec("rack_id", "string", first_version=1, first_nullable_version=1),
        FieldSpec("member_epoch", "int32", first_version=1),
        FieldSpec("client_id", "string", first_version=1),
        FieldSpec("client_host", "string", first_version=1),
        FieldSpec("subscribed_topic_names", "string", is_array=True, first_version=1),
        FieldSpec("assignment", "struct", first_version=1, item=Assignment),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        assignment: Assignment | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: Sequence[str] = subscribed_topic_names
        self.assignment: Assignment = Assignment() if assignment is None else assignment


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16", first_version=1),
        FieldSpec("error_message", "string", first_version=1, first_nullable_version=1),
        FieldSpec("group_id", "string", first_version=1),
        FieldSpec("group_state", "string", first_version=1),
        FieldSpec("group_epoch", "int32", first_version=1),
        FieldSpec("assignment_epoch", "int32", first_version=1),
        FieldSpec("assignor_name", "string", first_version=1),
        FieldSpec("members", "struct", is_array=True, first_version=1, item=Member),
        FieldSpec("authorized_operations", "int32", first_version=1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: Sequence[Member] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: Sequence[Member] = members
        self.authorized_operations: int = authorized_operations


class ShareGroupDescribeResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("groups", "struct", is_array=True, first_version=1, item=DescribedGroup),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: Sequence[DescribedGroup] = groups
