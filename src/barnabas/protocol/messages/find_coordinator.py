"""FindCoordinatorRequest and FindCoordinatorResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class FindCoordinatorRequest(Message):
    __slots__ = (
        "key",
        "key_type",
        "coordinator_keys",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("key", "string", last_version=3),
        FieldSpec("key_type", "int8", first_version=1),
        FieldSpec("coordinator_keys", "string", is_array=True, first_version=4),
    )

    def __init__(self, *, key: str = "", key_type: int = 0, coordinator_keys: Sequence[str] = ()) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: Sequence[str] = coordinator_keys


class Coordinator(Message):
    __slots__ = (
        "key",
        "node_id",
        "host",
        "port",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 4, 6, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("key", "string", first_version=4),
        FieldSpec("node_id", "int32", first_version=4),
        FieldSpec("host", "string", first_version=4),
        FieldSpec("port", "int32", first_version=4),
        FieldSpec("error_code", "int16", first_version=4),
        FieldSpec("error_message", "string", first_version=4, first_nullable_version=4),
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class FindCoordinatorResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "coordinators",
        "error_message",
        "node_id",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 6, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("error_code", "int16", last_version=3),
        FieldSpec("coordinators", "struct", is_array=True, first_version=4, item=Coordinator),
        FieldSpec("error_message", "string", first_version=1, last_version=3, first_nullable_version=1, last_nullable_version=3),
        FieldSpec("node_id", "int32", last_version=3),
        FieldSpec("host", "string", last_version=3),
        FieldSpec("port", "int32", last_version=3),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        coordinators: Sequence[Coordinator] = (),
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.coordinators: Sequence[Coordinator] = coordinators
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
