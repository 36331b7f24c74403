"""The metadata of a broker without topics, as groups see it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from barnabas.coordination.consumer.interfaces import GroupSettings
from barnabas.errors import ErrorCode, KafkaError


class NoTopics:
    """The metadata of a broker without topics, for tests with classic groups only."""

    state: object = None
    names: frozenset[str] = frozenset()

    def topic_id(self, name: str) -> UUID | None:
        """None: no topic has any name."""
        return None

    def topic_name(self, topic_id: UUID) -> str | None:
        """None: no topic has any id."""
        return None

    def partition_count(self, name: str) -> int:
        """0, as for a topic that does not exist."""
        return 0

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        """Raises KafkaError(INVALID_REGULAR_EXPRESSION): no test may call it."""
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION)

    def settings_of(self, group_id: str) -> GroupSettings:
        """Kafka's defaults."""
        return GroupSettings()
