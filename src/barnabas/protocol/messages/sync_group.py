"""SyncGroupRequest and SyncGroupResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class SyncGroupRequestAssignment(Message):
    __slots__ = (
        "member_id",
        "assignment",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("member_id", "string", False, 0, 32767, 32767, 32767, None, None),
        ("assignment", "bytes", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, member_id: str = "", assignment: bytes = b"") -> None:
        self.member_id: str = member_id
        self.assignment: bytes = assignment


class SyncGroupRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("group_id", "string", False, 0, 32767, 32767, 32767, None, None),
        ("generation_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("member_id", "string", False, 0, 32767, 32767, 32767, None, None),
        ("group_instance_id", "string", False, 3, 32767, 3, 32767, None, None),
        ("protocol_type", "string", False, 5, 32767, 5, 32767, None, None),
        ("protocol_name", "string", False, 5, 32767, 5, 32767, None, None),
        ("assignments", "struct", True, 0, 32767, 32767, 32767, None, SyncGroupRequestAssignment),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: Sequence[SyncGroupRequestAssignment] = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: Sequence[SyncGroupRequestAssignment] = assignments


class SyncGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("throttle_time_ms", "int32", False, 1, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("protocol_type", "string", False, 5, 32767, 5, 32767, None, None),
        ("protocol_name", "string", False, 5, 32767, 5, 32767, None, None),
        ("assignment", "bytes", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment
