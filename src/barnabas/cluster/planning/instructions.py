"""The instructions for a broker after a change of the metadata."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import PartitionState
from barnabas.config.broker import BrokerConfig
from barnabas.config.topic import TopicConfig


class CreateLog(Struct, frozen=True):
    """This broker gets a new replica and, with `is_leader`, leads the partition in `leader_epoch`."""

    topic: str
    partition: int
    topic_id: UUID
    config: TopicConfig
    leader_epoch: int = 0
    is_leader: bool = True


class DeleteLog(Struct, frozen=True):
    """The topic was deleted, or its replica was moved to other brokers; waiting requests for this partition end with an
    error."""

    topic: str
    partition: int
    topic_id: UUID


class ChangeReplica(Struct, frozen=True):
    """The changed state of a partition with a replica on this broker. A broker that stands alone gets it for a new leader epoch only.

    The replica becomes leader or follower; a leader of an older epoch stops leading. It comes after the CreateLog of the
    replica.
    """

    topic: str
    partition: int
    topic_id: UUID
    state: PartitionState


class StandDown(Struct, frozen=True):
    """In a cluster: other brokers may consider this broker dead. It leads and follows nothing until the next ChangeReplica."""


class ForgetTopics(Struct, frozen=True):
    """In a cluster: these topics were deleted, on any broker; drop state that is kept by their names."""

    names: tuple[str, ...]


class UpdateTopicConfig(Struct, frozen=True):
    """The settings of a topic changed; concerns every replica of the topic on this broker."""

    topic: str
    config: TopicConfig


class UpdateBrokerConfig(Struct, frozen=True):
    """Dynamic settings changed; changes of topics follow as UpdateTopicConfig."""

    config: BrokerConfig


class UpdateDeclared(Struct, frozen=True):
    """Declarations of these kinds changed."""

    kinds: frozenset[Kind]


Instruction = (
    CreateLog | DeleteLog | ChangeReplica | StandDown | ForgetTopics | UpdateTopicConfig | UpdateBrokerConfig | UpdateDeclared
)
