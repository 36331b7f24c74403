"""UpdateRaftVoterRequest and UpdateRaftVoterResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class Listener(Message):
    __slots__ = (
        "name",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("host", "string", False, 0, 32767, 32767, 32767, None, None),
        ("port", "uint16", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


class KRaftVersionFeature(Message):
    __slots__ = (
        "min_supported_version",
        "max_supported_version",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("min_supported_version", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("max_supported_version", "int16", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version


class UpdateRaftVoterRequest(Message):
    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "k_raft_version_feature",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("cluster_id", "string", False, 0, 32767, 0, 32767, None, None),
        ("current_leader_epoch", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("voter_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("voter_directory_id", "uuid", False, 0, 32767, 32767, 32767, None, None),
        ("listeners", "struct", True, 0, 32767, 32767, 32767, None, Listener),
        ("k_raft_version_feature", "struct", False, 0, 32767, 32767, 32767, None, KRaftVersionFeature),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = ZERO_UUID,
        listeners: Sequence[Listener] = (),
        k_raft_version_feature: KRaftVersionFeature | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.current_leader_epoch: int = current_leader_epoch
        self.voter_id: int = voter_id
        self.voter_directory_id: UUID = voter_directory_id
        self.listeners: Sequence[Listener] = listeners
        self.k_raft_version_feature: KRaftVersionFeature = (
            KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
        )


class CurrentLeader(Message):
    __slots__ = (
        "leader_id",
        "leader_epoch",
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("leader_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("leader_epoch", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("host", "string", False, 0, 32767, 32767, 32767, None, None),
        ("port", "int32", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1, host: str = "", port: int = 0) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.host: str = host
        self.port: int = port


class UpdateRaftVoterResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "current_leader",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("current_leader", "struct", False, 0, 32767, 32767, 32767, 0, CurrentLeader),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, current_leader: CurrentLeader | None = None) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.current_leader: CurrentLeader = CurrentLeader() if current_leader is None else current_leader
