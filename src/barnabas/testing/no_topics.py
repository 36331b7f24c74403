"""What groups see of the metadata of a broker without topics."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from barnabas.coordination.consumer.interfaces import GroupSettings
from barnabas.errors import ErrorCode, KafkaError


class NoTopics:
    """A broker without topics, for who has to do with classic groups only."""

    state: object = None
    names: frozenset[str] = frozenset()

    def topic_id(self, name: str) -> UUID | None:
        """None: there is none of any name."""
        return None

    def topic_name(self, topic_id: UUID) -> str | None:
        """None: there is none of any id."""
        return None

    def partition_count(self, name: str) -> int:
        """0, as of a topic that does not exist."""
        return 0

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        """Raises KafkaError(INVALID_REGULAR_EXPRESSION): nobody is to ask."""
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION)

    def settings_of(self, group_id: str) -> GroupSettings:
        """Kafka's defaults."""
        return GroupSettings()
