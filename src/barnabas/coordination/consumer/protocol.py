"""The consumer protocol of one shard: heartbeats of members, their deadlines, and the records of their groups.

Rules
  1. A heartbeat writes its changes, and the response follows when they are committed. Without changes it writes nothing.
  2. The coordinator removes a member that sends no heartbeat for its session timeout, or that does not give up revoked
     partitions in time.
  3. A member with another epoch than the group has for it is fenced and joins again without partitions. The only exception is a
     lost response to its last heartbeat.
  4. A member's deadlines end with its tombstone, not before. A deadline without work does nothing, and a deadline whose records
     the log refused is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, MutableMapping

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.classic.rebalance import join_error
from barnabas.coordination.consumer.assignors import assignor_names
from barnabas.coordination.consumer.consumer_group_records import (
    ConsumerRecordType,
    CurrentValue,
    GroupValue,
    Key,
    MemberKey,
    MemberTargetValue,
    MemberValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetValue,
    read_consumer_value,
)
from barnabas.coordination.consumer.deadlines import Changed, ConsumerTimerKey, Deadline
from barnabas.coordination.consumer.draft import Draft, preferred_assignor
from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
    Owned,
)
from barnabas.coordination.consumer.member_checks import check_epoch, check_released, check_static
from barnabas.coordination.consumer.migration import Downgraded, Policy, Upgraded, check_upgrade, downgraded, records_of, upgraded
from barnabas.coordination.consumer.reconciliation import Reported
from barnabas.coordination.consumer.request import check_request, declared, is_full, reported
from barnabas.coordination.group import Group, GroupType
from barnabas.coordination.result import Caller, CoordinatorResult, GroupConfig, Now
from barnabas.coordination.timers import Timers
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import Buffer
from barnabas.protocol.messages import consumer_group_describe as described
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment as ToldAssignment,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from barnabas.protocol.messages.sync_group import SyncGroupResponse

WRITTEN_AGAIN_AFTER_MS = 1_000  # time until a deadline is repeated if the log refused its records
REASONS = {
    Deadline.SESSION: "its session ran out",
    Deadline.REVOCATION: "it did not give up its partitions in time",
    Deadline.JOIN: "it did not join again in time",
    Deadline.SYNC: "it did not ask for its assignment in time",
}


class ConsumerProtocol:
    """Handles the consumer groups in `groups`; ignores those of other types."""

    def __init__(
        self, config: GroupConfig, groups: MutableMapping[str, Group], timers: Timers[ConsumerTimerKey], topics: Topics
    ) -> None:
        self._config = config
        self._groups = groups
        self.timers = timers
        self.topics = topics
        self._assignors = assignor_names(config.group_consumer_assignors)

    # -- heartbeats -----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Now) -> CoordinatorResult:
        """Handle a heartbeat: a member joins, is alive, or leaves."""
        if GroupType.CONSUMER not in self._config.group_coordinator_rebalance_protocols:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        check_request(request, caller.api_version, self._assignors)
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH):
            return self._leave(request, now)
        out = CoordinatorResult()
        group = self._group_of(request, now, out)
        draft = Draft(group, self.topics, now, caller.may_describe)
        before = self._member_of(draft, request, request.member_id or caller.fresh_id, out)
        member = declared(before, request, caller)
        draft.update(before, member)
        draft.refresh(
            self._config.group_consumer_regex_refresh_interval_ms
        )  # only here: a request of the classic protocol does not give the topics that its client may see
        settings = self.topics.settings_of(request.group_id)
        member = self.carry_on(draft, member, reported(request), settings.assignment_interval_ms, now)
        self.timers.schedule(
            ConsumerTimerKey(Deadline.SESSION, group.group_id, member.member_id), now.steady_ms + settings.session_timeout_ms
        )
        out.records += draft.records
        if draft.epoch > group.epoch:
            out.notes.append(f"group {group.group_id} has epoch {draft.epoch} by a heartbeat of {member.member_id}")
        out.response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            assignment=_told(member.assigned) if is_full(request) or before.assigned != member.assigned else None,
        )
        return out

    def _group_of(self, request: ConsumerGroupHeartbeatRequest, now: Now, out: CoordinatorResult) -> ConsumerGroup:
        """The group of a request; it is not in the table yet if the member is the first one, or if the member joins a classic
        group."""
        found = self._groups.get(request.group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if request.member_epoch != JOINING_EPOCH:
            raise self._no_group(request.group_id, "Consumer group")
        if found is None or found.is_empty:
            out.records += [] if found is None else found.tombstones()
            out.notes.append(f"group {request.group_id} is made, of the consumer protocol")
            return ConsumerGroup(request.group_id)
        if not isinstance(found, ClassicGroup):
            raise self._no_group(request.group_id)
        return self._upgrade(found, now, out)

    def _upgrade(self, classic: ClassicGroup, now: Now, out: CoordinatorResult) -> ConsumerGroup:
        """Convert a classic group with its members; members with waiting requests must join again."""
        check_upgrade(classic, self._policy, self._config.group_consumer_max_size)
        group = upgraded(classic, self.topics)
        out.records += [*classic.tombstones(), *records_of(group, now)]
        out.notes.append(f"group {group.group_id} becomes one of consumers at generation {group.epoch}")
        out.written = Upgraded(classic)
        for member in classic.members.values():
            if member.join_token is not None:
                out.reply(member.join_token, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            if member.sync_token is not None:
                out.reply(member.sync_token, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            key = ConsumerTimerKey(Deadline.SESSION, group.group_id, member.member_id)
            self.timers.schedule(key, now.steady_ms + member.session_timeout_ms)
        return group

    @property
    def _policy(self) -> Policy:
        return Policy(self._config.group_consumer_migration_policy.upper())

    def _no_group(self, group_id: str, what: str = "Group") -> KafkaError:
        other = group_id in self._groups
        reason = f"Group {group_id} is not a consumer group." if other else f"{what} {group_id} not found."
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, reason)

    def _member_of(
        self, draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str, out: CoordinatorResult
    ) -> ConsumerMember:
        """The member that sent a request, after the checks; a member that joins is created."""
        group, instance_id, joins = draft.group, request.instance_id, request.member_epoch == JOINING_EPOCH
        static = None if instance_id is None else group.static_member(instance_id)
        if instance_id is not None and not joins:
            static = check_static(group, static, member_id, instance_id)
        elif static is not None:
            check_released(static, member_id, instance_id)
            if static.member_id != member_id:
                out.notes.append(f"group {group.group_id}: {member_id} replaces {static.member_id}")
                return draft.replace_static(static, member_id)
        member = group.members.get(member_id)
        if member is None:
            if not joins:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
            self.check_room(group)
            return ConsumerMember(member_id)
        if not joins:  # a client that joins with a member's id owns nothing yet and gets that member's assignment
            check_epoch(member, request.member_epoch, reported(request))
        return member

    def check_room(self, group: ConsumerGroup) -> None:
        """Refuse another member if the group has reached its limit."""
        most = self._config.group_consumer_max_size
        if len(group.members) >= most:
            reason = f"The consumer group has reached its maximum capacity of {most} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, reason)

    def carry_on(
        self, draft: Draft, member: ConsumerMember, owned: Reported | None, interval_ms: int, now: Now
    ) -> ConsumerMember:
        """Move a member one step after its heartbeat."""
        group_id = draft.group.group_id
        draft.settle_epoch()
        later_ms = draft.assign(self._assignors, interval_ms)
        if later_ms is not None:
            self.timers.schedule(ConsumerTimerKey(Deadline.ASSIGNMENT, group_id), later_ms)
        after = draft.reconcile(member, owned)
        if after is not member and after.state is MemberState.UNREVOKED_PARTITIONS:
            draft.group.revoking[after.member_id] = after.epoch
            self._expect_revocation(group_id, after, now)
        return after

    def _expect_revocation(self, group_id: str, member: ConsumerMember, now: Now) -> None:
        key = ConsumerTimerKey(Deadline.REVOCATION, group_id, member.member_id)
        self.timers.schedule(key, now.steady_ms + max(member.rebalance_timeout_ms, 0))

    # -- leaving --------------------------------------------------------------------------------------------------------

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now: Now) -> CoordinatorResult:
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise self._no_group(request.group_id)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            known = group.static_member(request.instance_id)
            member = check_static(group, known, request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_STATIC_EPOCH:
            gone = member.moved(member.state, LEAVING_STATIC_EPOCH, member.assigned, {})
            out = CoordinatorResult(records=[gone.to_current_record(group.group_id)])
            out.notes.append(f"group {group.group_id}: static member {member.member_id} is away")
        else:
            out = self.dismiss(group, [member], "it left", now)
        out.response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return out

    def dismiss(self, group: ConsumerGroup, members: list[ConsumerMember], reason: str, now: Now) -> CoordinatorResult:
        """Remove members; the next heartbeat of any member triggers the next assignment."""
        going = {member.member_id for member in members}
        if (out := self._downgrade(group, going, now)) is not None:
            return out
        draft = Draft(group, self.topics, now)
        draft.remove(members)
        draft.settle_epoch()
        note = f"group {group.group_id} lost {sorted(going)}: {reason}"
        return CoordinatorResult(records=draft.records, notes=[note], written=Changed(group.group_id))

    # -- time and the log -----------------------------------------------------------------------------------------------

    def expire(self, key: ConsumerTimerKey, now: Now) -> CoordinatorResult:
        """The deadline of `key` is due."""
        group = self._groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            return CoordinatorResult()
        out = self._assign_late(group, now) if key.kind is Deadline.ASSIGNMENT else self._expire_member(group, key, now)
        if out.records:
            out.written = (Downgraded if isinstance(out.written, Downgraded) else Changed)(key.group_id, key)
        return out

    def _assign_late(self, group: ConsumerGroup, now: Now) -> CoordinatorResult:
        if group.is_empty:
            return CoordinatorResult()
        draft = Draft(group, self.topics, now)
        draft.assign(self._assignors, 0)
        return CoordinatorResult(records=draft.records)

    def _expire_member(self, group: ConsumerGroup, key: ConsumerTimerKey, now: Now) -> CoordinatorResult:
        member = group.members.get(key.member_id)
        if member is None:
            return CoordinatorResult()
        if key.kind is not Deadline.REVOCATION:
            return self.dismiss(group, [member], REASONS[key.kind], now)
        revokes = member.state is MemberState.UNREVOKED_PARTITIONS and group.revoking.get(key.member_id) == member.epoch
        return self.dismiss(group, [member], REASONS[key.kind], now) if revokes else CoordinatorResult()

    def receive_changed(self, event: Changed, error: ErrorCode | None, now: Now) -> CoordinatorResult:
        """The members have changed, or the write failed with `error`."""
        if error is not None:
            self.receive_refused(event.key, now)
            return CoordinatorResult()
        group = self._groups.get(event.group_id)
        return (self._downgrade(group, (), now) if isinstance(group, ConsumerGroup) else None) or CoordinatorResult()

    def receive_refused(self, key: ConsumerTimerKey | None, now: Now) -> None:
        """The log refused the records; if a deadline caused them, repeat it."""
        if key is not None:
            self.timers.schedule(key, now.steady_ms + WRITTEN_AGAIN_AFTER_MS)

    def _downgrade(self, group: ConsumerGroup, leaving: Collection[str], now: Now) -> CoordinatorResult | None:
        """Convert a group with only classic members left to a classic group, if the policy allows it."""
        fits = len(group.members) - len(leaving) <= self._config.group_max_size
        return downgraded(group, leaving, self.topics, now) if fits and self._policy.may_downgrade else None

    def receive_loaded(self, now: Now) -> list[CoordinatorResult]:
        """The log was read: the loaded members must send a heartbeat within their sessions."""
        for group in self._groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            session_timeout_ms = self.topics.settings_of(group.group_id).session_timeout_ms
            for member in group.members.values():
                key = ConsumerTimerKey(Deadline.SESSION, group.group_id, member.member_id)
                timeout_ms = session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
                self.timers.schedule(key, now.steady_ms + timeout_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    group.revoking[member.member_id] = member.epoch
                    self._expect_revocation(group.group_id, member, now)
        outcomes = [self._downgrade(group, (), now) for group in self._groups.values() if isinstance(group, ConsumerGroup)]
        return [outcome for outcome in outcomes if outcome is not None]

    def replay(self, kind: ConsumerRecordType, key: Key, data: Buffer | None) -> None:
        """Replay one record; raises MalformedMessage if it does not parse."""
        known = self._groups.get(key.group)
        group = known if isinstance(known, ConsumerGroup) else None
        if kind is ConsumerRecordType.PARTITION_METADATA or (group is None and data is None):
            return
        if group is None:
            group = ConsumerGroup(key.group)
        self._replay_into(group, kind, key, data)
        if kind is ConsumerRecordType.GROUP and data is None:
            self._groups.pop(key.group, None)
        elif known is not group:
            self._groups[key.group] = group

    def _replay_into(self, group: ConsumerGroup, kind: ConsumerRecordType, key: Key, data: Buffer | None) -> None:
        match kind, key:
            case ConsumerRecordType.GROUP, _ if data is not None:
                group.replay_group(read_consumer_value(GroupValue, data))
            case ConsumerRecordType.TARGET, _:
                group.replay_target(None if data is None else read_consumer_value(TargetValue, data))
            case ConsumerRecordType.MEMBER, MemberKey():
                former = group.members.get(key.member) or ConsumerMember(key.member)
                told = None if data is None else former.with_member_value(read_consumer_value(MemberValue, data))
                group.replay_member(told, key.member)
                if told is None:
                    for deadline in Deadline:
                        self.timers.cancel(ConsumerTimerKey(deadline, group.group_id, key.member))
            case ConsumerRecordType.CURRENT, MemberKey():
                member = group.members.get(key.member)
                if member is not None or data is not None:
                    value = None if data is None else read_consumer_value(CurrentValue, data)
                    group.replay_member((member or ConsumerMember(key.member)).with_current_value(value), key.member)
            case ConsumerRecordType.MEMBER_TARGET, MemberKey():
                target = None if data is None else read_consumer_value(MemberTargetValue, data)
                group.replay_member_target(key.member, target)
            case ConsumerRecordType.REGULAR_EXPRESSION, RegularExpressionKey():
                expression = None if data is None else read_consumer_value(RegularExpressionValue, data)
                group.replay_expression(key.regular_expression, expression)

    # -- descriptions ---------------------------------------------------------------------------------------------------

    def describe(self, group_id: str) -> described.DescribedGroup:
        """Raises KafkaError(GROUP_ID_NOT_FOUND)."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise self._no_group(group_id)
        return group.describe_consumers(preferred_assignor(group.members.values(), self._assignors), self.topics)


def _told(owned: Owned) -> ToldAssignment:
    parts = [ResponseTopicPartitions(topic_id=t, partitions=sorted(partitions)) for t, partitions in owned.items()]
    return ToldAssignment(topic_partitions=parts)
