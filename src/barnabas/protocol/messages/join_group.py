"""JoinGroupRequest and JoinGroupResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class JoinGroupRequestProtocol(Message):
    __slots__ = (
        "name",
        "metadata",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 9, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("metadata", "bytes"),
    )

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name: str = name
        self.metadata: bytes = metadata


class JoinGroupRequest(Message):
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 9, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("session_timeout_ms", "int32"),
        FieldSpec("rebalance_timeout_ms", "int32", first_version=1),
        FieldSpec("member_id", "string"),
        FieldSpec("group_instance_id", "string", first_version=5, first_nullable_version=5),
        FieldSpec("protocol_type", "string"),
        FieldSpec("protocols", "struct", is_array=True, item=JoinGroupRequestProtocol),
        FieldSpec("reason", "string", first_version=8, first_nullable_version=8),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: Sequence[JoinGroupRequestProtocol] = (),
        reason: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: Sequence[JoinGroupRequestProtocol] = protocols
        self.reason: str | None = reason


class JoinGroupResponseMember(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "metadata",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 9, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string"),
        FieldSpec("group_instance_id", "string", first_version=5, first_nullable_version=5),
        FieldSpec("metadata", "bytes"),
    )

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, metadata: bytes = b"") -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: bytes = metadata


class JoinGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 9, 6
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=2),
        FieldSpec("error_code", "int16"),
        FieldSpec("generation_id", "int32"),
        FieldSpec("protocol_type", "string", first_version=7, first_nullable_version=7),
        FieldSpec("protocol_name", "string", first_nullable_version=7),
        FieldSpec("leader", "string"),
        FieldSpec("skip_assignment", "bool", first_version=9),
        FieldSpec("member_id", "string"),
        FieldSpec("members", "struct", is_array=True, item=JoinGroupResponseMember),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: Sequence[JoinGroupResponseMember] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: Sequence[JoinGroupResponseMember] = members
