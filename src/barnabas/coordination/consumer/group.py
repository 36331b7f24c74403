"""A consumer group: its epochs, its members, and their target and current assignments.

Owns the data; only `replay` of records changes it, so it always equals the log. `draft.py` and `protocol.py` decide what to
write. There are three epochs:

    group epoch        grows with every change of members, subscriptions or topics
    assignment epoch   the group epoch of the target assignment
    member epoch       the assignment epoch that the member has reached

    Empty: no members    Assigning: the target is behind the group    Reconciling: a member is behind the target    Stable

Rules
  1. A partition is owned by one member at most (`owner_of`).
  2. An instance id belongs to one member at a time.
  3. State outside the records (`checked`, `resolved` and the fields beside it, `to_join`) may be lost or wrong; the only cost
     is repeated work. `revoking` is computed again when the log has been read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from barnabas.coordination.consumer.consumer_group_records import (
    ConsumerRecordType,
    GroupKey,
    GroupValue,
    MemberKey,
    MemberTargetValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetValue,
    TopicPartitionsValue,
    consumer_record,
)
from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.consumer.member import Assignment, ConsumerMember
from barnabas.coordination.group import Committer, GroupType
from barnabas.coordination.group_records import OffsetCommitValue
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages import consumer_group_describe as described
from barnabas.protocol.messages.describe_groups import DescribedGroup

NO_ASSIGNMENT: Assignment = {}
FIRST_EPOCH = 1  # the epoch of a group or a target that has no record
MEMBER_EPOCHS_FROM_VERSION = 9  # clients know member epochs from this version of OffsetCommit on


class ConsumerGroupState(StrEnum):
    """The states with the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Resolved(NamedTuple):
    """The names that a regular expression was matched with, and the time of its last full match by the monotonic clock."""

    names: frozenset[str]
    at_ms: int


class ConsumerGroup:
    """One group, as its records define it."""

    group_type = GroupType.CONSUMER
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0  # hash of the topics that belong to the group's epoch
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0  # wall-clock time of the target assignment
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.target: dict[str, Assignment] = {}
        self.expressions: dict[str, frozenset[str]] = {}  # regular expression -> names of the matching topics
        self._owners: dict[UUID, dict[int, str]] = {}
        self._topic_subscribers: Counter[str] = Counter()  # topic name -> number of members
        self._expression_subscribers: Counter[str] = Counter()  # regular expression -> number of members
        self._unreconciled: set[str] = set()  # members that have not reached the target assignment
        self.checked: object = None  # the topics' state to which `metadata_hash` belongs
        self.resolved: dict[str, Resolved] = {}  # regular expression -> its progress
        self.resolved_from: frozenset[str] | None = None  # the topic names with which all `expressions` are resolved
        self.resolved_until_ms = 0  # monotonic time at which one of them must be matched with all names again
        self.to_join: set[str] = set()  # classic members that must join again
        self.revoking: dict[str, int] = {}  # member that must give up partitions -> epoch of the revocation

    # -- queries --------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        return ConsumerGroupState.RECONCILING if self._unreconciled else ConsumerGroupState.STABLE

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_abandoned(self) -> bool:
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        if self._topic_subscribers[topic]:
            return True
        return any(topic in names and self._expression_subscribers[regex] for regex, names in self.expressions.items())

    def owner_of(self, topic_id: UUID, partition: int) -> str | None:
        return self._owners.get(topic_id, {}).get(partition)

    def member(self, member_id: str) -> ConsumerMember:
        """Raises KafkaError(UNKNOWN_MEMBER_ID)."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_offset_commit(self, commit: Committer) -> None:
        """Refuse a commit that is not from a member, or whose epoch is older than the one in which the member got the
        partitions (KIP-1251)."""
        if commit.generation < 0 and self.is_empty:
            return  # the commit is from an administrator, or from a consumer that only stores offsets
        member = self.member(commit.member_id)
        is_old = commit.api_version is not None and commit.api_version < MEMBER_EPOCHS_FROM_VERSION
        if is_old and not member.is_classic:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if commit.generation == member.epoch:
            return
        stale = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
        if commit.generation > member.epoch:
            raise KafkaError(stale)
        for committed in commit.partitions:
            since = member.assignment_epoch_of(committed.topic_id, committed.partition)
            if since is None or commit.generation < since:
                raise KafkaError(stale)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse to return offsets to a member with an outdated epoch; a request without a member is from an administrator."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH)

    def check_offset_delete(self) -> None:
        """Offsets of topics without readers may expire at any time."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_retained_since_ms(self, offset: OffsetCommitValue) -> int | None:
        return offset.commit_timestamp_ms

    # -- topics ---------------------------------------------------------------------------------------------------------

    def hash_of(self, names: Iterable[str], topics: Topics) -> int:
        """A hash of the input of the target assignment: 64 bits of ids and partition counts; 0 if none of the topics exists.

        Kafka uses another hash, so a group that moves from or to Kafka gets one more epoch with the same assignment.
        """
        known = sorted((name, topic_id) for name in names if (topic_id := topics.topic_id(name)) is not None)
        if not known:
            return 0
        digest = blake2b(digest_size=8)
        for name, topic_id in known:
            digest.update(topic_id.bytes + topics.partition_count(name).to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True)

    # -- the log --------------------------------------------------------------------------------------------------------

    def replay_group(self, value: GroupValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_member(self, member: ConsumerMember | None, member_id: str) -> None:
        """Replay the record of a member, or its tombstone."""
        former = self.members.get(member_id)
        if former is not None:
            self._drop(former)
        if member is None:
            self.members.pop(member_id, None)
            self._unreconciled.discard(member_id)
            self.revoking.pop(member_id, None)
            self.to_join.discard(member_id)
            return
        self.members[member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        self._topic_subscribers.update(member.topics)
        self._expression_subscribers.update(_expressions(member))
        for topic_id, partition in member.owned():
            self._owners.setdefault(topic_id, {})[partition] = member_id
        self._place(member)

    def _drop(self, member: ConsumerMember) -> None:
        member_id = member.member_id
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        _count_out(self._topic_subscribers, member.topics)
        _count_out(self._expression_subscribers, _expressions(member))
        for topic_id, partition in member.owned():
            owners = self._owners.get(topic_id, {})
            if owners.get(partition) == member_id:
                del owners[partition]
                if not owners:
                    del self._owners[topic_id]

    def _place(self, member: ConsumerMember) -> None:
        if member.is_reconciled_to(self.assignment_epoch):
            self._unreconciled.discard(member.member_id)
        else:
            self._unreconciled.add(member.member_id)

    def replay_target(self, value: TargetValue | None) -> None:
        """Replay the record of the target's epoch. None is a tombstone, as after the group is deleted."""
        self.assignment_epoch, self.assigned_at_ms = 0, 0
        if value is not None:
            self.assignment_epoch, self.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp_ms
        self._unreconciled = {m.member_id for m in self.members.values() if not m.is_reconciled_to(self.assignment_epoch)}

    def replay_member_target(self, member_id: str, value: MemberTargetValue | None) -> None:
        if value is None:
            self.target.pop(member_id, None)
            return
        self.target[member_id] = {t.topic_id: frozenset(t.partitions) for t in value.topic_partitions}

    def replay_expression(self, regex: str, value: RegularExpressionValue | None) -> None:
        if value is None:
            self.expressions.pop(regex, None)
        else:
            self.expressions[regex] = frozenset(value.topics)

    def tombstones(self) -> list[Record]:
        """The tombstones in the order in which Kafka deletes a group: the assignments of members before the members."""
        records = []
        for kind in (ConsumerRecordType.CURRENT, ConsumerRecordType.MEMBER_TARGET):
            records += [consumer_record(kind, MemberKey(group=self.group_id, member=m), None) for m in self.members]
        records.append(consumer_record(ConsumerRecordType.TARGET, GroupKey(group=self.group_id), None))
        records += [
            consumer_record(ConsumerRecordType.MEMBER, MemberKey(group=self.group_id, member=m), None) for m in self.members
        ]
        records += [expression_record(self.group_id, regex, None) for regex in self.expressions]
        records.append(consumer_record(ConsumerRecordType.GROUP, GroupKey(group=self.group_id), None))
        return records

    # -- descriptions ---------------------------------------------------------------------------------------------------

    def describe(self) -> DescribedGroup:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")

    def clients(self) -> set[tuple[str, str]]:
        """Client ids and hosts of the members."""
        return {(m.client_id, m.client_host) for m in self.members.values()}

    def describe_consumers(self, assignor: str, topics: Topics) -> described.DescribedGroup:
        """The group in the form of ConsumerGroupDescribe.

        Args:
            assignor: the assignor that the group uses.
        """
        members = [_described(m, self.target.get(m.member_id, NO_ASSIGNMENT), topics) for m in self.members.values()]
        return described.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            group_epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
            assignor_name=assignor,
            members=members,
        )

    def validate(self) -> None:
        """Raise InvariantViolated if the parts disagree."""
        owned = [place for m in self.members.values() for place in m.owned()]
        members = self.members.values()
        checks = {
            "a partition has one owner": len(owned) == len(set(owned)),
            "owners are known": {(t, p): owner for t, owners in self._owners.items() for p, owner in owners.items()}
            == {place: m.member_id for m in self.members.values() for place in m.owned()},
            "static ids name members": self.static_members
            == {m.instance_id: m.member_id for m in self.members.values() if m.instance_id is not None},
            "subscriptions are counted": self._topic_subscribers == Counter(t for m in members for t in m.topics)
            and self._expression_subscribers == Counter(r for m in members for r in _expressions(m)),
            "targets are of members": self.target.keys() <= self.members.keys(),
            "the target is not ahead of the group": self.assignment_epoch <= self.epoch,
            "no member is ahead of the target": all(m.epoch <= self.assignment_epoch for m in self.members.values()),
            "who is behind is known": self._unreconciled
            == {m.member_id for m in self.members.values() if not m.is_reconciled_to(self.assignment_epoch)},
            "who is where the target is gives nothing up": not any(
                m.pending_revocation for m in self.members.values() if m.is_reconciled_to(self.assignment_epoch)
            ),
            "every expression has a subscriber": all(self._expression_subscribers[regex] for regex in self.expressions),
        }
        broken = [rule for rule, holds in checks.items() if not holds]
        if broken:
            raise InvariantViolated(f"group {self.group_id}: {broken}")


def _expressions(member: ConsumerMember) -> list[str]:
    return [member.regex] if member.regex else []


def _count_out(counter: Counter[str], keys: Iterable[str]) -> None:
    for key in keys:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]


def _described(member: ConsumerMember, target: Assignment, topics: Topics) -> described.Member:
    return described.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_partitions(member.assigned, topics),
        target_assignment=_partitions(target, topics),
        member_type=0 if member.is_classic else 1,
    )


def _partitions(assignment: Mapping[UUID, Iterable[int]], topics: Topics) -> described.Assignment:
    """The partitions of existing topics: deleted topics have no name."""
    return described.Assignment(
        topic_partitions=[
            described.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
            for topic_id, partitions in assignment.items()
            if (name := topics.topic_name(topic_id)) is not None
        ]
    )


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    value = GroupValue(epoch=epoch, metadata_hash=metadata_hash)
    return consumer_record(ConsumerRecordType.GROUP, GroupKey(group=group_id), value)


def target_record(group_id: str, epoch: int, now_wall_ms: int) -> Record:
    value = TargetValue(assignment_epoch=epoch, assignment_timestamp_ms=now_wall_ms)
    return consumer_record(ConsumerRecordType.TARGET, GroupKey(group=group_id), value)


def member_target_record(group_id: str, member_id: str, target: Assignment | None) -> Record:
    value = None
    if target is not None:
        parts = [TopicPartitionsValue(topic_id=t, partitions=sorted(partitions)) for t, partitions in target.items()]
        value = MemberTargetValue(topic_partitions=parts)
    return consumer_record(ConsumerRecordType.MEMBER_TARGET, MemberKey(group=group_id, member=member_id), value)


def expression_record(group_id: str, regex: str, value: RegularExpressionValue | None) -> Record:
    key = RegularExpressionKey(group=group_id, regular_expression=regex)
    return consumer_record(ConsumerRecordType.REGULAR_EXPRESSION, key, value)


def gone_records(group_id: str, member_id: str) -> list[Record]:
    """The tombstones of a member: of its current assignment, its target, and the member itself."""
    kinds = (ConsumerRecordType.CURRENT, ConsumerRecordType.MEMBER_TARGET, ConsumerRecordType.MEMBER)
    return [consumer_record(kind, MemberKey(group=group_id, member=member_id), None) for kind in kinds]
