"""ConsumerGroupDescribeRequest and ConsumerGroupDescribeResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class ConsumerGroupDescribeRequest(Message):
    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_ids", "string", is_array=True),
        FieldSpec("include_authorized_operations", "bool"),
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
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic_id", "uuid"),
        FieldSpec("topic_name", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic_id: UUID = ZERO_UUID, topic_name: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic_id: UUID = topic_id
        self.topic_name: str = topic_name
        self.partitions: Sequence[int] = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("topic_partitions", "struct", is_array=True, item=TopicPartitions),)

    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ()) -> None:
        self.topic_partitions: Sequence[TopicPartitions] = topic_partitions


class Member(Message):
    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string"),
        FieldSpec("instance_id", "string", first_nullable_version=0),
        FieldSpec("rack_id", "string", first_nullable_version=0),
        FieldSpec("member_epoch", "int32"),
        FieldSpec("client_id", "string"),
        FieldSpec("client_host", "string"),
        FieldSpec("subscribed_topic_names", "string", is_array=True),
        FieldSpec("subscribed_topic_regex", "string", first_nullable_version=0),
        FieldSpec("assignment", "struct", item=Assignment),
        FieldSpec("target_assignment", "struct", item=Assignment),
        FieldSpec("member_type", "int8", first_version=1),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
    ) -> None:
        self.member_id: str = member_id
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: Sequence[str] = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is None else target_assignment
        self.member_type: int = member_type


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
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("group_id", "string"),
        FieldSpec("group_state", "string"),
        FieldSpec("group_epoch", "int32"),
        FieldSpec("assignment_epoch", "int32"),
        FieldSpec("assignor_name", "string"),
        FieldSpec("members", "struct", is_array=True, item=Member),
        FieldSpec("authorized_operations", "int32"),
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


class ConsumerGroupDescribeResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("groups", "struct", is_array=True, item=DescribedGroup),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: Sequence[DescribedGroup] = groups
