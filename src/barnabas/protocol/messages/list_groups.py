"""ListGroupsRequest and ListGroupsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ListGroupsRequest(Message):
    __slots__ = (
        "states_filter",
        "types_filter",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("states_filter", "string", is_array=True, first_version=4),
        FieldSpec("types_filter", "string", is_array=True, first_version=5),
    )

    def __init__(self, *, states_filter: Sequence[str] = (), types_filter: Sequence[str] = ()) -> None:
        self.states_filter: Sequence[str] = states_filter
        self.types_filter: Sequence[str] = types_filter


class ListedGroup(Message):
    __slots__ = (
        "group_id",
        "protocol_type",
        "group_state",
        "group_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("protocol_type", "string"),
        FieldSpec("group_state", "string", first_version=4),
        FieldSpec("group_type", "string", first_version=5),
    )

    def __init__(self, *, group_id: str = "", protocol_type: str = "", group_state: str = "", group_type: str = "") -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type


class ListGroupsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16"),
        FieldSpec("groups", "struct", is_array=True, item=ListedGroup),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, groups: Sequence[ListedGroup] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: Sequence[ListedGroup] = groups
