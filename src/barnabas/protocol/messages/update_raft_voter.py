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
        FieldSpec("name", "string"),
        FieldSpec("host", "string"),
        FieldSpec("port", "uint16"),
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
        FieldSpec("min_supported_version", "int16"),
        FieldSpec("max_supported_version", "int16"),
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
        FieldSpec("cluster_id", "string", first_nullable_version=0),
        FieldSpec("current_leader_epoch", "int32"),
        FieldSpec("voter_id", "int32"),
        FieldSpec("voter_directory_id", "uuid"),
        FieldSpec("listeners", "struct", is_array=True, item=Listener),
        FieldSpec("k_raft_version_feature", "struct", item=KRaftVersionFeature),
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
        FieldSpec("leader_id", "int32"),
        FieldSpec("leader_epoch", "int32"),
        FieldSpec("host", "string"),
        FieldSpec("port", "int32"),
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
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("current_leader", "struct", tag=0, item=CurrentLeader),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, current_leader: CurrentLeader | None = None) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.current_leader: CurrentLeader = CurrentLeader() if current_leader is None else current_leader
