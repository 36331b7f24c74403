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
        ("resource_type", "int8", False, 0, 32767, 32767, 32767, None, None),
        ("resource_name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("configuration_keys", "string", True, 0, 32767, 0, 32767, None, None),
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
        ("resources", "struct", True, 0, 32767, 32767, 32767, None, DescribeConfigsResource),
        ("include_synonyms", "bool", False, 1, 32767, 32767, 32767, None, None),
        ("include_documentation", "bool", False, 3, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 1, 32767, 32767, 32767, None, None),
        ("value", "string", False, 1, 32767, 1, 32767, None, None),
        ("source", "int8", False, 1, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("value", "string", False, 0, 32767, 0, 32767, None, None),
        ("read_only", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("is_default", "bool", False, 0, 0, 32767, 32767, None, None),
        ("config_source", "int8", False, 1, 32767, 32767, 32767, None, None),
        ("is_sensitive", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("synonyms", "struct", True, 1, 32767, 32767, 32767, None, DescribeConfigsSynonym),
        ("config_type", "int8", False, 3, 32767, 32767, 32767, None, None),
        ("documentation", "string", False, 3, 32767, 3, 32767, None, None),
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
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
        ("resource_type", "int8", False, 0, 32767, 32767, 32767, None, None),
        ("resource_name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("configs", "struct", True, 0, 32767, 32767, 32767, None, DescribeConfigsResourceResult),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("results", "struct", True, 0, 32767, 32767, 32767, None, DescribeConfigsResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[DescribeConfigsResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[DescribeConfigsResult] = results
