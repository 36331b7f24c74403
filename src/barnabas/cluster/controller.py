"""The controller: decides what becomes of topics and settings, on this broker's behalf or the cluster's.

Owns the current image, the versions of the store's entries, and with them every decision. No store, clock or randomness: a
command returns what to answer and a `Plan`; whoever carries it out writes the plan's operations to the store, and only when
they are written calls `committed`, which makes the image and hands out the instructions.

Rules
  1. The image is never ahead of the store: it changes in `committed` only.
  2. At most one plan is under way; the next command is planned on the image that the last one left.
  3. A command answers for each item of its request by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from barnabas.cluster import records
from barnabas.cluster.configs import ALL_BROKERS, ConfigPlanner, ResourceChange
from barnabas.cluster.deletion import DeleteOutcome, resolve_deletions
from barnabas.cluster.election import Claim, ClaimOutcome, Election, OfficeReadEvent
from barnabas.cluster.instructions import Instruction, UpdateBrokerConfig
from barnabas.cluster.internal_topics import internal_topic
from barnabas.cluster.metadata import (
    BrokerRegistration,
    MetadataDelta,
    MetadataImage,
    ResourceType,
)
from barnabas.cluster.plan import Plan, PlanBuilder, Versions
from barnabas.cluster.registration import register
from barnabas.cluster.store import ABSENT, Entry, Put
from barnabas.cluster.topics import MorePartitions, NewTopic, TopicOutcome, TopicPlanner
from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import Layers
from barnabas.config.settings import topic_config
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError

PRODUCER_ID_BLOCK = 1000  # ids a broker takes at once, as Kafka does
MAX_PRODUCER_ID = 2**63 - 1


class Controller:
    """See the module.

    Args:
        static: the broker's configuration as given at start.
        entries: everything the store holds.
        new_id: a topic id nobody has.
        alone: no other broker can ever join (the store is embedded).
        incarnation: names this process, among all that ever had the broker's id.
    """

    def __init__(
        self,
        static: BrokerConfig,
        entries: Iterable[Entry],
        *,
        new_id: Callable[[], UUID],
        alone: bool = True,
        incarnation: str = "",
    ) -> None:
        self.static = static
        self.broker_id = static.node_id
        self._new_id = new_id
        self._alone = alone
        self.election = Election(self.broker_id, incarnation)
        self.load(entries)

    def load(self, entries: Iterable[Entry]) -> None:
        """Start from what the store holds, at first or after somebody else wrote."""
        by_path = {entry.path: entry for entry in entries}
        self.versions = Versions(by_path.values())
        cluster = by_path.get(records.CLUSTER)
        topics = records.decode_topics(_under(by_path, records.TOPICS), _under(by_path, records.PARTITIONS))
        delta = MetadataDelta(
            topics=tuple(topics),
            configs=dict(records.decode_config(entry) for entry in _under(by_path, records.CONFIGS)),
            brokers=tuple(records.decode_broker(entry) for entry in _under(by_path, records.BROKERS)),
        )
        controller = by_path.get(records.CONTROLLER)
        image = MetadataImage("" if cluster is None else records.decode(cluster.value)["id"])
        self.image = replace(
            image.apply(delta), controller_id=-1 if controller is None else records.decode_controller(controller.value).broker_id
        )
        self._controller_epoch = by_path.get(records.CONTROLLER_EPOCH)
        self._last_broker_epoch = _number(by_path.get(records.BROKER_EPOCH))
        self._next_block = _number(by_path.get(records.PRODUCER_IDS))
        self.config = self._config_now()

    def committed(self, plan: Plan) -> tuple[Instruction, ...]:
        """The plan's operations are in the store: the image follows, and these are the instructions to carry out."""
        if not plan.operations:
            return ()
        self.versions.learn(plan.operations)
        if plan.claims_office:
            self.election.handle(ClaimOutcome.DONE)
        for broker in plan.delta.brokers:
            self._last_broker_epoch = max(self._last_broker_epoch, broker.epoch)
        self.image = self.image.apply(plan.delta)
        for instruction in plan.instructions:
            if isinstance(instruction, UpdateBrokerConfig):
                self.config = instruction.config
        return plan.instructions

    @property
    def deleted_topics(self) -> set[UUID]:
        """Topics whose deletion is written down and may not be carried out everywhere."""
        return {UUID(path.removeprefix(records.DELETED_TOPICS)) for path in self.versions.under(records.DELETED_TOPICS)}

    def forget_deleted_topics(self) -> Plan:
        """No log of them is left."""
        plan = PlanBuilder(self.versions, self.election.fence)
        for topic_id in self.deleted_topics:
            plan.remove(records.deleted_topic_path(topic_id))
        return plan.build()

    # Joining

    def set_cluster_id(self, cluster_id: str) -> Plan:
        """Name a new cluster; nothing to do for one that has a name."""
        if self.image.cluster_id:
            return Plan()
        put = Put(records.CLUSTER, records.encode({"id": cluster_id}), ABSENT)
        return Plan((put,), MetadataDelta(cluster_id=cluster_id))

    def register(self, broker: BrokerRegistration) -> Plan:
        """Announce this broker and, where nobody is, become controller; raises BrokerIdInUse."""
        found = self.image.brokers.get(broker.broker_id)
        registered, operations = register(broker, found, self._last_broker_epoch, self.versions)
        delta = MetadataDelta(brokers=(registered,))
        claims = self.versions.expected(records.CONTROLLER) == ABSENT
        if claims:
            for instruction in self.election.handle(OfficeReadEvent(None, self._controller_epoch)):
                if isinstance(instruction, Claim):
                    operations += instruction.operations
            delta = replace(delta, controller_id=broker.broker_id)
        return Plan(tuple(operations), delta, claims_office=claims)

    def bump_leader_epochs(self) -> Plan:
        """Start a new leader epoch in every partition this broker leads, after a stop that may have lost the logs' ends.

        Consumers that saw what was lost find out by the epoch (KIP-320).
        """
        plan = PlanBuilder(self.versions, self.election.fence)
        for topic in self.image.topics.values():
            states = tuple(
                replace(state, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
                if state.leader == self.broker_id
                else state
                for state in topic.partitions
            )
            if states != topic.partitions:
                plan.change_topic(topic, replace(topic, partitions=states))
        return plan.build()

    # Topics

    def create_topics(self, requests: Sequence[NewTopic]) -> tuple[list[TopicOutcome], Plan]:
        plan = PlanBuilder(self.versions, self.election.fence)
        return self._topics(plan).create(requests), plan.build()

    def auto_create(self, names: Iterable[str]) -> tuple[dict[str, KafkaError | None], Plan]:
        """Make the topics that are missing; None for each that then exists."""
        told: dict[str, KafkaError | None] = dict.fromkeys(names)
        missing = [name for name in told if name not in self.image.topics]
        requests = [internal_topic(name, self.config, alone=self._alone) or NewTopic(name) for name in missing]
        outcomes, plan = self.create_topics(requests)
        told.update((outcome.name, outcome.error) for outcome in outcomes)
        return told, plan

    def delete_topics(self, requests: Sequence[tuple[str | None, UUID]]) -> tuple[list[DeleteOutcome], Plan]:
        """Delete topics, each named or with its id."""
        if not self.config.delete_topic_enable:
            error = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
            return [DeleteOutcome(name, topic_id, error) for name, topic_id in requests], Plan()
        outcomes = resolve_deletions(self.image, requests)
        plan = PlanBuilder(self.versions, self.election.fence)
        names = dict.fromkeys(o.name for o in outcomes if o.error is None and o.name is not None)
        self._topics(plan).delete(names)
        return outcomes, plan.build()

    def create_partitions(self, requests: Sequence[MorePartitions]) -> tuple[list[TopicOutcome], Plan]:
        plan = PlanBuilder(self.versions, self.election.fence)
        return self._topics(plan).add_partitions(requests), plan.build()

    # Settings

    def alter_configs(self, requests: Sequence[ResourceChange]) -> tuple[list[KafkaError | None], Plan]:
        plan = PlanBuilder(self.versions, self.election.fence)
        outcomes = ConfigPlanner(self.image, self.static, self.config, plan).alter(requests)
        return outcomes, plan.build()

    def topic_config(self, name: str) -> TopicConfig:
        """What a topic's settings come to."""
        return topic_config(self.image.topic_config(name), self.config.topic_defaults)

    def layers(self) -> Layers:
        of_broker = self.image.config(ResourceType.BROKER, str(self.broker_id))
        return Layers(self.config, of_broker, self.image.config(ResourceType.BROKER, ALL_BROKERS))

    # Producer ids

    def take_producer_ids(self) -> tuple[range, Plan]:
        """A block of producer ids for this broker; they are its own once the plan is committed."""
        start = self._next_block
        if start > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no producer ids are left")
        self._next_block = start + PRODUCER_ID_BLOCK
        path = records.PRODUCER_IDS
        put = Put(path, records.encode(self._next_block), self.versions.expected(path))
        return range(start, self._next_block), Plan((put,))

    def _topics(self, plan: PlanBuilder) -> TopicPlanner:
        return TopicPlanner(self.image, self.config, plan, broker_id=self.broker_id, new_id=self._new_id)

    def _config_now(self) -> BrokerConfig:
        layers = {
            **self.image.config(ResourceType.BROKER, ALL_BROKERS),
            **self.image.config(ResourceType.BROKER, str(self.broker_id)),
        }
        return self.static.with_dynamic(layers) if layers else self.static


def _under(entries: dict[str, Entry], prefix: str) -> list[Entry]:
    return [entry for path, entry in sorted(entries.items()) if path.startswith(prefix)]


def _number(entry: Entry | None) -> int:
    return 0 if entry is None else int(records.decode(entry.value))
