"""Creates topics, deletes them and adds partitions; refuses requests with Kafka's messages.

Owns the rules of names, counts and assignments. Pure: every function takes the image and fills a `PlanBuilder`; each topic of a
request succeeds or fails separately.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from barnabas import limits
from barnabas.cluster.metadata.image import BrokerRegistration, MetadataImage, PartitionState, Topic
from barnabas.cluster.planning.instructions import CreateLog, DeleteLog
from barnabas.cluster.planning.placement import Ring, check_assignment, new_partitions
from barnabas.cluster.planning.plan import PlanBuilder
from barnabas.config.broker import BrokerConfig
from barnabas.config.settings import check_schema_validation, check_topic, topic_config
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import ResourceType

MAX_NAME_LENGTH = 249  # leaves room for "-<partition>.<id>-delete" in a file name of 255 bytes
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
METADATA_TOPIC = "__cluster_metadata"  # Kafka's own metadata log; clients may not create a topic of that name
BY_DEFAULT = -1


class NewTopic(Struct, frozen=True):
    """A requested topic.

    Args:
        partitions, replication_factor: BY_DEFAULT takes num.partitions and default.replication.factor.
        assignments: pairs of partition number and broker ids; then both counts are BY_DEFAULT.
        configs: pairs of key and text, in the order given.
    """

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class TopicOutcome(Struct, frozen=True):
    """The outcome for one topic: created (or valid, if only validated), or refused."""

    name: str
    error: KafkaError | None = None
    topic: Topic | None = None
    settings: dict[str, str] | None = None


class MorePartitions(Struct, frozen=True):
    """A request to grow a topic to `count` partitions; `assignments` are the brokers of each added partition."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def check_name(name: str) -> None:
    """Raises KafkaError(INVALID_TOPIC_EXCEPTION) for a name that no topic may have."""
    reason = _reason_against(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_legal_name(name: str) -> bool:
    """Whether a topic may have this name."""
    return _reason_against(name) is None


def _reason_against(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not LEGAL_NAME.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


R = TypeVar("R", NewTopic, MorePartitions)


def _outcomes(requests: Sequence[R], carry_out: Callable[[R], TopicOutcome]) -> list[TopicOutcome]:
    """One outcome for each name; a name that occurs twice gets one refusal."""
    times = Counter(request.name for request in requests)
    outcomes = {}
    for request in requests:
        try:
            if times[request.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            outcomes[request.name] = carry_out(request)
        except KafkaError as error:
            outcomes[request.name] = TopicOutcome(request.name, error)
    return list(outcomes.values())


class TopicPlanner:
    """Plans topics on one image.

    Args:
        config: with the dynamic settings applied.
        new_id: function that returns an unused topic id.
        broker_id: the broker that gets the instructions.
        departed: brokers that this process saw leave and that were not unregistered.
    """

    def __init__(
        self,
        image: MetadataImage,
        config: BrokerConfig,
        plan: PlanBuilder,
        *,
        broker_id: int,
        new_id: Callable[[], UUID],
        departed: Set[int],
    ) -> None:
        self.image = image
        self.config = config
        self.plan = plan
        self.broker_id = broker_id
        self.new_id = new_id
        self.departed = departed
        self.active = {broker_id: broker for broker_id, broker in image.brokers.items() if broker.is_active}
        self._placed_topics = 0  # of this plan

    @cached_property
    def _ring(self) -> Ring:
        return Ring({broker_id: broker for broker_id, broker in self.active.items() if self.image.has_open_log_dir(broker)})

    @cached_property
    def _away(self) -> tuple[tuple[int, ...], ...]:
        """Brokers that are down but may hold replicas when they are back, in groups.

        First registered brokers, then brokers that have replicas, then brokers that only existed at some time.
        """
        image = self.image
        registered, holders = image.brokers.keys() - self.active.keys(), image.holders() - image.brokers.keys()
        return tuple(tuple(sorted(some)) for some in (registered, holders, self.departed - image.brokers.keys() - holders))

    def _known(self, assignment: Sequence[int]) -> Set[int]:
        """The brokers that an assignment by hand may name: the registered ones; if it names another broker, all known ones."""
        registered = self.image.brokers.keys()
        return registered if registered >= set(assignment) else frozenset(registered).union(*self._away)

    def _place(self, partitions: int, replication_factor: int, start: int) -> list[tuple[int, ...]]:
        last_resort = self._away if replication_factor > len(self._ring) else ()
        takers = [[broker_id for broker_id in some if self._takes_replicas(broker_id)] for some in last_resort]
        return self._ring.place(partitions=partitions, replication_factor=replication_factor, start=start, last_resort=takers)

    def _takes_replicas(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id, BrokerRegistration(broker_id, ()))
        return self.image.has_open_log_dir(broker)

    def create(self, requests: Sequence[NewTopic]) -> list[TopicOutcome]:
        """Create topics; returns one outcome for each name. A name that occurs twice gets one refusal."""
        if sum(self._partitions_asked(request) for request in requests) > limits.MAX_PARTITIONS_PER_REQUEST:
            error = KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
            return [TopicOutcome(request.name, error) for request in requests]
        return _outcomes(requests, self._create_one)

    def _partitions_asked(self, request: NewTopic) -> int:
        if request.assignments:
            return len(request.assignments)
        return self.config.num_partitions if request.partitions == BY_DEFAULT else max(0, request.partitions)

    def _create_one(self, request: NewTopic) -> TopicOutcome:
        self._check_new_name(request.name)
        settings = _settings(request.configs)
        check_topic(settings, self.config.topic_defaults)
        check_schema_validation({}, settings, self.config)
        replicas = self._assigned(request) if request.assignments else self._placed(request)
        partitions = new_partitions(replicas, self.active)
        topic = Topic(request.name, self.new_id(), partitions)
        self.plan.create_topic(topic)
        if settings:
            self.plan.set_config((ResourceType.TOPIC, topic.name), settings)
        self._create_logs(topic, settings, first=0)
        return TopicOutcome(topic.name, topic=topic, settings=settings)

    def _check_new_name(self, name: str) -> None:
        if name == METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        check_name(name)
        if name in self.image.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        others = self.image.collisions.get(name.replace(".", "_"))
        if others:
            reason = f"Topic '{name}' collides with existing topic: {', '.join(others)}"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)

    def _placed(self, request: NewTopic) -> list[tuple[int, ...]]:
        if request.partitions != BY_DEFAULT and request.partitions < 1:
            reason = "Number of partitions was set to an invalid non-positive value."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        if request.replication_factor != BY_DEFAULT and request.replication_factor < 1:
            reason = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
        by_default = request.replication_factor == BY_DEFAULT
        placed = self._place(
            self._partitions_asked(request),
            self.config.default_replication_factor if by_default else request.replication_factor,
            len(self.image.topics) + self._placed_topics,
        )
        self._placed_topics += 1  # otherwise all topics of a request would start at the same broker of the ring
        return placed

    def _assigned(self, request: NewTopic) -> list[tuple[int, ...]]:
        kind = "A manual partition assignment was specified, but"
        if request.replication_factor != BY_DEFAULT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind} replication factor was not set to -1.")
        if request.partitions != BY_DEFAULT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind} numPartitions was not set to -1.")
        by_partition: dict[int, tuple[int, ...]] = {}
        for partition, brokers in request.assignments:
            if partition in by_partition:
                reason = f"Found multiple manual partition assignments for partition {partition}"
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
            check_assignment(self._known(brokers), brokers)
            by_partition[partition] = tuple(brokers)
        if sorted(by_partition) != list(range(len(by_partition))):
            reason = "partitions should be a consecutive 0-based integer sequence"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        return [by_partition[partition] for partition in range(len(by_partition))]

    def _create_logs(self, topic: Topic, settings: dict[str, str], first: int) -> None:
        config = topic_config(settings, self.config.topic_defaults)
        for number in range(first, len(topic.partitions)):
            state = topic.partitions[number]
            if self.broker_id in state.replicas:
                is_leader = state.leader == self.broker_id
                log = CreateLog(topic.name, number, topic.topic_id, config, state.leader_epoch, is_leader)
                self.plan.instructions.append(log)

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics that exist."""
        for name in names:
            topic = self.image.topics[name]
            self.plan.delete_topic(topic)
            for number, state in enumerate(topic.partitions):
                if self.broker_id in state.replicas:
                    self.plan.instructions.append(DeleteLog(name, number, topic.topic_id))

    def add_partitions(self, requests: Sequence[MorePartitions]) -> list[TopicOutcome]:
        """Add partitions to topics; returns one outcome for each name."""
        return _outcomes(requests, self._add_to_one)

    def _add_to_one(self, request: MorePartitions) -> TopicOutcome:
        topic = self.image.topics.get(request.name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        present = len(topic.partitions)
        if request.count == present:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
        if request.count < present:
            reason = f"The topic {topic.name} currently has {present} partition(s); {request.count} would not be an increase."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        if request.count - present > limits.MAX_PARTITIONS_PER_REQUEST:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        added = self._new_partitions(request, topic, request.count - present)
        after = replace(topic, partitions=topic.partitions + added)
        self.plan.change_topic(topic, after)
        self._create_logs(after, dict(self.image.topic_config(topic.name)), first=present)
        return TopicOutcome(topic.name)

    def _new_partitions(self, request: MorePartitions, topic: Topic, count: int) -> tuple[PartitionState, ...]:
        replication_factor = len(topic.partitions[0].replicas)
        if request.assignments is None:
            brokers = self._place(count, replication_factor, len(self.image.topics) + len(topic.partitions))
        else:
            if len(request.assignments) != count:
                reason = f"Attempted to add {count} additional partition(s), but only {len(request.assignments)} assignment(s) "
                reason += "were specified."
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
            for assignment in request.assignments:
                check_assignment(self._known(assignment), assignment, replication_factor)
            brokers = [tuple(assignment) for assignment in request.assignments]
        return new_partitions(brokers, self.active)


def _settings(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Settings by key; if a key was given twice, its last value counts. Raises KafkaError(INVALID_CONFIG) for a null value."""
    settings: dict[str, str] = {}
    for key, value in configs:
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {key}")
        settings[key] = value
    return settings
