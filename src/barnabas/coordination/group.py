"""What every type of group has in common, for whoever stores offsets and lists groups.

The classic protocol is one type; the consumer protocol (KIP-848) and share groups (KIP-932) will be others in the same table.
Nothing outside a type's own package looks further than this.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from barnabas.coordination.numbered import Record
from barnabas.coordination.records import OffsetCommitValue
from barnabas.protocol.messages.describe_groups import DescribedGroup


class GroupType(StrEnum):
    """The names that ListGroups uses."""

    CLASSIC = "classic"


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

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool = False
    ) -> None:
        """Refuse a commit that does not come from the present generation."""
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
