"""SaslHandshakeRequest and SaslHandshakeResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("mechanism", "string"),)

    def __init__(self, *, mechanism: str = "") -> None:
        self.mechanism: str = mechanism


class SaslHandshakeResponse(Message):
    __slots__ = (
        "error_code",
        "mechanisms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("mechanisms", "string", is_array=True),
    )

    def __init__(self, *, error_code: int = 0, mechanisms: Sequence[str] = ()) -> None:
        self.error_code: int = error_code
        self.mechanisms: Sequence[str] = mechanisms
