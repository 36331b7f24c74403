"""DeleteGroupsRequest and DeleteGroupsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("groups_names", "string", is_array=True),)

    def __init__(self, *, groups_names: Sequence[str] = ()) -> None:
        self.groups_names: Sequence[str] = groups_names


class DeletableGroupResult(Message):
    __slots__ = (
        "group_id",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, group_id: str = "", error_code: int = 0) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code


class DeleteGroupsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results", "struct", is_array=True, item=DeletableGroupResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[DeletableGroupResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[DeletableGroupResult] = results
