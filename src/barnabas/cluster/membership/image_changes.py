"""The instructions for a broker of a cluster that follow from the difference of two images.

Pure. A standalone broker gets its instructions from its own planners. In a cluster other brokers make most changes, so the
images are compared, but only in the parts that the delta touched.

Order: settings come first, so that no change of in-sync replicas uses an outdated `min.insync.replicas`. Then come deletions
(a topic may be deleted and created again in between), new logs and roles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from barnabas.cluster.controller.state import ControllerState
from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage, PartitionState, Topic
from barnabas.cluster.planning.instructions import (
    ChangeReplica,
    CreateLog,
    DeleteLog,
    ForgetTopics,
    Instruction,
    UpdateBrokerConfig,
    UpdateDeclared,
    UpdateTopicConfig,
)
from barnabas.config.topic import TopicConfig
from barnabas.protocol.values import ALL_BROKERS, ResourceType

ConfigOf = Callable[[str], TopicConfig]


def replica_instructions(
    before: MetadataImage, after: MetadataImage, topics: Iterable[str], broker_id: int, config_of: ConfigOf
) -> list[Instruction]:
    """The instructions for this broker's replicas of `topics`."""
    gone: list[Instruction] = []
    made: list[Instruction] = []
    changed: list[Instruction] = []
    for name in dict.fromkeys(topics):
        was, now = before.topics.get(name), after.topics.get(name)
        old, new = _mine(was, broker_id), _mine(now, broker_id)
        if was is not None:
            is_same = now is not None and now.topic_id == was.topic_id
            gone += [DeleteLog(name, number, was.topic_id) for number in old if not is_same or number not in new]
            if not is_same:
                old = {}
        if now is None:
            continue
        for number, state in new.items():
            if number not in old:
                made.append(_creation(now, number, state, broker_id, config_of(name)))
            if old.get(number) != state:
                changed.append(ChangeReplica(name, number, now.topic_id, state))
    deleted = tuple(
        name for name in dict.fromkeys(topics) if name in before.topics and after.topic_id(name) != before.topics[name].topic_id
    )
    forgotten = [ForgetTopics(deleted)] if deleted else []
    return [*gone, *forgotten, *made, *changed]


def all_replicas(image: MetadataImage, broker_id: int) -> Iterator[ChangeReplica]:
    """The role of every replica of this broker; the broker needs them after it had stood down."""
    for topic in image.topics.values():
        for number, state in _mine(topic, broker_id).items():
            yield ChangeReplica(topic.name, number, topic.topic_id, state)


def config_instructions(
    before: MetadataImage, after: MetadataImage, delta: MetadataDelta, core: ControllerState
) -> list[Instruction]:
    """Changed settings of this broker, and of topics that have and had replicas here; then declarations."""
    instructions: list[Instruction] = []
    mine = {(ResourceType.BROKER, ALL_BROKERS), (ResourceType.BROKER, str(core.broker_id))}
    if mine.isdisjoint(delta.configs):
        names = [name for kind, name in delta.configs if kind is ResourceType.TOPIC]
    else:
        instructions.append(UpdateBrokerConfig(core.config))
        names = list(after.topics)  # the broker's settings are the defaults of the topics
    kept = [name for name in names if name in after.topics and _mine(before.topics.get(name), core.broker_id)]
    instructions += [UpdateTopicConfig(name, core.topic_config(name)) for name in kept]
    kinds = frozenset(kind for kind, _ in delta.declared)
    return [*instructions, UpdateDeclared(kinds)] if kinds else instructions


def _mine(topic: Topic | None, broker_id: int) -> Mapping[int, PartitionState]:
    if topic is None:
        return {}
    return {number: state for number, state in enumerate(topic.partitions) if broker_id in state.replicas}


def _creation(topic: Topic, number: int, state: PartitionState, broker_id: int, config: TopicConfig) -> CreateLog:
    return CreateLog(topic.name, number, topic.topic_id, config, state.leader_epoch, is_leader=state.leader == broker_id)
