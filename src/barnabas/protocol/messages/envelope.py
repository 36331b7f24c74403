"""EnvelopeRequest and EnvelopeResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class EnvelopeRequest(Message):
    __slots__ = (
        "request_data",
        "request_principal",
        "client_host_address",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("request_data", "bytes"),
        FieldSpec("request_principal", "bytes", first_nullable_version=0),
        FieldSpec("client_host_address", "bytes"),
    )

    def __init__(
        self, *, request_data: bytes = b"", request_principal: bytes | None = b"", client_host_address: bytes = b""
    ) -> None:
        self.request_data: bytes = request_data
        self.request_principal: bytes | None = request_principal
        self.client_host_address: bytes = client_host_address


class EnvelopeResponse(Message):
    __slots__ = (
        "response_data",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("response_data", "bytes", first_nullable_version=0),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, response_data: bytes | None = None, error_code: int = 0) -> None:
        self.response_data: bytes | None = response_data
        self.error_code: int = error_code
