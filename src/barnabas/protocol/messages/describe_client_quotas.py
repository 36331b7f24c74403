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
        FieldSpec("entity_type", "string"),
        FieldSpec("match_type", "int8"),
        FieldSpec("match", "string", first_nullable_version=0),
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
        FieldSpec("components", "struct", is_array=True, item=ComponentData),
        FieldSpec("strict", "bool"),
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
        FieldSpec("entity_type", "string"),
        FieldSpec("entity_name", "string", first_nullable_version=0),
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
        FieldSpec("key", "string"),
        FieldSpec("value", "float64"),
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
        FieldSpec("entity", "struct", is_array=True, item=EntityData),
        FieldSpec("values", "struct", is_array=True, item=ValueData),
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
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("entries", "struct", is_array=True, first_nullable_version=0, item=EntryData),
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
