"""DescribeDelegationTokenRequest and DescribeDelegationTokenResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribeDelegationTokenOwner(Message):
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


class DescribeDelegationTokenRequest(Message):
    __slots__ = ("owners",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("owners", "struct", is_array=True, first_nullable_version=0, item=DescribeDelegationTokenOwner),
    )

    def __init__(self, *, owners: Sequence[DescribeDelegationTokenOwner] | None = ()) -> None:
        self.owners: Sequence[DescribeDelegationTokenOwner] | None = owners


class DescribedDelegationTokenRenewer(Message):
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


class DescribedDelegationToken(Message):
    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("principal_type", "string"),
        FieldSpec("principal_name", "string"),
        FieldSpec("token_requester_principal_type", "string", first_version=3),
        FieldSpec("token_requester_principal_name", "string", first_version=3),
        FieldSpec("issue_timestamp", "int64"),
        FieldSpec("expiry_timestamp", "int64"),
        FieldSpec("max_timestamp", "int64"),
        FieldSpec("token_id", "string"),
        FieldSpec("hmac", "bytes"),
        FieldSpec("renewers", "struct", is_array=True, item=DescribedDelegationTokenRenewer),
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: Sequence[DescribedDelegationTokenRenewer] = (),
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp: int = issue_timestamp
        self.expiry_timestamp: int = expiry_timestamp
        self.max_timestamp: int = max_timestamp
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.renewers: Sequence[DescribedDelegationTokenRenewer] = renewers


class DescribeDelegationTokenResponse(Message):
    __slots__ = (
        "error_code",
        "tokens",
        "throttle_time_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 2
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("tokens", "struct", is_array=True, item=DescribedDelegationToken),
        FieldSpec("throttle_time_ms", "int32"),
    )

    def __init__(
        self, *, error_code: int = 0, tokens: Sequence[DescribedDelegationToken] = (), throttle_time_ms: int = 0
    ) -> None:
        self.error_code: int = error_code
        self.tokens: Sequence[DescribedDelegationToken] = tokens
        self.throttle_time_ms: int = throttle_time_ms
