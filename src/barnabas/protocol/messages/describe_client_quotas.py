"""DescribeClientQuotasRequest and DescribeClientQuotasResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ComponentData(Message):
    __slots__ = (
        "entity_type",
        "match_type",
        "match",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("entity_type", "string", False, 0, 32767, 32767, 32767, None, None),
        ("match_type", "int8", False, 0, 32767, 32767, 32767, None, None),
        ("match", "string", False, 0, 32767, 0, 32767, None, None),
    )

    def __init__(self, *, entity_type: str = "", match_type: int = 0, match: str | None = "") -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match


class DescribeClientQuotasRequest(Message):
    __slots__ = (
        "components",
        "strict",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("components", "struct", True, 0, 32767, 32767, 32767, None, ComponentData),
        ("strict", "bool", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, components: Sequence[ComponentData] = (), strict: bool = False) -> None:
        self.components: Sequence[ComponentData] = components
        self.strict: bool = strict


class EntityData(Message):
    __slots__ = (
        "entity_type",
        "entity_name",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("entity_type", "string", False, 0, 32767, 32767, 32767, None, None),
        ("entity_name", "string", False, 0, 32767, 0, 32767, None, None),
    )

    def __init__(self, *, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name


class ValueData(Message):
    __slots__ = (
        "key",
        "value",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("key", "string", False, 0, 32767, 32767, 32767, None, None),
        ("value", "float64", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, key: str = "", value: float = 0.0) -> None:
        self.key: str = key
        self.value: float = value


class EntryData(Message):
    __slots__ = (
        "entity",
        "values",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("entity", "struct", True, 0, 32767, 32767, 32767, None, EntityData),
        ("values", "struct", True, 0, 32767, 32767, 32767, None, ValueData),
    )

    def __init__(self, *, entity: Sequence[EntityData] = (), values: Sequence[ValueData] = ()) -> None:
        self.entity: Sequence[EntityData] = entity
        self.values: Sequence[ValueData] = values


class DescribeClientQuotasResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "entries",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
        ("entries", "struct", True, 0, 32767, 0, 32767, None, EntryData),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: Sequence[EntryData] | None = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: Sequence[EntryData] | None = entries
