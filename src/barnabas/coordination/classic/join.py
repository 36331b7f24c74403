"""JoinGroup: admits members and assigns their ids.

Rules
  1. A joining dynamic member first gets its id and joins again with it (KIP-394, from version 4 on); until then it is
     `pending`, and a rebalance waits for it. Older clients are members at once.
  2. A static member without an id replaces its predecessor, which is fenced. If the group is stable and would choose the same
     protocol, nothing else changes: no rebalance, the same generation, the same assignment (KIP-345). From version 9 on, the
     response tells a leader that comes back like this not to assign (KIP-814).
  3. In a stable group, a follower with unchanged metadata gets the current generation. The group rebalances if the leader joins
     again, or if a member has changed metadata.
  4. The first JoinGroup creates the group and its record, even if that request is refused.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from msgspec import Struct

from barnabas.coordination.classic.group import ClassicGroup, GroupState
from barnabas.coordination.classic.member import ClassicMember
from barnabas.coordination.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalance, join_error, join_response
from barnabas.coordination.group import Group, GroupType
from barnabas.coordination.group_records import is_too_long
from barnabas.coordination.result import Caller, CoordinatorResult, GroupConfig, Now, Token, Written, response_error_of
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupRequest

KNOWN_ID_FROM_VERSION = 4  # KIP-394
MAX_PENDING_JOINS = 10_000  # unused member ids of one group: a client that requests more does not use them
MAX_CLIENT_ID_IN_MEMBER_ID = 1_000  # characters; the rest is cut off, because a member id must fit into a record
SKIP_ASSIGNMENT_FROM_VERSION = 9  # KIP-814


class GroupCreated(Struct, Written, frozen=True):
    """A group was created; it may have replaced an empty one of another type."""

    group: ClassicGroup
    former: Group | None


class StaticMemberReplaced(Struct, Written, frozen=True):
    """A static member replaced its predecessor in a stable group; holds the former state for the case that the write fails."""

    group: ClassicGroup
    member: ClassicMember
    former_id: str
    former_leader: str
    former_protocols: dict[str, bytes]
    former_rebalance_timeout_ms: int
    former_session_timeout_ms: int
    skips_assignment: bool  # whether the client knows the field skip_assignment


class Joining:
    """Adds members to the classic groups of one shard."""

    def __init__(self, config: GroupConfig, groups: MutableMapping[str, Group], rebalance: Rebalance) -> None:
        self._config = config
        self._groups = groups
        self._rebalance = rebalance

    def join(self, request: JoinGroupRequest, caller: Caller, token: Token, now: Now) -> CoordinatorResult:
        """Handle a request; the response goes to `token`, perhaps much later."""
        out = CoordinatorResult()
        refusal = self.check(request)
        if refusal is not None:
            out.reply(token, join_error(refusal, request.member_id))
            return out
        group = self._groups.get(request.group_id)
        former = group if group is not None and group.group_type is not GroupType.CLASSIC and group.is_empty else None
        created = group is None or former is not None
        if group is None or former is not None:
            if request.member_id:
                out.reply(token, join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                return out
            group = self._groups[request.group_id] = ClassicGroup(request.group_id, now.wall_ms)
        if not isinstance(group, ClassicGroup):
            out.reply(token, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
            return out
        self._join_group(_Join(group, request, caller, token, dict(_protocols_of(request))), now, out)
        if created:
            out.records += [] if former is None else former.tombstones()
            out.records.append(group.to_first_record())
            out.replays = False
            out.written = GroupCreated(group, former)
        return out

    def check(self, request: JoinGroupRequest) -> ErrorCode | None:
        """The error of a request that is wrong for any group."""
        if not request.group_id or is_too_long(request.group_id):
            return ErrorCode.INVALID_GROUP_ID
        names = [request.group_instance_id or "", request.protocol_type, *(p.name for p in request.protocols)]
        if any(is_too_long(name) for name in names):
            return ErrorCode.INVALID_REQUEST
        shortest, longest = self._config.group_min_session_timeout_ms, self._config.group_max_session_timeout_ms
        return None if shortest <= request.session_timeout_ms <= longest else ErrorCode.INVALID_SESSION_TIMEOUT

    def _join_group(self, join: _Join, now: Now, out: CoordinatorResult) -> None:
        group, member_id = join.group, join.request.member_id
        if not self._has_room(group, member_id):
            self._turn_away(join, now, out)
        elif group.state is GroupState.DEAD:
            out.reply(join.token, join_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id))
        elif not group.supports(join.request.protocol_type, join.protocols):
            out.reply(join.token, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        elif not member_id:
            self._join_new(join, now, out)
        elif member_id in group.pending_joins and join.request.group_instance_id is None:
            self._add(join, member_id, now, out)
        else:
            self._join_known(join, now, out)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """While members join, only those with a waiting request count. So a group that is too large refuses the last ones to
        join."""
        if group.is_in(GroupState.EMPTY, GroupState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            waits = member is not None and member.join_token is not None
            return waits or group.waiting_joins < self._config.group_max_size
        return member is not None or len(group.members) < self._config.group_max_size

    def _turn_away(self, join: _Join, now: Now, out: CoordinatorResult) -> None:
        group, member_id = join.group, join.request.member_id
        out.reply(join.token, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
        if member_id:
            group.remove(member_id)
            self._rebalance.forget(group, member_id)
            self._rebalance.maybe_complete(group, now, out)

    # -- new members ----------------------------------------------------------------------------------------------------

    def _join_new(self, join: _Join, now: Now, out: CoordinatorResult) -> None:
        group, instance_id = join.group, join.request.group_instance_id
        if instance_id is not None:
            member_id = f"{instance_id}-{join.caller.fresh_id}"
            former_id = group.static_members.get(instance_id)
            if former_id is None:
                self._add(join, member_id, now, out)
            else:
                self._replace(join, former_id, member_id, now, out)
            return
        member_id = f"{join.caller.client_id[:MAX_CLIENT_ID_IN_MEMBER_ID]}-{join.caller.fresh_id}"
        if join.caller.api_version < KNOWN_ID_FROM_VERSION:
            self._add(join, member_id, now, out)
        elif len(group.pending_joins) >= MAX_PENDING_JOINS:
            out.reply(join.token, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
        else:
            group.pending_joins.add(member_id)
            self._rebalance.expect_join(group, member_id, join.request.session_timeout_ms, now)
            out.reply(join.token, join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _add(self, join: _Join, member_id: str, now: Now, out: CoordinatorResult) -> None:
        group, request = join.group, join.request
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=join.caller.client_id,
            client_host=join.caller.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=join.protocols,
            is_new=True,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.member_added = True
        group.add(member, join.token)
        self._rebalance.expect_join(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS, now)
        self._rebalance.prepare_or_complete(group, join.because(f"{member_id} is new"), now, out)

    # -- static members that return -------------------------------------------------------------------------------------

    def _replace(self, join: _Join, former_id: str, member_id: str, now: Now, out: CoordinatorResult) -> None:
        group = join.group
        member = group.members[former_id]
        self._fence(group, member, out)
        former = StaticMemberReplaced(
            group=group,
            member=member,
            former_id=former_id,
            former_leader=group.leader or "",
            former_protocols=member.protocols,
            former_rebalance_timeout_ms=member.rebalance_timeout_ms,
            former_session_timeout_ms=member.session_timeout_ms,
            skips_assignment=join.caller.api_version >= SKIP_ASSIGNMENT_FROM_VERSION,
        )
        self._rebalance.forget(group, former_id)
        group.replace_static(former_id, member_id)
        join.update(member)
        group.set_join_token(member, join.token)
        self._rebalance.hear_from(group, member, now)
        out.notes.append(f"group {group.group_id}: {member_id} replaces {former_id}")
        if group.state is GroupState.STABLE and group.choose_protocol() == group.protocol:
            out.records.append(group.to_record({m.member_id: m.assignment for m in group.members.values()}))
            out.replays = False
            out.written = former
        elif group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            # In COMPLETING_REBALANCE the leader may assign to the former id. The replacing member would then get nothing.
            self._rebalance.prepare(group, join.because(f"{member_id} is back"), now, out)
        else:
            self._rebalance.maybe_complete(group, now, out)

    def _fence(self, group: ClassicGroup, member: ClassicMember, out: CoordinatorResult) -> None:
        """Refuse a request that waits under the former id: it comes from a second instance, and that instance must stop."""
        if member.join_token is not None:
            out.reply(member.join_token, join_error(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
            group.set_join_token(member, None)
        if member.sync_token is not None:
            self._rebalance.fence_sync(member, out)

    def receive_replaced(self, event: StaticMemberReplaced, error: ErrorCode | None, now: Now, out: CoordinatorResult) -> None:
        """The replacement is committed; or its write failed with `error`, and the former member is restored."""
        group, member = event.group, event.member
        token = member.join_token
        if token is None or group.members.get(member.member_id) is not member:
            return  # another rebalance or replacement has already answered
        group.set_join_token(member, None)
        if error is not None:
            self._rebalance.forget(group, member.member_id)
            group.replace_static(member.member_id, event.former_id)
            group.update(
                member,
                event.former_protocols,
                rebalance_timeout_ms=event.former_rebalance_timeout_ms,
                session_timeout_ms=event.former_session_timeout_ms,
            )
            self._rebalance.hear_from(group, member, now)
            out.reply(token, join_error(response_error_of(error)))
            return
        leads = group.leader == member.member_id and event.skips_assignment
        response = join_response(group, member.member_id, with_members=leads, skip_assignment=leads)
        if not event.skips_assignment:
            response.leader = event.former_leader  # an older client that is named as leader would assign again
        out.reply(token, response)

    # -- members that rejoin --------------------------------------------------------------------------------------------

    def _join_known(self, join: _Join, now: Now, out: CoordinatorResult) -> None:
        group, member_id = join.group, join.request.member_id
        try:
            group.check_member(member_id, join.request.group_instance_id)
        except KafkaError as error:
            out.reply(join.token, join_error(error.code, member_id))
            return
        if group.is_empty:
            out.reply(join.token, join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            return
        member = group.members[member_id]
        leads = group.leader == member_id
        same = member.speaks(join.protocols)
        if group.state is GroupState.COMPLETING_REBALANCE and same:
            out.reply(join.token, join_response(group, member_id, with_members=leads))  # the first response was lost
        elif group.state is GroupState.STABLE and same and not leads:
            out.reply(join.token, join_response(group, member_id, with_members=False))
        else:
            self._rejoin(join, member, now, out)

    def _rejoin(self, join: _Join, member: ClassicMember, now: Now, out: CoordinatorResult) -> None:
        group = join.group
        if member.join_token is not None:
            # The member repeated its request after a lost connection; the first request gets an answer too.
            out.reply(member.join_token, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        join.update(member)
        group.set_join_token(member, join.token)
        self._rebalance.prepare_or_complete(group, join.because(f"{member.member_id} joins again"), now, out)


class _Join(Struct, frozen=True):
    """One request with its context."""

    group: ClassicGroup
    request: JoinGroupRequest
    caller: Caller
    token: Token
    protocols: dict[str, bytes]

    def update(self, member: ClassicMember) -> None:
        """Update the member from the request."""
        self.group.update(
            member,
            self.protocols,
            rebalance_timeout_ms=self.request.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
        )

    def because(self, event: str) -> str:
        return f"{event}; its reason: {self.request.reason or 'not provided'}"


def _protocols_of(request: JoinGroupRequest) -> list[tuple[str, bytes]]:
    return [(p.name, p.metadata) for p in request.protocols]
