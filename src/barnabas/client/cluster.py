"""Metadata of a cluster's brokers and topics, merged from the last Metadata responses.

One writer (`receive_metadata`), no I/O. A topic with another id was deleted and created again: it replaces the older one.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct, field

from barnabas.client.config import Address
from barnabas.client.errors import ConnectionFailed, PartitionError
from barnabas.client.plans import ANY_BROKER
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from barnabas.protocol.values import NO_CONTROLLER, NO_LEADER


class UnknownTopic(PartitionError):
    """According to every broker of the cluster, this topic or partition does not exist; an immediate retry does not help."""

    final = True

    def __init__(self, topic: str, partition: int | None = None) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic, partition)


class TopicReplaced(PartitionError):
    """According to every broker of the cluster, the topic of this name has another id than the expected one."""

    final = True

    def __init__(self, topic: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_ID, topic, None, "the topic was deleted and created again meanwhile")


class Broker(Struct, frozen=True):
    """The address of a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class Partition(Struct, frozen=True):
    """The leader of a partition; `leader` is NO_LEADER while there is none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()


class Topic(Struct, frozen=True):
    """A topic with its partitions by index; `topic_id` is ZERO_UUID if the broker gives none."""

    name: str
    topic_id: UUID
    partitions: dict[int, Partition]
    is_internal: bool = False


class Cluster(Struct):
    """The metadata of one client."""

    cluster_id: str | None = None
    controller_id: int = NO_CONTROLLER
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    read_at_ms: dict[str, float] = field(default_factory=dict)  # topic -> time at which its metadata arrived
    coordinators: dict[str, int] = field(default_factory=dict)  # transactional id -> its coordinator, if it was looked up

    def addresses(self, node_id: int, connected: Iterable[Address], bootstrap: Iterable[Address]) -> list[Address]:
        """The addresses to try for a broker, in order. ANY_BROKER means any broker; connected brokers come first.

        Raises:
            ConnectionFailed: no metadata has the address of the wanted broker.
        """
        if node_id != ANY_BROKER:
            raise ConnectionFailed(f"broker {node_id}", "the metadata does not have its address")
        known = [(broker.host, broker.port) for broker in self.brokers.values()]
        return list(dict.fromkeys([*connected, *known, *bootstrap]))

    def receive_metadata(self, response: MetadataResponse, now_ms: float) -> dict[str, ErrorCode]:
        """Merge a response; returns the topics that it refused, with the reason."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.brokers = {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        refused = {}
        for item in response.topics:
            name = item.name or ""
            if item.error_code:
                refused[name] = ErrorCode(item.error_code)
                self.forget(name)
            else:
                self.topics[name] = _topic(name, item)
                self.read_at_ms[name] = now_ms
        return refused

    def forget(self, topic: str) -> None:
        """Forget `topic`, so that the next use reads its metadata again."""
        self.topics.pop(topic, None)
        self.read_at_ms.pop(topic, None)

    def is_fresh(self, topic: str, now_ms: float, max_age_ms: float) -> bool:
        """Whether the metadata of `topic` is known and at most this old."""
        return topic in self.topics and now_ms - self.read_at_ms[topic] < max_age_ms

    def has(self, topic: str, partition: int | None) -> bool:
        """Whether the metadata has a partition (None: the topic)."""
        found = self.topics.get(topic)
        return found is not None and (partition is None or partition in found.partitions)

    def leader_of(self, topic: str, partition: int) -> tuple[Topic, Partition]:
        """The topic and the partition with a leader, from the stored metadata.

        Raises:
            PartitionError: UNKNOWN_TOPIC_OR_PARTITION or LEADER_NOT_AVAILABLE; newer metadata may resolve both.
        """
        found = self.topics.get(topic)
        if found is None or partition not in found.partitions:
            raise PartitionError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic, partition)
        it = found.partitions[partition]
        if it.leader == NO_LEADER or it.leader not in self.brokers:
            raise PartitionError(ErrorCode.LEADER_NOT_AVAILABLE, topic, partition)
        return found, it


def _topic(name: str, item: MetadataResponseTopic) -> Topic:
    partitions = {
        p.partition_index: Partition(
            p.partition_index,
            NO_LEADER if p.error_code == ErrorCode.LEADER_NOT_AVAILABLE else p.leader_id,
            p.leader_epoch,
            tuple(p.replica_nodes),
            tuple(p.isr_nodes),
        )
        for p in item.partitions
    }
    return Topic(name, item.topic_id or ZERO_UUID, dict(sorted(partitions.items())), item.is_internal)
