"""One member of a consumer group: its properties, and its progress towards its target.

Rules
  1. A member is immutable; a change creates the next one and a record of it.
  2. No two members own the same partition. A member owns its assigned partitions, and revoked ones until it has given them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from barnabas.coordination.consumer.consumer_group_records import (
    ClassicMemberValue,
    ClassicProtocolValue,
    ConsumerRecordType,
    CurrentValue,
    MemberKey,
    MemberValue,
    OwnedPartitionsValue,
    consumer_record,
)
from barnabas.coordination.version_prefix import Record

JOINING_EPOCH, NO_EPOCH = 0, -1
LEAVING_EPOCH, LEAVING_STATIC_EPOCH = -1, -2

Owned = Mapping[UUID, Mapping[int, int]]  # topic -> partition -> epoch in which the member got the partition
Assignment = Mapping[UUID, frozenset[int]]


class MemberState(IntEnum):
    """The states, with their numbers in the records."""

    STABLE = 0  # the member has the target assignment of its epoch
    UNREVOKED_PARTITIONS = 1  # the member must give up partitions before its next epoch
    UNRELEASED_PARTITIONS = 2  # the member waits for partitions that other members have not given up yet
    UNKNOWN = 127  # a record of a later broker version

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


class ClassicSide(Struct, frozen=True):
    """The session and the assignors (best first) of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMember(Struct, frozen=True):
    """A member at one moment.

    `topics` are the names it subscribes to, `regex` the expression ("" for none). `assigned` and `pending_revocation` share no partition.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] = frozenset()
    regex: str = ""
    server_assignor: str | None = None
    classic: ClassicSide | None = None
    epoch: int = JOINING_EPOCH
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    pending_revocation: Owned = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def has_left_for_now(self) -> bool:
        """Whether it is a static member that left temporarily; its partitions are kept for it until its session expires."""
        return self.epoch == LEAVING_STATIC_EPOCH

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def owned(self) -> Iterator[tuple[UUID, int]]:
        """All partitions that it owns."""
        for partitions in (self.assigned, self.pending_revocation):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    yield topic_id, partition

    def owns(self, topic_id: UUID, partition: int) -> bool:
        return partition in self.assigned.get(topic_id, ()) or partition in self.pending_revocation.get(topic_id, ())

    def assignment_epoch_of(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch in which it got a partition that it owns."""
        for partitions in (self.assigned, self.pending_revocation):
            found = partitions.get(topic_id, {}).get(partition)
            if found is not None:
                return found
        return None

    def moved(self, state: MemberState, epoch: int, assigned: Owned, pending_revocation: Owned) -> ConsumerMember:
        return replace(
            self,
            state=state,
            epoch=epoch,
            previous_epoch=self.epoch,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    # -- records --------------------------------------------------------------------------------------------------------

    def to_member_record(self, group_id: str) -> Record:
        value = MemberValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None if self.classic is None else _classic_value(self.classic),
        )
        return consumer_record(ConsumerRecordType.MEMBER, MemberKey(group=group_id, member=self.member_id), value)

    def to_current_record(self, group_id: str) -> Record:
        value = CurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_owned_values(self.assigned),
            partitions_pending_revocation=_owned_values(self.pending_revocation),
        )
        return consumer_record(ConsumerRecordType.CURRENT, MemberKey(group=group_id, member=self.member_id), value)

    def with_member_value(self, value: MemberValue) -> ConsumerMember:
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicSide(classic.session_timeout_ms, tuple((p.name, p.metadata) for p in classic.supported_protocols)),
        )

    def with_current_value(self, value: CurrentValue | None) -> ConsumerMember:
        """Without a value the member has no partitions: its record was deleted."""
        if value is None:
            return self.moved(MemberState.STABLE, LEAVING_EPOCH, {}, {})
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_owned_of(value.assigned_partitions, value.member_epoch),
            pending_revocation=_owned_of(value.partitions_pending_revocation, value.member_epoch),
        )


def _classic_value(classic: ClassicSide) -> ClassicMemberValue:
    protocols = [ClassicProtocolValue(name=name, metadata=metadata) for name, metadata in classic.protocols]
    return ClassicMemberValue(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def _owned_values(owned: Owned) -> list[OwnedPartitionsValue]:
    return [
        OwnedPartitionsValue(topic_id=topic_id, partitions=sorted(epochs), assignment_epochs=[epochs[p] for p in sorted(epochs)])
        for topic_id, epochs in owned.items()
    ]


def _owned_of(values: Iterable[OwnedPartitionsValue], member_epoch: int) -> Owned:
    found: dict[UUID, dict[int, int]] = {}
    for value in values:
        epochs = value.assignment_epochs
        if epochs is None or len(epochs) != len(value.partitions):
            epochs = [member_epoch] * len(value.partitions)
        found.setdefault(value.topic_id, {}).update(zip(value.partitions, epochs, strict=True))
    return found
