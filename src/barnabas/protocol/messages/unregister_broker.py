"""UnregisterBrokerRequest and UnregisterBrokerResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class UnregisterBrokerRequest(Message):
    __slots__ = ("broker_id",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("broker_id", "int32"),)

    def __init__(self, *, broker_id: int = 0) -> None:
        self.broker_id: int = broker_id


class UnregisterBrokerResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
