"""The controller: decides what becomes of topics and settings, on this broker's behalf or the cluster's.

Owns every decision, on what `ControllerState` knows. A command returns what to answer and a `Plan`, and answers for each item
of its request by itself. A single broker is a cluster of one: it runs the same commands, only that nobody can take its office.

What becomes of partitions when brokers come and go is planned in steps of some milliseconds, each a commit of its own:

    controller.observe(found)
    while controller.is_unsettled:
        plan = controller.settle()
        ... commit it ...
        controller.committed(plan)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from barnabas.cluster.controller.burial import Dead, Successor, bury
from barnabas.cluster.controller.election import Claim, OfficeReadEvent
from barnabas.cluster.controller.registration import register, update
from barnabas.cluster.controller.state import ControllerState
from barnabas.cluster.metadata import records
from barnabas.cluster.metadata.declared import check_key
from barnabas.cluster.metadata.image import (
    ALL_BROKERS,
    NO_CONTROLLER,
    BrokerRegistration,
    BrokerState,
    LogEnd,
    MetadataDelta,
    ResourceType,
    Topic,
)
from barnabas.cluster.planning.configs import MIN_IN_SYNC, ConfigPlanner, ResourceChange
from barnabas.cluster.planning.deletion import DeleteOutcome, resolve_deletions
from barnabas.cluster.planning.instructions import UpdateDeclared
from barnabas.cluster.planning.internal_topics import internal_topic
from barnabas.cluster.planning.leadership import Electorate, Policy, counts_on
from barnabas.cluster.planning.partitions import InSyncRequest, MoveRequest, PartitionOutcome, PartitionPlanner
from barnabas.cluster.planning.plan import Declaring, Plan, PlanBuilder
from barnabas.cluster.planning.topics import MorePartitions, NewTopic, TopicOutcome, TopicPlanner
from barnabas.cluster.store.interface import ABSENT, Entry, Operation, Put, Remove
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError

R = TypeVar("R")
PRODUCER_ID_BLOCK = 1000  # ids a broker takes at once, as Kafka does
MAX_PRODUCER_ID = 2**63 - 1


class Controller(ControllerState):
    """See the module; the arguments are those of `ControllerState` and

    Args:
        new_id: a topic id nobody has.
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
        self._new_id = new_id
        super().__init__(static, entries, alone=alone, incarnation=incarnation)

    # Joining

    def set_cluster_id(self, cluster_id: str) -> Plan:
        """Name a new cluster; nothing to do for one that has a name."""
        if self.image.cluster_id:
            return Plan()
        put = Put(records.CLUSTER, records.encode({"id": cluster_id}), ABSENT)
        return Plan((put,), MetadataDelta(cluster_id=cluster_id))

    def set_minimum(self) -> Plan:
        """Write down how many replicas have to be in sync where topics do not say it; nothing to do where that is done.

        From then on it is the same for every broker, whatever its own configuration says (as in Kafka, with eligible leader replicas).
        """
        resource = (ResourceType.BROKER, ALL_BROKERS)
        settings = self.image.config(*resource)
        if MIN_IN_SYNC in settings:
            return Plan()
        plan = PlanBuilder(self.versions)
        plan.set_config(resource, {**settings, MIN_IN_SYNC: str(self.static.min_insync_replicas)})
        return plan.build()

    def register(self, broker: BrokerRegistration) -> Plan:
        """Announce this broker and, where nobody is, become controller; raises BrokerIdInUse.

        In a cluster it begins FENCED, see `has_old_duties`.
        """
        found = self.image.brokers.get(broker.broker_id)
        if not self._alone:
            broker = replace(broker, state=BrokerState.FENCED)
        registered, operations = register(broker, found, self._last_broker_epoch, self.versions)
        delta = MetadataDelta(brokers=(registered,))
        if found is not None and self._office_of(found):
            operations.append(Remove(records.CONTROLLER, self.versions.expected(records.CONTROLLER)))
            delta = replace(delta, controller_id=NO_CONTROLLER)
        claims = self.versions.expected(records.CONTROLLER) == ABSENT
        if claims:
            operations += self._claim()
            delta = replace(delta, controller_id=broker.broker_id)
        return Plan(tuple(operations), delta, claims_office=claims)

    def _claim(self) -> tuple[Operation, ...]:
        """What makes this broker controller where nobody is."""
        instructions = self.election.handle(OfficeReadEvent(None, self._controller_epoch))
        return tuple(each for claim in instructions if isinstance(claim, Claim) for each in claim.operations)

    def _office_of(self, former: BrokerRegistration) -> bool:
        """Whether a former process of this broker is controller by the books."""
        return self._holds_office(former) and former.incarnation != self.incarnation

    def _holds_office(self, broker: BrokerRegistration) -> bool:
        office = self._office
        return office is not None and (office.broker_id, office.incarnation) == (broker.broker_id, broker.incarnation)

    def bump_leader_epochs(self) -> Plan:
        """Start a new leader epoch in every partition this broker leads, after a stop that may have lost the logs' ends.

        Consumers that saw what was lost find out by the epoch (KIP-320).
        """
        plan = self._new_plan()
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

    @property
    def has_old_duties(self) -> bool:
        """Whether partitions still count on this broker as it was before it registered: then it may not become ACTIVE.

        Going on to lead in the same leader epoch, after a stop that may have cost the end of the log, would give offsets that others
        have already read to other records. Once the controller has seen it fenced, it leads nothing and is in sync where it is the
        last hope only; from there on it is elected in an epoch of its own. Where it may have lost records, it is in sync nowhere.
        """
        mine = self.image.brokers.get(self.broker_id)
        electorate = Electorate.of(() if mine is None else (mine,))
        for topic in self.image.topics.values():
            lossy = bool(electorate.doubtful) and self.broker_id in electorate.lossy(self._policy(topic.name))
            unknown = self.broker_id in electorate.unknown
            if any(counts_on(state, self.broker_id, lossy=lossy, unknown=unknown) for state in topic.partitions):
                return True
        return False

    def change_own_state(self, state: BrokerState) -> Plan:
        """Say what this broker may do now: it is ready, or it is about to stop."""
        broker = replace(self.image.brokers[self.broker_id], state=state)
        return Plan(tuple(update(broker, self.versions)), MetadataDelta(brokers=(broker,)))

    def say_log_ends(self, ends: tuple[LogEnd, ...]) -> Plan:
        """Tell whoever is controller how far the logs of lost partitions go here, and of no others."""
        broker = replace(self.image.brokers[self.broker_id], log_ends=ends)
        return Plan(tuple(update(broker, self.versions)), MetadataDelta(brokers=(broker,)))

    def say_offline(self, offline: Mapping[UUID, tuple[int, ...]]) -> Plan:
        """Tell whoever is controller of which partitions the log here is in a directory that failed."""
        broker = replace(self.image.brokers[self.broker_id], offline=offline)
        return Plan(tuple(update(broker, self.versions)), MetadataDelta(brokers=(broker,)))

    def bury(self, dead: Dead) -> Plan | None:
        """Take away the registration of one of these, if that is for this broker to do."""
        for broker in dead.among(self.image.brokers):
            if self._holds_office(broker):
                return bury(broker, self.versions, successor=Successor(self.broker_id, self._claim()))
            if self.election.is_leading:
                return bury(broker, self.versions, successor=None)
        return None

    def unregister(self, broker_id: int) -> Plan:
        """Wait for a broker no more that is gone for good; raises KafkaError."""
        if broker_id in self.image.brokers:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {broker_id} is alive; stop it first.")
        waiting = [topic_id for topic_id, brokers in self.image.deletions.items() if broker_id in brokers]
        known = any(broker_id in state.replicas for topic in self.image.topics.values() for state in topic.partitions)
        if not waiting and not known:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered.")
        plan = self._new_plan()
        self._forget(plan, broker_id, waiting)
        return plan.build()

    # Partitions

    @property
    def is_unsettled(self) -> bool:
        """Brokers came or went, and not all that follows is done."""
        return bool(self._unsettled)

    def settle(self) -> Plan:
        """The next step of what follows from brokers that came or went; it may be empty though more steps follow."""
        plan = self._new_plan()
        planner = self._partitions(plan)
        self._unsettled = planner.settle(self._unsettled)
        planner.finish()
        return plan.build()

    def balance_leaders(self, limit: int) -> Plan:
        """Give up to `limit` partitions back to their preferred leaders."""
        plan = self._new_plan()
        planner = self._partitions(plan)
        planner.balance(limit)
        planner.finish()
        return plan.build()

    def alter_partitions(
        self, leader: int, broker_epoch: int, requests: Sequence[InSyncRequest]
    ) -> tuple[list[PartitionOutcome], Plan]:
        """A leader says who is in sync with it; raises KafkaError(STALE_BROKER_EPOCH)."""
        plan = self._new_plan()
        return self._partitions(plan).alter(leader, broker_epoch, requests), plan.build()

    def elect_leaders(self, kind: int, partitions: Sequence[tuple[str, int]] | None) -> tuple[list[PartitionOutcome], Plan]:
        """For None, all partitions are meant, and only those are answered for that needed it."""
        plan = self._new_plan()
        return self._partitions(plan).elect(kind, partitions), plan.build()

    def reassign(self, requests: Sequence[MoveRequest], *, may_change_factor: bool = True) -> tuple[list[PartitionOutcome], Plan]:
        plan = self._new_plan()
        return self._partitions(plan).reassign(requests, may_change_factor=may_change_factor), plan.build()

    def _partitions(self, plan: PlanBuilder) -> PartitionPlanner:
        return PartitionPlanner(self.image, self._policy, plan)

    def _policy(self, topic: str) -> Policy:
        config = self.topic_config(topic)
        return Policy(config.min_insync_replicas, config.unclean_leader_election_enable, config.flush_messages <= 1)

    # Topics

    def create_topics(self, requests: Sequence[NewTopic]) -> tuple[list[TopicOutcome], Plan]:
        plan = self._new_plan()
        return self._topics(plan).create(requests), plan.build()

    def auto_create(self, names: Iterable[str]) -> tuple[dict[str, KafkaError | None], Plan]:
        """Make the topics that are missing; None for each that then exists."""
        told: dict[str, KafkaError | None] = dict.fromkeys(names)
        outcomes, plan = self.create_topics(self.missing_topics(told))
        told.update((outcome.name, outcome.error) for outcome in outcomes)
        return told, plan

    def missing_topics(self, names: Iterable[str]) -> list[NewTopic]:
        """Those that are not there, as they are made where nobody says how: internal ones by their own settings."""
        missing = [name for name in names if name not in self.image.topics]
        return [internal_topic(name, self.config, alone=self._alone) or NewTopic(name) for name in missing]

    def delete_topics(self, requests: Sequence[tuple[str | None, UUID]]) -> tuple[list[DeleteOutcome], Plan]:
        """Delete topics, each named or with its id."""
        if not self.config.delete_topic_enable:
            error = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
            return [DeleteOutcome(name, topic_id, error) for name, topic_id in requests], Plan()
        outcomes = resolve_deletions(self.image, requests)
        plan = self._new_plan()
        names = dict.fromkeys(o.name for o in outcomes if o.error is None and o.name is not None)
        self._topics(plan).delete(names)
        return outcomes, plan.build()

    def forget_deleted_topics(self) -> Plan:
        """No log of them is left on this broker; each broker says so for itself, controller or not."""
        plan = PlanBuilder(self.versions)
        self._forget(plan, self.broker_id, self.deleted_topics)
        return plan.build()

    def _forget(self, plan: PlanBuilder, broker_id: int, topic_ids: Iterable[UUID]) -> None:
        """A broker has no log of these topics any more."""
        for topic_id in topic_ids:
            brokers = self.image.deletions.get(topic_id)
            if brokers is not None:
                gone = {broker_id, records.ANY_BROKER}
                plan.wait_for_deletion(topic_id, tuple(other for other in brokers if other not in gone))

    def create_partitions(self, requests: Sequence[MorePartitions]) -> tuple[list[TopicOutcome], Plan]:
        plan = self._new_plan()
        return self._topics(plan).add_partitions(requests), plan.build()

    # Settings

    def alter_configs(self, requests: Sequence[ResourceChange]) -> tuple[list[KafkaError | None], Plan]:
        plan = self._new_plan()
        outcomes = ConfigPlanner(self.image, self.static, self.config, plan, alone=self._alone).alter(requests)
        partitions = self._partitions(plan)
        for topic, minimum in self._topics_whose_minimum_changes(plan):
            partitions.forget_eligible(topic, minimum)
        partitions.finish()
        return outcomes, plan.build()

    def _topics_whose_minimum_changes(self, plan: PlanBuilder) -> Iterable[tuple[Topic, int]]:
        """And what it is then; 1, the least there is, where nobody has said it for all brokers."""
        before, of_all = self.image.config, (ResourceType.BROKER, ALL_BROKERS)
        default = int(plan.configs.get(of_all, before(*of_all)).get(MIN_IN_SYNC, 1))
        is_default_new = default != int(before(*of_all).get(MIN_IN_SYNC, 1))
        for topic in self.image.topics.values():
            resource = (ResourceType.TOPIC, topic.name)
            own_before = before(*resource).get(MIN_IN_SYNC)
            own = plan.configs.get(resource, before(*resource)).get(MIN_IN_SYNC)
            if own != own_before or (own is None and is_default_new):
                yield topic, default if own is None else int(own)

    # Declarations

    def declare(self, declaring: Declaring[R]) -> tuple[R, Plan]:
        plan = self._new_plan()
        answer, changes = declaring(self.image)
        for (kind, key), value in changes.items():
            check_key(key)
            if value != self.image.declarations(kind).get(key):
                plan.declare(kind, key, value)
        if plan.declared:
            plan.instructions.append(UpdateDeclared(frozenset(kind for kind, _ in plan.declared)))
        return answer, plan.build()

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
