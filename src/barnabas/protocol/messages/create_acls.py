"""CreateAclsRequest and CreateAclsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class AclCreation(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("resource_type", "int8"),
        FieldSpec("resource_name", "string"),
        FieldSpec("resource_pattern_type", "int8", first_version=1),
        FieldSpec("principal", "string"),
        FieldSpec("host", "string"),
        FieldSpec("operation", "int8"),
        FieldSpec("permission_type", "int8"),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class CreateAclsRequest(Message):
    __slots__ = ("creations",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("creations", "struct", is_array=True, item=AclCreation),)

    def __init__(self, *, creations: Sequence[AclCreation] = ()) -> None:
        self.creations: Sequence[AclCreation] = creations


class AclCreationResult(Message):
    __slots__ = (
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, error_code: int = 0, error_message: str | None = "") -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class CreateAclsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results", "struct", is_array=True, item=AclCreationResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[AclCreationResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[AclCreationResult] = results
