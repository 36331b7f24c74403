"""What the controller tells a broker to do after the metadata has changed."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from barnabas.config.broker import BrokerConfig
from barnabas.config.topic import TopicConfig


@dataclass(frozen=True, slots=True)
class CreateLog:
    """This broker holds a new replica and, where `is_leader`, leads it in `leader_epoch`."""

    topic: str
    partition: int
    topic_id: UUID
    config: TopicConfig
    leader_epoch: int = 0
    is_leader: bool = True


@dataclass(frozen=True, slots=True)
class DeleteLog:
    """The topic is gone; what waits for this partition must be answered with UNKNOWN_TOPIC_OR_PARTITION."""

    topic: str
    partition: int
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class UpdateTopicConfig:
    """The settings of a topic changed; for every replica of it on this broker."""

    topic: str
    config: TopicConfig


@dataclass(frozen=True, slots=True)
class UpdateBrokerConfig:
    """Dynamic settings changed; the topics' follow as UpdateTopicConfig."""

    config: BrokerConfig


Instruction = CreateLog | DeleteLog | UpdateTopicConfig | UpdateBrokerConfig
