"""A planned change of a consumer group: its next state, and the records for it.

The group itself changes only when the records are in the log and replayed, so a refused write changes nothing.

Rules
  1. Steps come in this order: members, topics, epoch, target, reconciliation; each sees the changes of the steps before it.
  2. State outside the records (`checked`, `resolved_from`) is set only if this draft has nothing to write about it. But the
     time of a full resolution of a regular expression is always set, even if the record is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from barnabas import limits
from barnabas.coordination.consumer.assignors import ASSIGNORS, MemberSpec
from barnabas.coordination.consumer.consumer_group_records import RegularExpressionValue
from barnabas.coordination.consumer.group import (
    NO_ASSIGNMENT,
    ConsumerGroup,
    Resolved,
    expression_record,
    gone_records,
    group_epoch_record,
    member_target_record,
    target_record,
)
from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.consumer.member import JOINING_EPOCH, Assignment, ConsumerMember, MemberState
from barnabas.coordination.consumer.reconciliation import Reported, Target, reconcile
from barnabas.coordination.result import MayDescribe, Now, may_describe_all
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, KafkaError

# names that one heartbeat matches, in some milliseconds; one expression may exceed it, because it needs all names
MATCHED_AT_ONCE = 5_000
COMPILED_LIKE = 50  # compiling one expression takes as long as matching this many names


class Draft:
    """The next state of a group.

    Args:
        may_describe: the topics that the requesting member may see, for regular expressions.
    """

    def __init__(self, group: ConsumerGroup, topics: Topics, now: Now, may_describe: MayDescribe = may_describe_all) -> None:
        self.group = group
        self.records: list[Record] = []
        self.epoch = group.epoch
        self.assignment_epoch = group.assignment_epoch
        self.subscription_changed = False
        self._topics = topics
        self._now = now
        self._may_describe = may_describe
        self._changed: dict[str, ConsumerMember | None] = {}
        self._expressions: Mapping[str, frozenset[str]] = group.expressions
        self._target: Mapping[str, Assignment] = group.target
        self._has_news = False

    # -- members --------------------------------------------------------------------------------------------------------

    def members(self) -> Mapping[str, ConsumerMember]:
        if not self._changed:
            return self.group.members
        merged = {**self.group.members, **self._changed}
        return {member_id: member for member_id, member in merged.items() if member is not None}

    def update(self, before: ConsumerMember, after: ConsumerMember) -> None:
        """Add or update a member."""
        if after is before and after.member_id in self.members():
            return
        self.records.append(after.to_member_record(self.group.group_id))
        self._changed[after.member_id] = after
        changes = before.topics != after.topics
        if before.regex != after.regex:
            changes = True
            self._leave_expressions([before.regex])
            if after.regex and after.regex not in self._expressions:
                self._begin_expression(after.regex)
        self.subscription_changed = changes
        self._has_news = self._has_news or changes

    def replace_static(self, former: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give a static member another id; everything else stays, including its target. The member begins at the lowest epoch,
        so it gets its target even if its predecessor did not reach it."""
        member = replace(former, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH, state=MemberState.STABLE)
        target = self._target.get(former.member_id, NO_ASSIGNMENT)
        group_id = self.group.group_id
        self.records += gone_records(group_id, former.member_id)
        self.records.append(member.to_member_record(group_id))
        self.records.append(member_target_record(group_id, member_id, target))
        self.records.append(member.to_current_record(group_id))
        self._target = {m: t for m, t in self._target.items() if m != former.member_id} | {member_id: target}
        self._changed[former.member_id] = None
        self._changed[member_id] = member
        return member

    def remove(self, members: Iterable[ConsumerMember]) -> None:
        """Remove members; their partitions become free. The other members get them in a later epoch."""
        gone = {member.member_id: member for member in members}
        for member_id in gone:
            self.records += gone_records(self.group.group_id, member_id)
        self._changed.update(dict.fromkeys(gone))
        self._leave_expressions(member.regex for member in gone.values())
        self._target = {m: t for m, t in self._target.items() if m not in gone}
        self._has_news = True

    # -- topics ---------------------------------------------------------------------------------------------------------

    def _begin_expression(self, regex: str) -> None:
        if len(self._expressions) >= limits.MAX_GROUP_EXPRESSIONS:
            reason = f"The group has {limits.MAX_GROUP_EXPRESSIONS} different SubscribedTopicRegex, which is the most that one may have."
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        self._set_expression(regex, self._matching(regex, self._topics.names))
        self.group.resolved[regex] = Resolved(self._topics.names, self._now.steady_ms)

    def _matching(self, regex: str, names: Iterable[str]) -> frozenset[str]:
        try:
            matches = self._topics.matcher(regex)
        except KafkaError as error:
            reason = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error.message}."
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, reason) from error
        return frozenset(self._may_describe([name for name in names if matches(name)]))

    def _leave_expressions(self, regexes: Iterable[str]) -> None:
        """Remove an expression with its last subscriber."""
        left = self._expressions.keys() & set(regexes)
        if left:
            left -= {member.regex for member in self.members().values()}
        if left:
            self.records += [expression_record(self.group.group_id, regex, None) for regex in sorted(left)]
            self._expressions = {regex: names for regex, names in self._expressions.items() if regex not in left}

    def _set_expression(self, regex: str, names: frozenset[str]) -> None:
        value = RegularExpressionValue(topics=sorted(names), version=0, timestamp_ms=self._now.wall_ms)
        self.records.append(expression_record(self.group.group_id, regex, value))
        self._expressions = {**self._expressions, regex: names}

    def refresh(self, again_after_ms: int) -> None:
        """Topics may have been created, deleted or extended. Usually only added names are matched. All names are matched at
        intervals, since rights may change without a notification; and after a load, for an expression that was never resolved.
        (Kafka writes resolutions some time after the members.)"""
        group, names, now_ms = self.group, self._topics.names, self._now.steady_ms
        if group.resolved_from is names and now_ms < group.resolved_until_ms:
            return
        regexes = dict.fromkeys(member.regex for member in self.members().values() if member.regex)
        group.resolved = {regex: known for regex, known in group.resolved.items() if regex in regexes}
        since, fresh = names, frozenset[str]()
        left, found = MATCHED_AT_ONCE, False
        for regex in regexes:
            known = group.resolved.get(regex)
            if regex not in self._expressions or known is None or now_ms - known.at_ms >= again_after_ms:
                known = None
            elif known.names is names:
                continue
            elif known.names is not since:
                since, fresh = known.names, names - known.names
            if left <= 0:
                return  # the next heartbeat continues with the rest
            left -= COMPILED_LIKE + len(names if known is None else fresh)
            found = self._resolve_again(regex, known, fresh) or found
        if not found:
            group.resolved_from = names
            group.resolved_until_ms = min((known.at_ms for known in group.resolved.values()), default=now_ms) + again_after_ms

    def _resolve_again(self, regex: str, known: Resolved | None, fresh: frozenset[str]) -> bool:
        """Match an expression with all names, or only with the `fresh` ones if the earlier result is `known`; returns whether
        its topics changed.

        The write of the result may fail, so the next heartbeat matches these names again. But it does not match earlier names
        or all names: otherwise members with different rights would undo each other's result with every heartbeat.
        """
        group, names, former = self.group, self._topics.names, self._expressions.get(regex)
        whole_at_ms = self._now.steady_ms if known is None else known.at_ms
        group.resolved[regex] = Resolved(names, whole_at_ms)
        try:
            resolved = self._matching(regex, names if known is None else fresh)
        except KafkaError:
            # The member got this error when it subscribed, or another broker accepted the expression. The other members continue.
            return False
        if known is not None:
            resolved |= names.intersection(former or ())
        if resolved == former:
            return False
        group.resolved[regex] = Resolved(known.names if known is not None else former or frozenset(), whole_at_ms)
        self._set_expression(regex, resolved)
        self._has_news = True
        return True

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names that a member subscribes to, directly or by an expression."""
        return member.topics | self._expressions.get(member.regex, frozenset()) if member.regex else member.topics

    def _ids_of(self, names: Iterable[str]) -> frozenset[UUID]:
        return frozenset(found for name in names if (found := self._topics.topic_id(name)) is not None)

    # -- epoch and target -----------------------------------------------------------------------------------------------

    def settle_epoch(self) -> None:
        """Start another epoch if members, subscriptions or their topics have changed."""
        group, state = self.group, self._topics.state
        if not self._has_news and state is group.checked:
            return
        names = frozenset[str]().union(*(self.topics_of(member) for member in self.members().values()))
        found = group.hash_of(names, self._topics)
        if found == group.metadata_hash and not self._has_news:
            group.checked = state
            return
        self.epoch += 1
        self.records.append(group_epoch_record(group.group_id, self.epoch, found))

    def assign(self, assignors: Sequence[str], interval_ms: int) -> int | None:
        """Compute the target assignment of this epoch, or return the deadline for it (monotonic, ms) if the last one is too
        recent."""
        if self.epoch <= self.assignment_epoch:
            return None
        passed_ms = self._now.wall_ms - self.group.assigned_at_ms
        if 0 <= passed_ms < interval_ms:
            return self._now.steady_ms + interval_ms - passed_ms
        members = self.members()
        ids: dict[frozenset[str], frozenset[UUID]] = {}
        counts: dict[UUID, int] = {}
        specs = {}
        for member_id, member in members.items():
            names = self.topics_of(member)
            if names not in ids:
                found = {
                    t: self._topics.partition_count(name) for name in names if (t := self._topics.topic_id(name)) is not None
                }
                counts |= found
                ids[names] = frozenset(found)
            specs[member_id] = MemberSpec(ids[names], self._target.get(member_id, NO_ASSIGNMENT), member.instance_id)
        self.set_target(ASSIGNORS[preferred_assignor(members.values(), assignors)](specs, counts), self.epoch)
        return None

    def set_target(self, target: Mapping[str, Assignment], epoch: int) -> None:
        group_id = self.group.group_id
        for member_id, assignment in target.items():
            if self._target.get(member_id) != assignment:
                self.records.append(member_target_record(group_id, member_id, assignment))
        self.records.append(target_record(group_id, epoch, self._now.wall_ms))
        self._target, self.assignment_epoch = target, epoch

    # -- reconciliation -------------------------------------------------------------------------------------------------

    def reconcile(self, member: ConsumerMember, reported: Reported | None) -> ConsumerMember:
        """Move the member one step towards its target."""
        if not self.subscription_changed and member.is_reconciled_to(self.assignment_epoch):
            return member
        after = reconcile(
            member,
            Target(self.assignment_epoch, self._target.get(member.member_id, NO_ASSIGNMENT)),
            subscribed=self._ids_of(self.topics_of(member)),
            is_free=self._is_free,
            reported=reported,
            subscription_changed=self.subscription_changed,
        )
        if after is not member:
            self.records.append(after.to_current_record(self.group.group_id))
            self._changed[after.member_id] = after
        return after

    def _is_free(self, topic_id: UUID, partition: int) -> bool:
        owner = self.group.owner_of(topic_id, partition)
        if owner is not None and owner not in self._changed:
            return False
        return not any(m is not None and m.owns(topic_id, partition) for m in self._changed.values())


def preferred_assignor(members: Iterable[ConsumerMember], assignors: Sequence[str]) -> str:
    """The assignor that most members name, the default one if none does; on a tie the first configured one."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor in assignors)
    return max(assignors, key=lambda name: (votes[name], -assignors.index(name)))
