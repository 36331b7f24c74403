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
        FieldSpec("member_id", "string"),
        FieldSpec("assignment", "bytes"),
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
        FieldSpec("group_id", "string"),
        FieldSpec("generation_id", "int32"),
        FieldSpec("member_id", "string"),
        FieldSpec("group_instance_id", "string", first_version=3, first_nullable_version=3),
        FieldSpec("protocol_type", "string", first_version=5, first_nullable_version=5),
        FieldSpec("protocol_name", "string", first_version=5, first_nullable_version=5),
        FieldSpec("assignments", "struct", is_array=True, item=SyncGroupRequestAssignment),
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
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16"),
        FieldSpec("protocol_type", "string", first_version=5, first_nullable_version=5),
        FieldSpec("protocol_name", "string", first_version=5, first_nullable_version=5),
        FieldSpec("assignment", "bytes"),
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
