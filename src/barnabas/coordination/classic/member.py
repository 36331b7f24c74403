"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from barnabas.coordination.group_records import MemberMetadata
from barnabas.coordination.result import Token


class ClassicMember(Struct):
    """The properties that a member sent, and the tokens of its waiting requests.

    `protocols` holds its assignors, best first, each with metadata for the leader. `join_token` and `sync_token` are requests
    that wait for the rest of the group; ClassicGroup counts the join tokens, so only it sets them.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    assignment: bytes = b""
    join_token: Token | None = None
    sync_token: Token | None = None
    is_new: bool = False  # a member cannot send heartbeats until its first JoinGroup is answered

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def waits(self) -> bool:
        """Whether the member's session is suspended because the member waits for a response. The session of a joining member
        goes on: only the end of its session shows that such a member is gone."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def speaks(self, protocols: dict[str, bytes]) -> bool:
        """Whether the member sent the same protocols again, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: Container[str]) -> str | None:
        """The candidate that the member prefers; None if it supports none."""
        return next((name for name in self.protocols if name in candidates), None)

    def to_record(self, protocol: str, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.protocols[protocol],
            assignment=assignment,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol_type: str, protocol: str) -> ClassicMember:
        """A member after loading: only the chosen protocol is stored."""
        known = record.rebalance_timeout_ms > 0  # records of version 0 have no timeout, and Kafka stores a 0 that a client sent
        return cls(
            member_id=record.member_id,
            instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=record.rebalance_timeout_ms if known else record.session_timeout_ms,
            session_timeout_ms=record.session_timeout_ms,
            protocol_type=protocol_type,
            protocols={protocol: record.subscription},
            assignment=record.assignment,
        )
