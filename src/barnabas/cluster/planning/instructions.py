"""What the controller tells a broker to do after the metadata has changed."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import PartitionState
from barnabas.config.broker import BrokerConfig
from barnabas.config.topic import TopicConfig


class CreateLog(Struct, frozen=True):
    """This broker holds a new replica and, where `is_leader`, leads it in `leader_epoch`."""

    topic: str
    partition: int
    topic_id: UUID
    config: TopicConfig
    leader_epoch: int = 0
    is_leader: bool = True


class DeleteLog(Struct, frozen=True):
    """The topic is gone, or was moved to other brokers; what waits for this partition is told so."""

    topic: str
    partition: int
    topic_id: UUID


class ChangeReplica(Struct, frozen=True):
    """In a cluster: the state of a partition that this broker has a replica of, now that it is new or changed.

    Who leads it, follows; who led it in an older epoch, stops. Comes after the CreateLog of a replica that is new here.
    """

    topic: str
    partition: int
    topic_id: UUID
    state: PartitionState


class StandDown(Struct, frozen=True):
    """In a cluster: this broker may have been given up by the others. It leads and follows nothing until it hears ChangeReplica."""


class ForgetTopics(Struct, frozen=True):
    """In a cluster: these topics are gone, on whichever brokers they lay; what is kept about them by name is void."""

    names: tuple[str, ...]


class UpdateTopicConfig(Struct, frozen=True):
    """The settings of a topic changed; for every replica of it on this broker."""

    topic: str
    config: TopicConfig


class UpdateBrokerConfig(Struct, frozen=True):
    """Dynamic settings changed; the topics' follow as UpdateTopicConfig."""

    config: BrokerConfig


class UpdateDeclared(Struct, frozen=True):
    """What is declared of these kinds changed."""

    kinds: frozenset[Kind]


Instruction = (
    CreateLog | DeleteLog | ChangeReplica | StandDown | ForgetTopics | UpdateTopicConfig | UpdateBrokerConfig | UpdateDeclared
)
