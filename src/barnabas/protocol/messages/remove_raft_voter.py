"""RemoveRaftVoterRequest and RemoveRaftVoterResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class RemoveRaftVoterRequest(Message):
    __slots__ = (
        "cluster_id",
        "voter_id",
        "voter_directory_id",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("cluster_id", "string", first_nullable_version=0),
        FieldSpec("voter_id", "int32"),
        FieldSpec("voter_directory_id", "uuid"),
    )

    def __init__(self, *, cluster_id: str | None = "", voter_id: int = 0, voter_directory_id: UUID = ZERO_UUID) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.voter_directory_id: UUID = voter_directory_id


class RemoveRaftVoterResponse(Message):
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
