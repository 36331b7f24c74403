"""AlterClientQuotasRequest and AlterClientQuotasResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class RequestEntityData(Message):
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


class OpData(Message):
    __slots__ = (
        "key",
        "value",
        "remove",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("key", "string"),
        FieldSpec("value", "float64"),
        FieldSpec("remove", "bool"),
    )

    def __init__(self, *, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove


class RequestEntryData(Message):
    __slots__ = (
        "entity",
        "ops",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("entity", "struct", is_array=True, item=RequestEntityData),
        FieldSpec("ops", "struct", is_array=True, item=OpData),
    )

    def __init__(self, *, entity: Sequence[RequestEntityData] = (), ops: Sequence[OpData] = ()) -> None:
        self.entity: Sequence[RequestEntityData] = entity
        self.ops: Sequence[OpData] = ops


class AlterClientQuotasRequest(Message):
    __slots__ = (
        "entries",
        "validate_only",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("entries", "struct", is_array=True, item=RequestEntryData),
        FieldSpec("validate_only", "bool"),
    )

    def __init__(self, *, entries: Sequence[RequestEntryData] = (), validate_only: bool = False) -> None:
        self.entries: Sequence[RequestEntryData] = entries
        self.validate_only: bool = validate_only


class ResponseEntityData(Message):
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


class ResponseEntryData(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "entity",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("entity", "struct", is_array=True, item=ResponseEntityData),
    )

    def __init__(self, *, error_code: int = 0, error_message: str | None = "", entity: Sequence[ResponseEntityData] = ()) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: Sequence[ResponseEntityData] = entity


class AlterClientQuotasResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "entries",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("entries", "struct", is_array=True, item=ResponseEntryData),
    )

    def __init__(self, *, throttle_time_ms: int = 0, entries: Sequence[ResponseEntryData] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: Sequence[ResponseEntryData] = entries
