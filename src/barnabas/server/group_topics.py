"""The view of consumer groups on this broker: its topics as in the metadata, and the settings of a group.

Rules
  1. The names of topics stay the same object until a topic is created or deleted. So a group need not compare them one by one.
  2. The current bounds of the brokers limit a group's own settings, even if other bounds were in force when the settings were made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.config import definitions
from barnabas.coordination.consumer.interfaces import GroupSettings
from barnabas.protocol.values import ResourceType

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import Topic
    from barnabas.server.services import Services


class BrokerTopics:
    """`Topics` over the metadata of one broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._named: Mapping[str, Topic] = {}
        self._names: frozenset[str] = frozenset()

    @property
    def state(self) -> object:
        return self._services.metadata.topics

    @property
    def names(self) -> frozenset[str]:
        topics = self._services.metadata.topics
        if topics is not self._named:
            self._named = topics
            if self._names != topics.keys():
                self._names = frozenset(topics)
        return self._names

    def topic_id(self, name: str) -> UUID | None:
        return self._services.metadata.topic_id(name)

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._services.metadata.topic_name(topic_id)

    def partition_count(self, name: str) -> int:
        return self._services.metadata.partition_count(name)

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        from barnabas.server.patterns import matcher

        return matcher(pattern)

    def settings_of(self, group_id: str) -> GroupSettings:
        config, own = self._services.config, self._services.metadata.config(ResourceType.GROUP, group_id)
        if not own:
            return GroupSettings(
                config.group_consumer_session_timeout_ms,
                config.group_consumer_heartbeat_interval_ms,
                config.group_consumer_assignment_interval_ms,
            )
        return GroupSettings(
            _within(
                own,
                "consumer.session.timeout.ms",
                config.group_consumer_session_timeout_ms,
                (config.group_consumer_min_session_timeout_ms, config.group_consumer_max_session_timeout_ms),
            ),
            _within(
                own,
                "consumer.heartbeat.interval.ms",
                config.group_consumer_heartbeat_interval_ms,
                (config.group_consumer_min_heartbeat_interval_ms, config.group_consumer_max_heartbeat_interval_ms),
            ),
            _within(
                own,
                "consumer.assignment.interval.ms",
                config.group_consumer_assignment_interval_ms,
                (config.group_consumer_min_assignment_interval_ms, config.group_consumer_max_assignment_interval_ms),
            ),
        )


def _within(own: Mapping[str, str], name: str, otherwise: int, bounds: tuple[int, int]) -> int:
    """A group's own setting, limited by the bounds; without one, the brokers' setting."""
    text = own.get(name)
    if text is None:
        return otherwise
    value = definitions.GROUP[name].read(text)
    return min(max(value, bounds[0]), bounds[1]) if isinstance(value, int) else otherwise
