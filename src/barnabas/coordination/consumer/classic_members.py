"""Members of the classic protocol in a consumer group: translates their requests.

Rules
  1. A generation is a member's epoch. JoinGroup is a full heartbeat with an immediate answer; SyncGroup returns the member's
     assignment; Heartbeat returns REBALANCE_IN_PROGRESS when the member must join again.
  2. A member that must join again, or must send SyncGroup, has its rebalance timeout to do so; after that the coordinator
     removes it.
  3. A member's subscription lists its partitions (KIP-429); an eager member has given up all partitions when it joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from barnabas.coordination.classic.rebalance import join_error
from barnabas.coordination.classic.subscription import CONSUMER_PROTOCOL_TYPE
from barnabas.coordination.consumer.deadlines import Changed, ConsumerTimerKey, Deadline
from barnabas.coordination.consumer.draft import Draft
from barnabas.coordination.consumer.embedded_protocol import by_id, read_subscription, write_assignment
from barnabas.coordination.consumer.group import NO_ASSIGNMENT, ConsumerGroup
from barnabas.coordination.consumer.member import ClassicSide, ConsumerMember, MemberState
from barnabas.coordination.consumer.member_checks import check_static
from barnabas.coordination.result import Caller, CoordinatorResult, Now, Token
from barnabas.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordination.consumer.protocol import ConsumerProtocol

KNOWN_ID_FROM_VERSION = 4  # KIP-394


class ClassicMembers:
    """Serves the classic members of the consumer groups of one shard."""

    def __init__(self, protocol: ConsumerProtocol) -> None:
        self._protocol = protocol
        self._timers = protocol.timers
        self._topics = protocol.topics

    # -- JoinGroup ------------------------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, token: Token, now: Now) -> CoordinatorResult:
        out = CoordinatorResult()
        try:
            out.reply(token, self._join(group, request, caller, now, out))
        except KafkaError as error:
            out = CoordinatorResult()
            out.reply(token, join_error(error.code, request.member_id))
        return out

    def _join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Now, out: CoordinatorResult
    ) -> JoinGroupResponse:
        instance_id = request.group_instance_id
        static = None if instance_id is None else group.static_member(instance_id)
        if static is None and request.member_id not in group.members:
            self._protocol.check_room(group)
        protocols = tuple((p.name, p.metadata) for p in request.protocols)
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not _is_common(group, request.member_id, protocols):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.member_id and instance_id is None and caller.api_version >= KNOWN_ID_FROM_VERSION:
            return join_error(ErrorCode.MEMBER_ID_REQUIRED, caller.fresh_id)
        try:
            # parse all: a downgrade may choose any protocol
            subscription, *_ = [read_subscription(data) for _, data in protocols]
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from error
        draft = Draft(group, self._topics, now)
        before = self._member_of(draft, static, request, caller)
        timeout_ms = request.rebalance_timeout_ms
        after = replace(
            before,
            instance_id=before.instance_id if instance_id is None else instance_id,
            rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
            rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            topics=frozenset(subscription.topics),
            regex="",
            client_id=caller.client_id,
            client_host=caller.client_host,
            classic=ClassicSide(request.session_timeout_ms, protocols),
        )
        draft.update(before, before if after == before else after)
        owned = by_id(((p.topic, p.partitions) for p in subscription.owned_partitions), self._topics)
        interval_ms = self._topics.settings_of(group.group_id).assignment_interval_ms
        member = self._protocol.carry_on(draft, after, owned, interval_ms, now)
        out.records += draft.records
        out.written = Changed(group.group_id)
        self._timers.cancel(self._key(Deadline.JOIN, group, member))
        group.to_join.discard(member.member_id)
        self._schedule(Deadline.SESSION, group, member, request.session_timeout_ms, now)
        self._schedule(Deadline.SYNC, group, member, member.rebalance_timeout_ms, now)
        return JoinGroupResponse(
            member_id=member.member_id,
            generation_id=member.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=protocols[0][0],
        )

    def _member_of(
        self, draft: Draft, static: ConsumerMember | None, request: JoinGroupRequest, caller: Caller
    ) -> ConsumerMember:
        group, instance_id = draft.group, request.group_instance_id
        if request.member_id:
            if instance_id is not None:
                return check_static(group, static, request.member_id, instance_id)
            return group.members.get(request.member_id) or ConsumerMember(request.member_id)
        if static is not None:
            return draft.replace_static(static, caller.fresh_id)
        return ConsumerMember(caller.fresh_id)

    # -- SyncGroup and Heartbeat ----------------------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, token: Token, now: Now) -> CoordinatorResult:
        out = CoordinatorResult()
        try:
            response = self._sync(group, request, now)
        except KafkaError as error:
            response = SyncGroupResponse(error_code=error.code)
        out.reply(token, response)
        return out

    def _sync(self, group: ConsumerGroup, request: SyncGroupRequest, now: Now) -> SyncGroupResponse:
        member, classic = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        name, subscription = classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member, now)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.cancel(self._key(Deadline.SYNC, group, member))
        self._schedule(Deadline.SESSION, group, member, classic.session_timeout_ms, now)
        assignment = write_assignment(member.assigned, self._topics, subscription)
        return SyncGroupResponse(protocol_type=CONSUMER_PROTOCOL_TYPE, protocol_name=name, assignment=assignment)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now: Now) -> HeartbeatResponse:
        member, classic = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._schedule(Deadline.SESSION, group, member, classic.session_timeout_ms, now)
        if not _has_to_join(group, member):
            return HeartbeatResponse()
        self._expect_join(group, member, now)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        if member.member_id not in group.to_join:
            group.to_join.add(member.member_id)
            self._schedule(Deadline.JOIN, group, member, member.rebalance_timeout_ms, now)

    def _key(self, kind: Deadline, group: ConsumerGroup, member: ConsumerMember) -> ConsumerTimerKey:
        return ConsumerTimerKey(kind, group.group_id, member.member_id)

    def _schedule(self, kind: Deadline, group: ConsumerGroup, member: ConsumerMember, timeout_ms: int, now: Now) -> None:
        self._timers.schedule(self._key(kind, group, member), now.steady_ms + max(timeout_ms, 0))

    # -- LeaveGroup -----------------------------------------------------------------------------------------------------

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, now: Now) -> CoordinatorResult:
        """Handles members of both protocols: an administrator also removes members by this request."""
        gone: dict[str, ConsumerMember] = {}
        answers = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaving(group, identity)
                gone[member.member_id] = member
            except KafkaError as error:
                code = error.code
            answers.append(
                MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
            )
        out = self._protocol.dismiss(group, list(gone.values()), "they left", now) if gone else CoordinatorResult()
        out.response = LeaveGroupResponse(members=answers)
        return out


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.member(identity.member_id)
    known = group.static_member(instance_id)
    return check_static(group, known, identity.member_id or (known.member_id if known else ""), instance_id)


def _is_common(group: ConsumerGroup, member_id: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
    """Whether all other classic members support one of `protocols`."""
    others = [m.classic for m in group.members.values() if m.classic is not None and m.member_id != member_id]
    return any(all(name in dict(classic.protocols) for classic in others) for name, _ in protocols)


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[ConsumerMember, ClassicSide]:
    if instance_id is not None:
        member = check_static(group, group.static_member(instance_id), member_id, instance_id)
    else:
        member = group.member(member_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    return member, member.classic


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _has_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether the group has a later epoch, the member has a partition to give up, or all its missing partitions are free."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    target = group.target.get(member.member_id, NO_ASSIGNMENT)
    missing = ((t, p) for t, partitions in target.items() for p in partitions if p not in member.assigned.get(t, {}))
    return all(group.owner_of(t, p) is None for t, p in missing)
