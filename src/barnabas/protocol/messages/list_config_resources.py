"""ListConfigResourcesRequest and ListConfigResourcesResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("resource_types", "int8", is_array=True, first_version=1),)

    def __init__(self, *, resource_types: Sequence[int] = ()) -> None:
        self.resource_types: Sequence[int] = resource_types


class ConfigResource(Message):
    __slots__ = (
        "resource_name",
        "resource_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resource_name", "string"),
        FieldSpec("resource_type", "int8", first_version=1),
    )

    def __init__(self, *, resource_name: str = "", resource_type: int = 16) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type


class ListConfigResourcesResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "config_resources",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("config_resources", "struct", is_array=True, item=ConfigResource),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, config_resources: Sequence[ConfigResource] = ()
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: Sequence[ConfigResource] = config_resources
