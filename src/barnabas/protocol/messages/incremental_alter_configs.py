"""IncrementalAlterConfigsRequest and IncrementalAlterConfigsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class AlterableConfig(Message):
    __slots__ = (
        "name",
        "config_operation",
        "value",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("config_operation", "int8"),
        FieldSpec("value", "string", first_nullable_version=0),
    )

    def __init__(self, *, name: str = "", config_operation: int = 0, value: str | None = "") -> None:
        self.name: str = name
        self.config_operation: int = config_operation
        self.value: str | None = value


class AlterConfigsResource(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "configs",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resource_type", "int8"),
        FieldSpec("resource_name", "string"),
        FieldSpec("configs", "struct", is_array=True, item=AlterableConfig),
    )

    def __init__(self, *, resource_type: int = 0, resource_name: str = "", configs: Sequence[AlterableConfig] = ()) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: Sequence[AlterableConfig] = configs


class IncrementalAlterConfigsRequest(Message):
    __slots__ = (
        "resources",
        "validate_only",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resources", "struct", is_array=True, item=AlterConfigsResource),
        FieldSpec("validate_only", "bool"),
    )

    def __init__(self, *, resources: Sequence[AlterConfigsResource] = (), validate_only: bool = False) -> None:
        self.resources: Sequence[AlterConfigsResource] = resources
        self.validate_only: bool = validate_only


class AlterConfigsResourceResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("resource_type", "int8"),
        FieldSpec("resource_name", "string"),
    )

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", resource_type: int = 0, resource_name: str = ""
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name


class IncrementalAlterConfigsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("responses", "struct", is_array=True, item=AlterConfigsResourceResponse),
    )

    def __init__(self, *, throttle_time_ms: int = 0, responses: Sequence[AlterConfigsResourceResponse] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: Sequence[AlterConfigsResourceResponse] = responses
