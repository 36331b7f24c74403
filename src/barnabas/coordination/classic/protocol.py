"""The classic protocol of one shard: handles SyncGroup, Heartbeat and LeaveGroup, and passes on JoinGroup and timers.

Requests arrive decoded, in the form of the newest version; the API handlers fill in fields that older versions lack. Errors of
the whole request are raised as KafkaError.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from msgspec import Struct

from barnabas.coordination.classic.group import ClassicGroup, GroupState
from barnabas.coordination.classic.join import GroupCreated, Joining, StaticMemberReplaced
from barnabas.coordination.classic.rebalance import Rebalance, TimerKey, TimerKind, join_error, sync_response
from barnabas.coordination.group import Group
from barnabas.coordination.group_records import GroupMetadataValue
from barnabas.coordination.result import Caller, CoordinatorResult, GroupConfig, Now, Token, Written, response_error_of
from barnabas.coordination.timers import Timers
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class AssignmentWritten(Struct, Written, frozen=True):
    """The leader's assignment for one generation."""

    group: ClassicGroup
    generation: int
    assignments: Mapping[str, bytes]


class ClassicProtocol:
    """Handles the classic groups in `groups`; ignores those of other types."""

    def __init__(self, config: GroupConfig, groups: MutableMapping[str, Group], timers: Timers[TimerKey]) -> None:
        self._config = config
        self._groups = groups
        self._rebalance = Rebalance(config, timers)
        self._joining = Joining(config, groups, self._rebalance)

    def join(self, request: JoinGroupRequest, caller: Caller, token: Token, now: Now) -> CoordinatorResult:
        return self._joining.join(request, caller, token, now)

    def refusal_of(self, request: JoinGroupRequest) -> ErrorCode | None:
        """The error of a JoinGroup that is wrong for any group."""
        return self._joining.check(request)

    # -- SyncGroup ------------------------------------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest, token: Token) -> CoordinatorResult:
        out = CoordinatorResult()
        group = self._group(request.group_id)
        if group is None or group.is_empty:
            out.reply(token, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            return out
        try:
            self._check_sync(group, request)
        except KafkaError as error:
            out.reply(token, SyncGroupResponse(error_code=error.code))
            return out
        member = group.members[request.member_id]
        self._rebalance.receive_sync(group, member.member_id)
        if group.state is GroupState.STABLE:
            out.reply(token, sync_response(group, member))
            return out
        if member.sync_token is not None:
            # The member repeated its request after a lost connection.
            out.reply(member.sync_token, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_token = token
        if member.member_id == group.leader:
            assignments = {a.member_id: a.assignment for a in request.assignments if a.member_id in group.members}
            out.records.append(group.to_record(assignments))
            out.replays = False
            out.written = AssignmentWritten(group, group.generation, assignments)
        return out

    def _check_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        _check_generation(group, request)
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _receive_assignment(self, event: AssignmentWritten, error: ErrorCode | None, now: Now, out: CoordinatorResult) -> None:
        group = event.group
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != event.generation:
            return  # the group has changed in the meantime
        if error is None:
            self._rebalance.assign(group, event.assignments, now, out)
            return
        code = response_error_of(error)
        self._rebalance.fail_syncs(group, code, now, out)
        self._rebalance.prepare_or_complete(group, f"its assignment could not be written: {code.name}", now, out)

    # -- Heartbeat ------------------------------------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> HeartbeatResponse:
        group = self._group(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        _check_generation(group, request)
        self._rebalance.hear_from(group, group.members[request.member_id], now)
        rebalances = group.state is GroupState.PREPARING_REBALANCE
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE)

    def hear_from(self, group: ClassicGroup, member_id: str, now: Now) -> None:
        """A commit counts as a heartbeat, unless the group is completing a rebalance."""
        member = group.members.get(member_id)
        if member is not None and group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self._rebalance.hear_from(group, member, now)

    # -- LeaveGroup -----------------------------------------------------------------------------------------------------

    def leave(self, request: LeaveGroupRequest, now: Now) -> CoordinatorResult:
        group = self._group(request.group_id)
        if group is None:
            unknown = [_left(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in request.members]
            return CoordinatorResult(LeaveGroupResponse(members=unknown))
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        out = CoordinatorResult()
        responses = [_left(identity, self._remove(group, identity, out)) for identity in request.members]
        out.response = LeaveGroupResponse(members=responses)
        gone = [r.member_id or r.group_instance_id for r in responses if r.error_code == ErrorCode.NONE]
        if gone and group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._rebalance.prepare(group, f"{gone} left", now, out)
        elif gone:
            self._rebalance.maybe_complete(group, now, out)
        return out

    def _remove(self, group: ClassicGroup, identity: MemberIdentity, out: CoordinatorResult) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id and instance_id is not None:  # an administrator removes a static member (KIP-345)
            member_id = group.static_members.get(instance_id, "")
        if member_id in group.pending_joins:
            group.remove(member_id)
            self._rebalance.forget(group, member_id)
            return ErrorCode.NONE
        try:
            group.check_member(member_id, instance_id)
        except KafkaError as error:
            return error.code
        self._rebalance.dismiss(group, group.members[member_id], out)
        return ErrorCode.NONE

    # -- time and the log -----------------------------------------------------------------------------------------------

    def expire(self, key: TimerKey, now: Now) -> CoordinatorResult:
        """The deadline of `key` has come."""
        out = CoordinatorResult()
        group = self._group(key.group_id)
        if group is None or group.state is GroupState.DEAD:
            return out
        match key.kind:
            case TimerKind.SESSION:
                self._rebalance.expire_session(group, key.member_id, now, out)
            case TimerKind.JOIN:
                self._rebalance.expire_join(group, now, out)
            case TimerKind.SYNC:
                self._rebalance.expire_sync(group, now, out)
        return out

    def receive_written(self, event: Written, error: ErrorCode | None, now: Now) -> CoordinatorResult:
        """The records of an earlier outcome are committed, or could not be written because of `error`."""
        out = CoordinatorResult()
        match event:
            case AssignmentWritten():
                self._receive_assignment(event, error, now, out)
            case StaticMemberReplaced():
                self._joining.receive_replaced(event, error, now, out)
            case GroupCreated() if error is not None:
                self._forget(event.group, response_error_of(error), out)
                if event.former is not None:
                    self._groups.setdefault(event.group.group_id, event.former)
        return out

    def receive_downgraded(self, group_id: str, now: Now) -> CoordinatorResult:
        """A consumer group has become a classic one: its members rebalance."""
        out = CoordinatorResult()
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup) and group.state is GroupState.STABLE:
            for member in group.members.values():
                self._rebalance.hear_from(group, member, now)
            self._rebalance.prepare(group, "it was one of consumers", now, out)
        return out

    def receive_upgraded(self, group: ClassicGroup, error: ErrorCode | None, now: Now) -> CoordinatorResult:
        """A classic group has become a consumer group, or the write failed. In both cases the waiting requests have got an
        error."""
        for member in group.members.values():
            group.set_join_token(member, None)
            member.sync_token = None
            if error is not None:
                self._rebalance.hear_from(group, member, now)
        return CoordinatorResult()

    def replay(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Replay a record of a group."""
        if value is None:
            if isinstance(self._groups.get(group_id), ClassicGroup):
                del self._groups[group_id]  # a group of another type stays: it replaced the classic group before this tombstone
        else:
            self._groups[group_id] = ClassicGroup.from_value(group_id, value)

    def receive_loaded(self, now: Now) -> list[CoordinatorResult]:
        """The log was read: the loaded members must send a heartbeat within their sessions."""
        outcomes = []
        for group in self._groups.values():
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self._rebalance.hear_from(group, member, now)
            if len(group.members) > self._config.group_max_size:
                out = CoordinatorResult()
                self._rebalance.prepare(group, "it is larger than group.max.size", now, out)
                outcomes.append(out)
        return outcomes

    def unload(self, now: Now) -> CoordinatorResult:
        """The shard moves away: waiting requests get NOT_COORDINATOR."""
        out = CoordinatorResult()
        for group in self._groups.values():
            if isinstance(group, ClassicGroup):
                self._forget(group, ErrorCode.NOT_COORDINATOR, out)
                group.transition_to(GroupState.DEAD, now.wall_ms)
        return out

    def _forget(self, group: ClassicGroup, code: ErrorCode, out: CoordinatorResult) -> None:
        for member in list(group.members.values()):
            if member.join_token is not None:
                out.reply(member.join_token, join_error(code, member.member_id))
                group.set_join_token(member, None)
            if member.sync_token is not None:
                out.reply(member.sync_token, SyncGroupResponse(error_code=code))
                member.sync_token = None
            self._rebalance.forget(group, member.member_id)
        if code is not ErrorCode.NOT_COORDINATOR and self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]

    def _group(self, group_id: str) -> ClassicGroup | None:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None


def _check_generation(group: ClassicGroup, request: SyncGroupRequest | HeartbeatRequest) -> None:
    """Raises KafkaError unless the request comes from a member of the present generation."""
    if group.state is GroupState.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _differs(asked: str | None, known: str | None) -> bool:
    """Whether a request names another protocol than the group's; only versions 5 and later name one."""
    return asked is not None and known is not None and asked != known


def _left(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
