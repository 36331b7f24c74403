"""Converts a classic group to a consumer group while its members continue, and back.

Rules
  1. A classic group of consumers becomes a consumer group when a member joins with the consumer protocol. Its members stay
     classic, with their partitions and in the epoch of their generation; members with waiting requests must join again.
  2. A group is converted back when only classic members are left. The group epoch becomes its generation, and its members
     rebalance.
  3. Both conversions are ordinary records: the tombstones of one group and the records of the other, in one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from barnabas.coordination.classic.group import ClassicGroup, GroupState
from barnabas.coordination.classic.member import ClassicMember
from barnabas.coordination.classic.subscription import CONSUMER_PROTOCOL_TYPE
from barnabas.coordination.consumer.consumer_group_records import GroupValue, TargetValue
from barnabas.coordination.consumer.deadlines import ConsumerTimerKey
from barnabas.coordination.consumer.embedded_protocol import by_id, read_assignment, read_subscription, write_assignment
from barnabas.coordination.consumer.group import ConsumerGroup, group_epoch_record, member_target_record, target_record
from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.consumer.member import ClassicSide, ConsumerMember
from barnabas.coordination.group_records import GroupMetadataValue, MemberMetadata, group_record
from barnabas.coordination.result import CoordinatorResult, Now, Written
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, KafkaError, MalformedMessage

# No client reads the user data in an assignment of these assignors. librdkafka copies the member's own user data into it, and
# Kafka treats such an assignment as one of a custom assignor.
BUILT_IN = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


class Policy(StrEnum):
    """The values of `group.consumer.migration.policy`."""

    DISABLED = "DISABLED"
    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    BIDIRECTIONAL = "BIDIRECTIONAL"

    @property
    def may_upgrade(self) -> bool:
        return self in (Policy.UPGRADE, Policy.BIDIRECTIONAL)

    @property
    def may_downgrade(self) -> bool:
        return self in (Policy.DOWNGRADE, Policy.BIDIRECTIONAL)


class Upgraded(Struct, Written, frozen=True):
    """A classic group was converted to a consumer group, or the write failed."""

    group: ClassicGroup


class Downgraded(Struct, Written, frozen=True):
    """A consumer group was converted to a classic one, or the write failed; `key` is set if a deadline caused it."""

    group_id: str
    key: ConsumerTimerKey | None = None


def check_upgrade(group: ClassicGroup, policy: Policy, max_size: int) -> None:
    """Raises KafkaError with Kafka's words if a classic group cannot be converted."""
    if group.is_assigning:  # the members would get the assignment before this broker knows it
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    reason = None
    if not policy.may_upgrade:
        reason = "online upgrade is disabled."
    elif not group.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol."
    elif len(group.members) > max_size:
        reason = "the group size exceeds the consumer group maximum size."
    if reason is not None:
        raise _cannot_upgrade(group.group_id, reason)


def _cannot_upgrade(group_id: str, reason: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group_id} to consumer group because {reason}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def upgraded(group: ClassicGroup, topics: Topics) -> ConsumerGroup:
    """The consumer group that replaces a classic group; not in the log yet."""
    found = ConsumerGroup(group.group_id)
    epoch = group.generation
    found.replay_group(GroupValue(epoch=epoch))
    found.replay_target(TargetValue(assignment_epoch=epoch))
    try:
        # Members with an assignment come first, because it overrides the partitions that other members claim.
        for member in sorted(group.members.values(), key=lambda m: not m.assignment):
            made = _member_of(member, group, found, topics)
            found.replay_member(made, made.member_id)
            found.target[made.member_id] = {t: frozenset(partitions) for t, partitions in made.assigned.items()}
    except MalformedMessage as error:
        raise _cannot_upgrade(group.group_id, "the embedded consumer protocol is malformed.") from error
    return found


def _member_of(member: ClassicMember, classic: ClassicGroup, group: ConsumerGroup, topics: Topics) -> ConsumerMember:
    protocol, epoch = classic.protocol, classic.generation
    # Parse all subscriptions: a downgrade may choose any protocol.
    subscriptions = {name: read_subscription(data) for name, data in member.protocols.items()}
    subscription = subscriptions.get(protocol or "") or next(iter(subscriptions.values()))
    assignment = read_assignment(member.assignment)
    if assignment.user_data and not BUILT_IN.issuperset([protocol] if protocol else member.protocols):
        reason = "an unsupported custom assignor is in use."
        raise _cannot_upgrade(group.group_id, reason)
    has = [(p.topic, p.partitions) for p in assignment.assigned_partitions]
    if not member.assignment and not classic.is_in(GroupState.STABLE):
        # A rebalance that interrupts another one drops assignments, but cooperative members continue to read.
        has = [(p.topic, p.partitions) for p in subscription.owned_partitions]
    assigned = {}
    for topic_id, partitions in by_id(has, topics).items():
        # A leader may have assigned a partition to two members.
        alone = [p for p in sorted(partitions) if group.owner_of(topic_id, p) is None]
        if alone:
            assigned[topic_id] = dict.fromkeys(alone, epoch)
    return ConsumerMember(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=frozenset(subscription.topics),
        classic=ClassicSide(member.session_timeout_ms, tuple(member.protocols.items())),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assigned,
    )


def records_of(group: ConsumerGroup, now: Now) -> list[Record]:
    """All records of a group."""
    group_id = group.group_id
    return [
        *(member.to_member_record(group_id) for member in group.members.values()),
        group_epoch_record(group_id, group.epoch, group.metadata_hash),
        *(member_target_record(group_id, member_id, target) for member_id, target in group.target.items()),
        target_record(group_id, group.assignment_epoch, now.wall_ms),
        *(member.to_current_record(group_id) for member in group.members.values()),
    ]


def downgraded(group: ConsumerGroup, leaving: Collection[str], topics: Topics, now: Now) -> CoordinatorResult | None:
    """The classic group that replaces a consumer group without its leaving members. None if another member is not classic, if
    the members have no common protocol, or if a member's metadata does not parse. The last case is possible in a group from
    another broker."""
    stay = [m for m in group.members.values() if m.member_id not in leaving]
    members = [(m, m.classic) for m in stay if m.classic is not None]
    if not members or len(members) < len(stay):
        return None
    speakers = Counter(name for _, classic in members for name, _ in classic.protocols)
    protocol = next((name for name, _ in members[0][1].protocols if speakers[name] == len(members)), None)
    if protocol is None:
        return None
    try:
        metadata = [_metadata_of(member, classic, protocol, topics) for member, classic in members]
    except MalformedMessage:
        return None
    value = GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        generation=group.epoch,
        protocol=protocol,
        leader=members[0][0].member_id,
        current_state_timestamp_ms=now.wall_ms,
        members=metadata,
    )
    note = f"group {group.group_id} has classic members only, and becomes a classic group at generation {group.epoch}"
    records = [*group.tombstones(), group_record(group.group_id, value)]
    return CoordinatorResult(records=records, notes=[note], written=Downgraded(group.group_id))


def _metadata_of(member: ConsumerMember, classic: ClassicSide, protocol: str, topics: Topics) -> MemberMetadata:
    subscription = dict(classic.protocols)[protocol]
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        subscription=subscription,
        assignment=write_assignment(member.assigned, topics, subscription),
    )
