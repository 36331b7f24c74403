"""The common interface of all types of groups, for the code that stores offsets and lists groups.

The classic protocol is one type, the consumer protocol (KIP-848) another; share groups (KIP-932) would be a third in the same
table. Code outside a type's own package uses only this interface.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID

from barnabas.coordination.group_records import OffsetCommitValue
from barnabas.coordination.version_prefix import Record
from barnabas.protocol.messages.describe_groups import DescribedGroup


class GroupType(StrEnum):
    """The names that ListGroups uses."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class CommittedPartition(NamedTuple):
    """A partition whose offset a request commits."""

    topic_id: UUID
    partition: int


class Committer(NamedTuple):
    """The sender of a commit, as it identifies itself.

    `generation` may be a member epoch. `api_version` is of OffsetCommit, None for a commit in a transaction.
    """

    member_id: str
    instance_id: str | None
    generation: int
    api_version: int | None
    partitions: Iterable[CommittedPartition] = ()

    @property
    def is_nobody(self) -> bool:
        """Whether the sender names no member: a consumer that only stores offsets, an administrator, or a producer without a
        member."""
        return self.generation < 0 and not self.member_id and self.instance_id is None


class Group(Protocol):
    """A group of any protocol. Refusals are raised as KafkaError."""

    @property
    def group_id(self) -> str: ...
    @property
    def group_type(self) -> GroupType: ...
    @property
    def state_name(self) -> str:
        """The state as Kafka spells it to clients."""
        ...

    @property
    def protocol_type(self) -> str | None:
        """The protocol type; None for a group that only stores offsets."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, so that it may be deleted."""
        ...

    @property
    def is_abandoned(self) -> bool:
        """Whether the group has no members and no pending ones, so that it may expire."""
        ...

    def check_offset_commit(self, commit: Committer) -> None:
        """Refuse a commit from another generation or member epoch."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a member with an outdated epoch."""
        ...

    def check_offset_delete(self) -> None: ...
    def check_delete(self) -> None: ...
    def is_subscribed_to(self, topic: str) -> bool: ...

    def offset_retained_since_ms(self, offset: OffsetCommitValue) -> int | None:
        """The start of the retention of `offset`; None while it does not expire."""
        ...

    def tombstones(self) -> list[Record]:
        """The tombstones of the group, without those of its offsets."""
        ...

    def describe(self) -> DescribedGroup: ...
    def clients(self) -> set[tuple[str, str]]:
        """Client ids and hosts of the members."""
        ...
