"""Drives a shard without asyncio: carries out its outcomes at once, on a log that is a list, and keeps the answers by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.group_shard import GroupShard
from barnabas.coordination.result import CoordinatorResult
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from barnabas.testing.no_topics import NoTopics
from tests.coordination.support import Config, ManualClock, caller, subscription

GROUP = "g"


@dataclass
class Driver:
    """One shard, its clock and its log. `refusal` makes the log refuse everything."""

    config: Config = field(default_factory=Config)
    clock: ManualClock = field(default_factory=ManualClock)
    log: list[Record] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refusal: ErrorCode | None = None
    topics: Any = field(default_factory=NoTopics)  # the metadata that consumer groups see
    _ids: int = 0

    def __post_init__(self) -> None:
        self.shard = GroupShard(self.config, self.clock.now(), self.topics)

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def carry_out(self, outcome: CoordinatorResult) -> Any:
        self.notes += outcome.notes
        error: ErrorCode | None = None
        if outcome.records and self.refusal is not None:
            error = self.refusal
        else:
            self.log += outcome.records
            if outcome.replays:
                for record in outcome.records:
                    self.shard.replay(record)
        for token, response in outcome.replies:
            assert isinstance(token, str)
            assert token not in self.answers, f"{token} answered twice"
            self.answers[token] = response if error is None else error
        if outcome.written is not None:
            self.carry_out(self.shard.receive_written(outcome.written, error, self.clock.now()))
        self.shard.validate()
        return outcome.response

    def advance(self, passed_ms: int) -> None:
        """Let time pass, stopping at every deadline on the way."""
        end = self.clock.steady + passed_ms
        while self.clock.steady < end:
            step = min(max(self.shard.next_deadline_ms() - self.clock.steady, 1), end - self.clock.steady)
            self.clock.advance(step)
            for outcome in self.shard.expire(self.clock.now()):
                self.carry_out(outcome)

    def settle(self) -> None:
        """Fire what is due now."""
        for outcome in self.shard.expire(self.clock.now()):
            self.carry_out(outcome)

    def restarted(self) -> Driver:
        """Another driver that knows only the log."""
        other = Driver(self.config, self.clock, list(self.log), topics=self.topics)
        other._ids = self._ids
        for record in self.log:
            other.shard.replay(record)
        for outcome in other.shard.receive_loaded(self.clock.now()):
            other.carry_out(outcome)
        return other

    # -- requests -------------------------------------------------------------------------------------------------------

    def send_join(
        self,
        token: str,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] | Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        version: int = 9,
        group_id: str = GROUP,
    ) -> None:
        """Send a JoinGroup; its answer will be under `token`."""
        self._ids += 1
        metadata = protocols if isinstance(protocols, Mapping) else dict.fromkeys(protocols, subscription(["t"]))
        request = JoinGroupRequest(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in metadata.items()],
        )
        self.answers.pop(token, None)
        self.carry_out(self.shard.join(request, caller(version, str(self._ids)), token, self.clock.now()))

    def send_sync(
        self,
        token: str,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = None,
    ) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items()],
        )
        self.answers.pop(f"{token}/sync", None)
        self.carry_out(self.shard.sync(request, f"{token}/sync", self.clock.now()))

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation, group_instance_id=instance_id)
        return ErrorCode(self.shard.heartbeat(request, self.clock.now()).error_code)

    def leave(self, *members: str | tuple[str, str]) -> list[ErrorCode]:
        """Leave by member id, or by pairs of member id and instance id."""
        identities = [
            MemberIdentity(member_id=m) if isinstance(m, str) else MemberIdentity(member_id=m[0], group_instance_id=m[1])
            for m in members
        ]
        response = self.carry_out(self.shard.leave(LeaveGroupRequest(group_id=GROUP, members=identities), self.clock.now()))
        return [ErrorCode(m.error_code) for m in response.members]

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        *,
        topic: str = "t",
        partition: int = 0,
        metadata: str | None = "",
        retention_ms: int = -1,
        at_ms: int = -1,
        version: int = 9,
        group_id: str = GROUP,
        topic_id: UUID | None = None,
    ) -> ErrorCode:
        committed = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata, commit_timestamp=at_ms
        )
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id or ZERO_UUID, partitions=[committed])],
        )
        response = self.carry_out(self.shard.commit_offsets(request, version, self.clock.now()))
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def fetch(self, topic: str = "t", partition: int = 0, group_id: str = GROUP) -> int:
        asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        response = self.shard.fetch_offsets(OffsetFetchRequestGroup(group_id=group_id, topics=asked))
        return int(response.topics[0].partitions[0].committed_offset)

    # -- client actions -------------------------------------------------------------------------------------------------

    def joined(self, token: str) -> JoinGroupResponse:
        response = self.answers[token]
        assert isinstance(response, JoinGroupResponse)
        return response

    def join_error(self, token: str) -> ErrorCode:
        return ErrorCode(self.joined(token).error_code)

    def synced(self, token: str) -> SyncGroupResponse:
        response = self.answers[f"{token}/sync"]
        assert isinstance(response, SyncGroupResponse)
        return response

    def new_id(self, token: str, **how: Any) -> str:
        """The id that a new dynamic member is told."""
        self.send_join(token, **how)
        assert self.join_error(token) is ErrorCode.MEMBER_ID_REQUIRED
        return str(self.joined(token).member_id)

    def stable(self, *tokens: str, **how: Any) -> list[str]:
        """A stable group of new members; the first leads, and everybody is assigned their own token. Member ids come back."""
        ids = {token: self.new_id(token, **how) for token in tokens}
        for token, member_id in ids.items():
            self.send_join(token, member_id, **how)
        self.settle()
        self.assign(ids)
        return list(ids.values())

    def assign(self, ids: Mapping[str, str], **how: Any) -> None:
        """All members of `ids` (token to member id) ask for the assignment that the leader sends."""
        group = self.group()
        for token, member_id in sorted(ids.items(), key=lambda item: item[1] == group.leader):
            leads = member_id == group.leader
            shares = {m: t.encode() for t, m in ids.items()} if leads else {}
            self.send_sync(token, member_id, group.generation, shares, **how)
