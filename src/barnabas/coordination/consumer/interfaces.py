"""The interface of consumer groups to the rest of the broker: the topics, and the settings of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol
from uuid import UUID


class GroupSettings(NamedTuple):
    """The current settings of one group: its own ones within the brokers' bounds, otherwise those of the brokers."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class Topics(Protocol):
    """The current topics; callers read them again each time."""

    @property
    def state(self) -> object:
        """An object that differs from the last one if a topic, or one of its partitions, may have changed."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The names of all topics; the same object while none is created or deleted."""
        ...

    def topic_id(self, name: str) -> UUID | None: ...
    def topic_name(self, topic_id: UUID) -> str | None: ...
    def partition_count(self, name: str) -> int:
        """The number of partitions; 0 for a topic that does not exist."""
        ...

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        """A function that matches whole names with a peer's pattern. Its time does not depend on the pattern.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        ...

    def settings_of(self, group_id: str) -> GroupSettings: ...
