"""DescribeConfigsRequest and DescribeConfigsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribeConfigsResource(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "configuration_keys",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resource_type", "int8"),
        FieldSpec("resource_name", "string"),
        FieldSpec("configuration_keys", "string", is_array=True, first_nullable_version=0),
    )

    def __init__(self, *, resource_type: int = 0, resource_name: str = "", configuration_keys: Sequence[str] | None = ()) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: Sequence[str] | None = configuration_keys


class DescribeConfigsRequest(Message):
    __slots__ = (
        "resources",
        "include_synonyms",
        "include_documentation",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resources", "struct", is_array=True, item=DescribeConfigsResource),
        FieldSpec("include_synonyms", "bool", first_version=1),
        FieldSpec("include_documentation", "bool", first_version=3),
    )

    def __init__(
        self,
        *,
        resources: Sequence[DescribeConfigsResource] = (),
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: Sequence[DescribeConfigsResource] = resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation


class DescribeConfigsSynonym(Message):
    __slots__ = (
        "name",
        "value",
        "source",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=1),
        FieldSpec("value", "string", first_version=1, first_nullable_version=1),
        FieldSpec("source", "int8", first_version=1),
    )

    def __init__(self, *, name: str = "", value: str | None = "", source: int = 0) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source


class DescribeConfigsResourceResult(Message):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "is_default",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("value", "string", first_nullable_version=0),
        FieldSpec("read_only", "bool"),
        FieldSpec("is_default", "bool", last_version=0),
        FieldSpec("config_source", "int8", first_version=1),
        FieldSpec("is_sensitive", "bool"),
        FieldSpec("synonyms", "struct", is_array=True, first_version=1, item=DescribeConfigsSynonym),
        FieldSpec("config_type", "int8", first_version=3),
        FieldSpec("documentation", "string", first_version=3, first_nullable_version=3),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        is_default: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: Sequence[DescribeConfigsSynonym] = (),
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.is_default: bool = is_default
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: Sequence[DescribeConfigsSynonym] = synonyms
        self.config_type: int = config_type
        self.documentation: str | None = documentation


class DescribeConfigsResult(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "configs",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("resource_type", "int8"),
        FieldSpec("resource_name", "string"),
        FieldSpec("configs", "struct", is_array=True, item=DescribeConfigsResourceResult),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[DescribeConfigsResourceResult] = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: Sequence[DescribeConfigsResourceResult] = configs


class DescribeConfigsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results", "struct", is_array=True, item=DescribeConfigsResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[DescribeConfigsResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[DescribeConfigsResult] = results
