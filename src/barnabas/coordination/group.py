"""What every type of group has in common, for whoever stores offsets and lists groups.

The classic protocol is one type, the consumer protocol (KIP-848) another; share groups (KIP-932) would be a third in the same table.
Nothing outside a type's own package looks further than this.
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
    """Of which an offset is to be committed."""

    topic_id: UUID
    partition: int


class Committer(NamedTuple):
    """Who commits offsets of which partitions, by its own account.

    `generation` may be a member epoch. `api_version` is of OffsetCommit, None for a commit in a transaction.
    """

    member_id: str
    instance_id: str | None
    generation: int
    api_version: int | None
    partitions: Iterable[CommittedPartition] = ()

    @property
    def is_nobody(self) -> bool:
        """A consumer that only stores offsets, an administrator, or a producer that has said nothing of a member."""
        return self.generation < 0 and not self.member_id and self.instance_id is None


class Group(Protocol):
    """A group, whatever its protocol. Refusals are raised as KafkaError."""

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
        """None for a group that only stores offsets."""
        ...

    @property
    def is_empty(self) -> bool:
        """No members: it may be deleted."""
        ...

    @property
    def is_abandoned(self) -> bool:
        """No members, and nobody on the way in: it may go by itself."""
        ...

    def check_offset_commit(self, commit: Committer) -> None:
        """Refuse a commit that does not come from the present generation, or member epoch."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a member that has to learn of another epoch first."""
        ...

    def check_offset_delete(self) -> None: ...
    def check_delete(self) -> None: ...
    def is_subscribed_to(self, topic: str) -> bool: ...

    def offset_retained_since_ms(self, offset: OffsetCommitValue) -> int | None:
        """From when on the retention of `offset` counts; None while it does not count at all."""
        ...

    def tombstones(self) -> list[Record]:
        """The records that forget the group (its offsets are not its own)."""
        ...

    def describe(self) -> DescribedGroup: ...
    def clients(self) -> set[tuple[str, str]]:
        """Client ids and hosts of the members."""
        ...
