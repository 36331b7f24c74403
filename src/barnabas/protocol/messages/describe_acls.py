"""DescribeAclsRequest and DescribeAclsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribeAclsRequest(Message):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resource_type_filter", "int8"),
        FieldSpec("resource_name_filter", "string", first_nullable_version=0),
        FieldSpec("pattern_type_filter", "int8", first_version=1),
        FieldSpec("principal_filter", "string", first_nullable_version=0),
        FieldSpec("host_filter", "string", first_nullable_version=0),
        FieldSpec("operation", "int8"),
        FieldSpec("permission_type", "int8"),
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type


class AclDescription(Message):
    __slots__ = (
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("principal", "string"),
        FieldSpec("host", "string"),
        FieldSpec("operation", "int8"),
        FieldSpec("permission_type", "int8"),
    )

    def __init__(self, *, principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class DescribeAclsResource(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "pattern_type",
        "acls",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resource_type", "int8"),
        FieldSpec("resource_name", "string"),
        FieldSpec("pattern_type", "int8", first_version=1),
        FieldSpec("acls", "struct", is_array=True, item=AclDescription),
    )

    def __init__(
        self, *, resource_type: int = 0, resource_name: str = "", pattern_type: int = 3, acls: Sequence[AclDescription] = ()
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: Sequence[AclDescription] = acls


class DescribeAclsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "resources",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("resources", "struct", is_array=True, item=DescribeAclsResource),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: Sequence[DescribeAclsResource] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: Sequence[DescribeAclsResource] = resources
