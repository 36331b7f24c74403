"""SaslAuthenticateRequest and SaslAuthenticateResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("auth_bytes", "bytes"),)

    def __init__(self, *, auth_bytes: bytes = b"") -> None:
        self.auth_bytes: bytes = auth_bytes


class SaslAuthenticateResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "auth_bytes",
        "session_lifetime_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("auth_bytes", "bytes"),
        FieldSpec("session_lifetime_ms", "int64", first_version=1),
    )

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", auth_bytes: bytes = b"", session_lifetime_ms: int = 0
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: bytes = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms
