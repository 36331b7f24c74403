"""AlterUserScramCredentialsRequest and AlterUserScramCredentialsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ScramCredentialDeletion(Message):
    __slots__ = (
        "name",
        "mechanism",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("mechanism", "int8"),
    )

    def __init__(self, *, name: str = "", mechanism: int = 0) -> None:
        self.name: str = name
        self.mechanism: int = mechanism


class ScramCredentialUpsertion(Message):
    __slots__ = (
        "name",
        "mechanism",
        "iterations",
        "salt",
        "salted_password",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("mechanism", "int8"),
        FieldSpec("iterations", "int32"),
        FieldSpec("salt", "bytes"),
        FieldSpec("salted_password", "bytes"),
    )

    def __init__(
        self, *, name: str = "", mechanism: int = 0, iterations: int = 0, salt: bytes = b"", salted_password: bytes = b""
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: bytes = salt
        self.salted_password: bytes = salted_password


class AlterUserScramCredentialsRequest(Message):
    __slots__ = (
        "deletions",
        "upsertions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("deletions", "struct", is_array=True, item=ScramCredentialDeletion),
        FieldSpec("upsertions", "struct", is_array=True, item=ScramCredentialUpsertion),
    )

    def __init__(
        self, *, deletions: Sequence[ScramCredentialDeletion] = (), upsertions: Sequence[ScramCredentialUpsertion] = ()
    ) -> None:
        self.deletions: Sequence[ScramCredentialDeletion] = deletions
        self.upsertions: Sequence[ScramCredentialUpsertion] = upsertions


class AlterUserScramCredentialsResult(Message):
    __slots__ = (
        "user",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("user", "string"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
    )

    def __init__(self, *, user: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class AlterUserScramCredentialsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results", "struct", is_array=True, item=AlterUserScramCredentialsResult),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[AlterUserScramCredentialsResult] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: Sequence[AlterUserScramCredentialsResult] = results
