"""DescribeGroupsRequest and DescribeGroupsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribeGroupsRequest(Message):
    __slots__ = (
        "groups",
        "include_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("groups", "string", is_array=True),
        FieldSpec("include_authorized_operations", "bool", first_version=3),
    )

    def __init__(self, *, groups: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.groups: Sequence[str] = groups
        self.include_authorized_operations: bool = include_authorized_operations


class DescribedGroupMember(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string"),
        FieldSpec("group_instance_id", "string", first_version=4, first_nullable_version=4),
        FieldSpec("client_id", "string"),
        FieldSpec("client_host", "string"),
        FieldSpec("member_metadata", "bytes"),
        FieldSpec("member_assignment", "bytes"),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: bytes = member_metadata
        self.member_assignment: bytes = member_assignment


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_version=6, first_nullable_version=6),
        FieldSpec("group_id", "string"),
        FieldSpec("group_state", "string"),
        FieldSpec("protocol_type", "string"),
        FieldSpec("protocol_data", "string"),
        FieldSpec("members", "struct", is_array=True, item=DescribedGroupMember),
        FieldSpec("authorized_operations", "int32", first_version=3),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: Sequence[DescribedGroupMember] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: Sequence[DescribedGroupMember] = members
        self.authorized_operations: int = authorized_operations


class DescribeGroupsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 5
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("groups", "struct", is_array=True, item=DescribedGroup),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: Sequence[DescribedGroup] = groups
