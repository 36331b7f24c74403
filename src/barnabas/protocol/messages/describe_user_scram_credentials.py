"""DescribeUserScramCredentialsRequest and DescribeUserScramCredentialsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class UserName(Message):
    __slots__ = ("name",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("name", "string"),)

    def __init__(self, *, name: str = "") -> None:
        self.name: str = name


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("users", "struct", is_array=True, first_nullable_version=0, item=UserName),
    )

    def __init__(self, *, users: Sequence[UserName] | None = ()) -> None:
        self.users: Sequence[UserName] | None = users


class CredentialInfo(Message):
    __slots__ = (
        "mechanism",
        "iterations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("mechanism", "int8"),
        FieldSpec("iterations", "int32"),
    )

    def __init__(self, *, mechanism: int = 0, iterations: int = 0) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations


class DescribeUserScramCredentialsResult(Message):
    __slots__ = (
        "user",
        "error_code",
        "error_message",
        "credential_infos",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("user", "string"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("credential_infos", "struct", is_array=True, item=CredentialInfo),
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: Sequence[CredentialInfo] = (),
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: Sequence[CredentialInfo] = credential_infos


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("results", "struct", is_array=True, item=DescribeUserScramCredentialsResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: Sequence[DescribeUserScramCredentialsResult] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: Sequence[DescribeUserScramCredentialsResult] = results
