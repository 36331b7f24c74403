"""LeaveGroupRequest and LeaveGroupResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class MemberIdentity(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "reason",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 3, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string", first_version=3),
        FieldSpec("group_instance_id", "string", first_version=3, first_nullable_version=3),
        FieldSpec("reason", "string", first_version=5, first_nullable_version=5),
    )

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, reason: str | None = None) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason


class LeaveGroupRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "members",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("member_id", "string", last_version=2),
        FieldSpec("members", "struct", is_array=True, first_version=3, item=MemberIdentity),
    )

    def __init__(self, *, group_id: str = "", member_id: str = "", members: Sequence[MemberIdentity] = ()) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.members: Sequence[MemberIdentity] = members


class MemberResponse(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 3, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string", first_version=3),
        FieldSpec("group_instance_id", "string", first_version=3, first_nullable_version=3),
        FieldSpec("error_code", "int16", first_version=3),
    )

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = "", error_code: int = 0) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code


class LeaveGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "members",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16"),
        FieldSpec("members", "struct", is_array=True, first_version=3, item=MemberResponse),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, members: Sequence[MemberResponse] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: Sequence[MemberResponse] = members
