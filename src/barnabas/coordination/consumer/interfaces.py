"""What consumer groups need to know of the rest of the broker: which topics there are, and the settings of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol
from uuid import UUID


class GroupSettings(NamedTuple):
    """What holds for one group now: its own settings within the brokers' bounds, else the brokers'."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class Topics(Protocol):
    """The topics as they are at this moment; asked anew each time."""

    @property
    def state(self) -> object:
        """Another object whenever a topic, or one of its partitions, may have changed."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """Of all topics; the same object as long as none comes or goes."""
        ...

    def topic_id(self, name: str) -> UUID | None: ...
    def topic_name(self, topic_id: UUID) -> str | None: ...
    def partition_count(self, name: str) -> int:
        """0 for a topic that does not exist."""
        ...

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        """Whether a whole name is of a pattern that a peer sent, in time that does not depend on the pattern.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        ...

    def settings_of(self, group_id: str) -> GroupSettings: ...
