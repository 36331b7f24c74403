"""CreateDelegationTokenRequest and CreateDelegationTokenResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class CreatableRenewers(Message):
    __slots__ = (
        "principal_type",
        "principal_name",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("principal_type", "string"),
        FieldSpec("principal_name", "string"),
    )

    def __init__(self, *, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


class CreateDelegationTokenRequest(Message):
    __slots__ = (
        "owner_principal_type",
        "owner_principal_name",
        "renewers",
        "max_lifetime_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("owner_principal_type", "string", first_version=3, first_nullable_version=3),
        FieldSpec("owner_principal_name", "string", first_version=3, first_nullable_version=3),
        FieldSpec("renewers", "struct", is_array=True, item=CreatableRenewers),
        FieldSpec("max_lifetime_ms", "int64"),
    )

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: Sequence[CreatableRenewers] = (),
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        self.owner_principal_name: str | None = owner_principal_name
        self.renewers: Sequence[CreatableRenewers] = renewers
        self.max_lifetime_ms: int = max_lifetime_ms


class CreateDelegationTokenResponse(Message):
    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("principal_type", "string"),
        FieldSpec("principal_name", "string"),
        FieldSpec("token_requester_principal_type", "string", first_version=3),
        FieldSpec("token_requester_principal_name", "string", first_version=3),
        FieldSpec("issue_timestamp_ms", "int64"),
        FieldSpec("expiry_timestamp_ms", "int64"),
        FieldSpec("max_timestamp_ms", "int64"),
        FieldSpec("token_id", "string"),
        FieldSpec("hmac", "bytes"),
        FieldSpec("throttle_time_ms", "int32"),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp_ms: int = issue_timestamp_ms
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.max_timestamp_ms: int = max_timestamp_ms
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.throttle_time_ms: int = throttle_time_ms
