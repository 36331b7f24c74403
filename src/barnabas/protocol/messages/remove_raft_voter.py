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
        ("cluster_id", "string", False, 0, 32767, 0, 32767, None, None),
        ("voter_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("voter_directory_id", "uuid", False, 0, 32767, 32767, 32767, None, None),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("error_message", "string", False, 0, 32767, 0, 32767, None, None),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
