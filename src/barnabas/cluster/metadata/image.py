"""The metadata image: a broker's view of the cluster, and the deltas that lead from one image to the next.

Owns brokers, topics with their partitions, settings by resource, and declarations about principals. An image never changes:
`apply` creates the next one, which shares all unchanged parts. So code that holds an image across an await sees one moment of
the cluster.

Rules
  1. Topic names and topic ids are two keys of the same topics: `topics_by_id` holds exactly the values of `topics`.
  2. `epoch` grows by one with each delta.

Ugly: a delta copies the dictionaries it touches, O(topics) for each creation. A copy of 200,000 entries is about a millisecond
(dictionaries are copied as a block), and creations come in batches, so persistent maps, whose look-ups are slower, would cost more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from barnabas.cluster.metadata.declared import NOTHING, Changes, Declarations, Kind, apply_changes
from barnabas.config.cordoning import CORDONED_LOG_DIRS, cordoned_among, words_of
from barnabas.config.listeners import Endpoint
from barnabas.config.mirror_settings import MIRROR_PRODUCER_ID_END
from barnabas.protocol.values import NO_CONTROLLER, NO_LEADER, ResourceType
from barnabas.security.acls import AUDIT_TOPIC

OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC = "__consumer_offsets", "__transaction_state", "__share_group_state"
COORDINATED_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC})
INTERNAL_TOPICS = COORDINATED_TOPICS | {AUDIT_TOPIC}  # consumers that subscribe to all topics skip these
EMPTY: Mapping[str, str] = MappingProxyType({})
RANGE_BITS, RANGES_OF_CLUSTERS = 40, 1 << 20  # of producer ids of clusters with mirror links; 2^63 is the end


Resource = tuple[ResourceType, str]  # for a broker: its id as text, or ALL_BROKERS


class BrokerState(Enum):
    """The states of a live broker."""

    FENCED = "fenced"  # holds replicas, but neither leads nor is in sync
    ACTIVE = "active"
    SHUTTING_DOWN = "shutting-down"  # its leaderships must move away, and it leaves the in-sync replicas


class Kept(Enum):
    """The state of a broker's logs at its start."""

    ALL = "all"  # complete: the broker stopped cleanly, or only its process ended
    SYNCED = "synced"  # its machine lost power or was restarted: unsynced records may be lost
    UNKNOWN = "unknown"  # these may be other log directories than before


class LogEnd(NamedTuple):
    """The end of a broker's log of a lost partition."""

    topic_id: UUID
    partition: int
    leader_epoch: int  # of the report, which is void in a later epoch
    last_epoch: int  # epoch of the last record; -1 if the log is empty
    end_offset: int


class BrokerRegistration(Struct, frozen=True):
    """One broker that is alive."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = 0  # of this registration; unique, and higher each time the broker comes back
    incarnation: str = ""  # id of the process, by which it recognizes its own registration
    log_dirs: tuple[str, ...] = ()  # ids of its log directories
    log_dir_paths: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()  # `cordoned.log.dirs` at its start; dynamic settings override it
    state: BrokerState = BrokerState.ACTIVE
    # Matters while the broker is FENCED: before it is active, no partition may rely on records that it may have lost.
    kept: Kept = Kept.ALL
    log_ends: tuple[LogEnd, ...] = ()  # log ends of lost partitions; the controller chooses leaders by them
    offline: Mapping[UUID, tuple[int, ...]] = field(
        default_factory=dict
    )  # topic id -> partitions whose log is in a failed directory of this broker

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead and be in sync."""
        return self.state is BrokerState.ACTIVE

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class PartitionState(Struct, frozen=True):
    """The leader and the replicas of one partition.

    Invariants: leader is in isr, or NO_LEADER. isr and eligible are subsets of replicas without a common element, and last_known is a
    subset of replicas. The first of replicas is the preferred leader. A lost partition has no leader and no eligible replicas. During a
    move, replicas lists the target in its order, then the replicas to remove.
    """

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int = 0  # grows with each change of this state
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    # `planning/leadership.py` has the rules of these fields.
    eligible: tuple[int, ...] = ()  # may lead if no in-sync replica can
    is_lost: bool = False  # all in-sync replicas may have lost records: they become last known ones, and must not lead
    last_known: tuple[int, ...] = ()  # had all records, but may have lost the last ones in a power failure (KIP-966)

    @property
    def is_moving(self) -> bool:
        """Whether the replicas are being reassigned."""
        return bool(self.adding or self.removing)


class Topic(Struct, frozen=True):
    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...]  # the index is the partition number

    @property
    def is_internal(self) -> bool:
        """Whether the topic is internal."""
        return self.name in INTERNAL_TOPICS


class MetadataDelta(Struct, frozen=True):
    """Changes of an image: created or changed topics (complete), deleted names, added or removed brokers, replaced settings (an empty
    mapping removes them)."""

    topics: tuple[Topic, ...] = ()
    deleted_topics: tuple[str, ...] = ()
    configs: Mapping[Resource, Mapping[str, str]] = field(default_factory=dict)
    brokers: tuple[BrokerRegistration, ...] = ()
    gone_brokers: tuple[int, ...] = ()
    controller_id: int | None = None
    cluster_id: str | None = None
    # An empty tuple: the deletion is complete on all brokers.
    deletions: Mapping[UUID, tuple[int, ...]] = field(default_factory=dict)
    declared: Changes = field(default_factory=dict)


class MetadataImage(Struct, frozen=True):
    """The cluster at one moment. Callers may read the dictionaries directly, and must not change them."""

    cluster_id: str
    controller_id: int = NO_CONTROLLER
    epoch: int = 0
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[UUID, Topic] = field(default_factory=dict)
    configs: Mapping[Resource, Mapping[str, str]] = field(default_factory=dict)
    collisions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name with _ for . -> topics whose names have . or _
    deletions: Mapping[UUID, tuple[int, ...]] = field(
        default_factory=dict
    )  # topic id -> brokers that may still have logs of the deleted topic
    declared: Mapping[Kind, Declarations] = field(default_factory=dict)
    producer_id_end: int = 0  # no lower producer id is given out: records that were copied from another cluster may have it

    def topic(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def offline_brokers(self, topic_id: UUID, partition: int) -> frozenset[int]:
        """The live brokers whose log of the partition is in a failed directory."""
        return frozenset(
            broker.broker_id
            for broker in self.brokers.values()
            if broker.offline and partition in broker.offline.get(topic_id, ())
        )

    def holders(self) -> set[int]:
        """Every broker that has replicas, also brokers that are down; reads all partitions."""
        alike = {state.replicas for topic in self.topics.values() for state in topic.partitions}
        return {broker_id for replicas in alike for broker_id in replicas}

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return self.topics_by_id.get(topic_id)

    def topic_id(self, name: str) -> UUID | None:
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: UUID) -> str | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition(self, name: str, partition: int) -> PartitionState | None:
        topic = self.topics.get(name)
        return topic.partitions[partition] if topic is not None and 0 <= partition < len(topic.partitions) else None

    def partition_count(self, name: str) -> int:
        """The number of partitions of a topic; 0 if the topic is unknown."""
        topic = self.topics.get(name)
        return 0 if topic is None else len(topic.partitions)

    def config(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """The own settings of a resource, as text."""
        return self.configs.get((kind, name), EMPTY)

    def has_open_log_dir(self, broker: BrokerRegistration) -> bool:
        """Whether new partitions may be placed on a broker; false if all of its log directories are cordoned."""
        text = self.config(ResourceType.BROKER, str(broker.broker_id)).get(CORDONED_LOG_DIRS)
        words = broker.cordoned if text is None else words_of(text)
        return not words or len(cordoned_among(words, broker.log_dir_paths)) < len(broker.log_dir_paths)

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.configs.get((ResourceType.TOPIC, name), EMPTY)

    def declarations(self, kind: Kind) -> Declarations:
        """All declarations of a kind; the same object as long as none of them changes."""
        return self.declared.get(kind, NOTHING)

    def apply(self, delta: MetadataDelta) -> MetadataImage:
        """The image after `delta`; deletions come first, so a topic may be deleted and created again in one delta."""
        changes = {**self._apply_topics(delta), **self._apply_brokers(delta)}
        configs = {resource: settings for resource, settings in delta.configs.items() if settings}
        dropped = delta.configs.keys() | {(ResourceType.TOPIC, name) for name in delta.deleted_topics}
        if dropped:
            changed = dict(self.configs)  # copied as a whole, not entry by entry: there may be one entry per topic
            for resource in dropped:
                changed.pop(resource, None)
            changed.update(configs)
            changes["configs"] = changed
            changes["producer_id_end"] = max(
                self.producer_id_end, *_producer_id_ends(configs, delta.cluster_id or self.cluster_id)
            )
        if delta.deletions:
            waiting = {topic_id: left for topic_id, left in delta.deletions.items() if left}
            changes["deletions"] = {t: left for t, left in self.deletions.items() if t not in delta.deletions} | waiting
        if delta.declared:
            changes["declared"] = apply_changes(self.declared, delta.declared)
        if delta.controller_id is not None:
            changes["controller_id"] = delta.controller_id
        if delta.cluster_id is not None:
            changes["cluster_id"] = delta.cluster_id
        return replace(self, epoch=self.epoch + 1, **changes)

    def _apply_topics(self, delta: MetadataDelta) -> dict[str, object]:
        if not delta.topics and not delta.deleted_topics:
            return {}
        topics, by_id, collisions = dict(self.topics), dict(self.topics_by_id), dict(self.collisions)
        for name in delta.deleted_topics:
            topic = topics.pop(name, None)
            if topic is not None:
                del by_id[topic.topic_id]
                _discard(collisions, name)
        for topic in delta.topics:
            topics[topic.name] = by_id[topic.topic_id] = topic
            if "." in topic.name or "_" in topic.name:
                _discard(collisions, topic.name)
                plain = topic.name.replace(".", "_")
                collisions[plain] = (*collisions.get(plain, ()), topic.name)
        return {"topics": topics, "topics_by_id": by_id, "collisions": collisions}

    def _apply_brokers(self, delta: MetadataDelta) -> dict[str, object]:
        if not delta.brokers and not delta.gone_brokers:
            return {}
        brokers = {i: broker for i, broker in self.brokers.items() if i not in delta.gone_brokers}
        brokers.update((broker.broker_id, broker) for broker in delta.brokers)
        return {"brokers": brokers}

    def validate(self) -> None:
        """Asserts the invariants; for tests."""
        assert {t.topic_id: t for t in self.topics.values()} == dict(self.topics_by_id)
        for topic in self.topics.values():
            for state in topic.partitions:
                assert set(state.isr) <= set(state.replicas)
                assert set(state.eligible) <= set(state.replicas) - set(state.isr)
                assert set(state.last_known) <= set(state.replicas)
                assert set(state.adding) | set(state.removing) <= set(state.replicas)
                assert state.leader == NO_LEADER or state.leader in state.isr


def _discard(collisions: dict[str, tuple[str, ...]], name: str) -> None:
    plain = name.replace(".", "_")
    left = tuple(other for other in collisions.pop(plain, ()) if other != name)
    if left:
        collisions[plain] = left


def _producer_id_ends(configs: Mapping[Resource, Mapping[str, str]], cluster_id: str) -> list[int]:
    """The producer ids below which none is given out because of these settings.

    A cluster with a mirror link has a range of ids of its own, long before the first promotion. Ids of producers here must not meet those
    of the source, which may begin at 0 too. Ids of the source that are known at a promotion are left out in any case.
    """
    ends = [int(settings[MIRROR_PRODUCER_ID_END]) for settings in configs.values() if MIRROR_PRODUCER_ID_END in settings]
    if any(kind is ResourceType.LINK for kind, _ in configs):
        ends.append((1 + crc32(cluster_id.encode()) % RANGES_OF_CLUSTERS) << RANGE_BITS)
    return [0, *ends]
