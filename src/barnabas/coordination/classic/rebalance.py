"""The rebalance of a classic group: prepare, collect joins, start the generation, wait for the assignment.

Owns the timers of classic groups. All methods change the group at once and add their effects to a `CoordinatorResult`.

Rules
  1. A rebalance of an empty group waits `group.initial.rebalance.delay.ms`. If more members join, it waits as long again, but
     in total at most the longest rebalance timeout. Any other rebalance ends as soon as every member and every pending one has
     joined.
  2. At the timeout, dynamic members that have not joined are removed; static ones stay, since they may be restarting (KIP-345).
  3. The session of a member with a waiting join or sync is suspended; it starts again with the response.
  4. A member that got its generation but does not send SyncGroup is removed after the rebalance timeout (KAFKA-13435).

Ugly: between a leader's SyncGroup and the commit of its record the group is still completing and may change;
`AssignmentWritten` therefore names its generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from barnabas.coordination.classic.group import ClassicGroup, GroupState
from barnabas.coordination.classic.member import ClassicMember
from barnabas.coordination.result import CoordinatorResult, GroupConfig, Now
from barnabas.coordination.timers import Timers
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupResponse

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000  # as in Kafka; a new member cannot send heartbeats while its first join waits
LEAST_WAIT_MS = 1_000  # used if all members are static and absent, because a member may set a rebalance timeout of 1 ms


class TimerKind(IntEnum):
    SESSION = 0  # session of a member, or of a pending id
    JOIN = 1  # timeout for members to join
    SYNC = 2  # timeout for members to send SyncGroup


class TimerKey(NamedTuple):
    kind: TimerKind
    group_id: str
    member_id: str = ""


def join_response(group: ClassicGroup, member_id: str, *, with_members: bool, skip_assignment: bool = False) -> JoinGroupResponse:
    """The response that puts a member into the current generation."""
    protocol = group.protocol or ""
    members = group.members.values() if with_members else ()
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=[
            JoinGroupResponseMember(member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.protocols[protocol])
            for m in members
        ],
    )


def join_error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


class Rebalance:
    """The rebalances of the groups of one shard."""

    def __init__(self, config: GroupConfig, timers: Timers[TimerKey]) -> None:
        self._config = config
        self._timers = timers

    # -- sessions -------------------------------------------------------------------------------------------------------

    def hear_from(self, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
        """The member is alive: restart its session."""
        key = TimerKey(TimerKind.SESSION, group.group_id, member.member_id)
        self._timers.schedule(key, now.steady_ms + member.session_timeout_ms)

    def expect_join(self, group: ClassicGroup, member_id: str, timeout_ms: int, now: Now) -> None:
        """Start the session of a joining member or a pending id, with `timeout_ms`."""
        self._timers.schedule(TimerKey(TimerKind.SESSION, group.group_id, member_id), now.steady_ms + timeout_ms)

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member_id))

    # -- from any state to joining --------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str, now: Now, out: CoordinatorResult) -> None:
        """Members changed: start a rebalance, or check whether the current one is complete."""
        if group.is_in(GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare(group, reason, now, out)
        else:
            self.maybe_complete(group, now, out)

    def prepare(self, group: ClassicGroup, reason: str, now: Now, out: CoordinatorResult) -> None:
        """Start a rebalance: members that wait for an assignment must join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now, out)
        group.pending_syncs.clear()
        self._timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
        initial = group.is_empty
        group.transition_to(GroupState.PREPARING_REBALANCE, now.wall_ms)
        out.notes.append(f"group {group.group_id} rebalances after generation {group.generation}: {reason}")
        if initial:
            group.member_added = False
            delay_ms = self._config.group_initial_rebalance_delay_ms
            self._delay_initial(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), now)
        elif group.all_joined:
            self.complete_join(group, now, out)
        else:
            self._schedule_join(group, group.rebalance_timeout_ms, now)

    def _delay_initial(self, group: ClassicGroup, delay_ms: int, left_ms: int, now: Now) -> None:
        group.initial_delay_ms, group.initial_delay_left_ms = delay_ms, left_ms
        self._schedule_join(group, delay_ms, now)

    def _schedule_join(self, group: ClassicGroup, delay_ms: int, now: Now) -> None:
        self._timers.schedule(TimerKey(TimerKind.JOIN, group.group_id), now.steady_ms + delay_ms)

    # -- from joining to a generation -----------------------------------------------------------------------------------

    def maybe_complete(self, group: ClassicGroup, now: Now, out: CoordinatorResult) -> None:
        """End the joining if no member is missing; an initial rebalance ends only by its delay."""
        joining = group.state is GroupState.PREPARING_REBALANCE and group.previous_state is not GroupState.EMPTY
        if joining and group.all_joined:
            self.complete_join(group, now, out)

    def expire_join(self, group: ClassicGroup, now: Now, out: CoordinatorResult) -> None:
        """The timeout of joining has expired."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        left_ms = group.initial_delay_left_ms
        if group.previous_state is GroupState.EMPTY and group.member_added and left_ms:
            group.member_added = False
            delay_ms = min(self._config.group_initial_rebalance_delay_ms, left_ms)
            self._delay_initial(group, delay_ms, max(left_ms - group.initial_delay_ms, 0), now)
        else:
            self.complete_join(group, now, out)

    def complete_join(self, group: ClassicGroup, now: Now, out: CoordinatorResult) -> None:
        """End the joining with the members that have joined."""
        self._timers.cancel(TimerKey(TimerKind.JOIN, group.group_id))
        late = [m.member_id for m in group.members.values() if m.join_token is None and not m.is_static]
        for member_id in late:
            group.remove(member_id)
            self.forget(group, member_id)
        if late:
            out.notes.append(f"group {group.group_id} lost members that did not join again: {late}")
        if group.members and not group.elect_joined_leader():
            # All members are static and absent. The group waits until they return or their sessions expire.
            self._schedule_join(group, max(group.rebalance_timeout_ms, LEAST_WAIT_MS), now)
            return
        group.start_next_generation(now.wall_ms)
        if group.is_empty:
            out.notes.append(f"group {group.group_id} is empty at generation {group.generation}")
            out.records.append(group.to_record({}))
            out.replays = False
        else:
            self._hand_out_generation(group, now, out)

    def _hand_out_generation(self, group: ClassicGroup, now: Now, out: CoordinatorResult) -> None:
        out.notes.append(f"group {group.group_id} has generation {group.generation} with {len(group.members)} members")
        for member in group.members.values():
            if member.join_token is not None:
                leads = member.member_id == group.leader
                out.reply(member.join_token, join_response(group, member.member_id, with_members=leads))
                group.set_join_token(member, None)
            self.hear_from(group, member, now)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self._timers.schedule(TimerKey(TimerKind.SYNC, group.group_id), now.steady_ms + group.rebalance_timeout_ms)

    # -- from a generation to its assignment ----------------------------------------------------------------------------

    def receive_sync(self, group: ClassicGroup, member_id: str) -> None:
        """The member sent SyncGroup."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))

    def expire_sync(self, group: ClassicGroup, now: Now, out: CoordinatorResult) -> None:
        """The timeout of SyncGroup has expired."""
        if not group.pending_syncs or not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        late = [m for m in group.members.values() if m.member_id in group.pending_syncs]
        for member in late:
            self.dismiss(group, member, out)
        self.prepare(group, f"{[m.member_id for m in late]} never asked for their assignment", now, out)

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes], now: Now, out: CoordinatorResult) -> None:
        """The leader's assignment is committed: all members get theirs."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            self._answer_sync(group, member, ErrorCode.NONE, now, out)
        group.transition_to(GroupState.STABLE, now.wall_ms)

    def fail_syncs(self, group: ClassicGroup, code: ErrorCode, now: Now, out: CoordinatorResult) -> None:
        """This generation gets no assignment: answer the waiting SyncGroup requests with `code`."""
        for member in group.members.values():
            member.assignment = b""
            self._answer_sync(group, member, code, now, out)

    def _answer_sync(self, group: ClassicGroup, member: ClassicMember, code: ErrorCode, now: Now, out: CoordinatorResult) -> None:
        if member.sync_token is not None:
            fine = code is ErrorCode.NONE
            out.reply(member.sync_token, sync_response(group, member) if fine else SyncGroupResponse(error_code=code))
            member.sync_token = None
            self.hear_from(group, member, now)

    # -- members that leave ---------------------------------------------------------------------------------------------

    def dismiss(self, group: ClassicGroup, member: ClassicMember, out: CoordinatorResult) -> None:
        """Remove a member. If one of its requests waits, the response tells the member to join again with another id."""
        if member.join_token is not None:
            out.reply(member.join_token, join_error(ErrorCode.UNKNOWN_MEMBER_ID))
            group.set_join_token(member, None)
        if member.sync_token is not None:
            out.reply(member.sync_token, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            member.sync_token = None
        self.forget(group, member.member_id)
        group.remove(member.member_id)

    def fence_sync(self, member: ClassicMember, out: CoordinatorResult) -> None:
        """Answer a member that was replaced while it waited for its assignment."""
        out.reply(member.sync_token, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        member.sync_token = None

    def expire_session(self, group: ClassicGroup, member_id: str, now: Now, out: CoordinatorResult) -> None:
        """The session of a member or of a pending id has expired."""
        member = group.members.get(member_id)
        if member is None:
            if member_id in group.pending_joins:
                group.remove(member_id)
                self.complete_if_all_joined(group, now, out)
        elif not member.waits:
            self.dismiss(group, member, out)
            out.notes.append(f"group {group.group_id} lost member {member_id}: its session ran out")
            if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self.prepare(group, f"the session of {member_id} ran out", now, out)
            else:
                self.complete_if_all_joined(group, now, out)

    def complete_if_all_joined(self, group: ClassicGroup, now: Now, out: CoordinatorResult) -> None:
        """End the joining if the last missing member has joined or left; this ends even an initial rebalance."""
        if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group, now, out)


def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment)
