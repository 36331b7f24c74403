"""The controller: plans all changes of topics, partitions and settings, for a single broker or for a cluster.

Owns every decision that only the controller may make, based on `ControllerState`; `BrokerPlanner` has the changes that each
broker plans for itself. A command returns its answer and a `Plan`; each item of its request succeeds or fails separately. A
standalone broker runs the same commands, but no other broker can become controller.

Brokers that come and go, and settings that allow unclean elections, change many partitions. These changes are planned in steps
of some milliseconds, each with a commit of its own:

    controller.observe(found)
    while controller.is_unsettled:
        plan = controller.settle()
        ... commit it ...
        controller.committed(plan)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from msgspec.structs import replace

from barnabas.cluster.controller.broker_planner import BrokerPlanner
from barnabas.cluster.metadata.declared import check_key
from barnabas.cluster.metadata.image import Topic
from barnabas.cluster.planning.configs import MIN_IN_SYNC, ConfigPlanner, ResourceChange
from barnabas.cluster.planning.deletion import DeleteOutcome, resolve_deletions
from barnabas.cluster.planning.instructions import UpdateDeclared
from barnabas.cluster.planning.internal_topics import internal_topic
from barnabas.cluster.planning.partitions import InSyncRequest, MoveRequest, PartitionOutcome, PartitionPlanner
from barnabas.cluster.planning.plan import Declaring, Plan, PlanBuilder
from barnabas.cluster.planning.topics import MorePartitions, NewTopic, TopicOutcome, TopicPlanner
from barnabas.cluster.store.interface import Entry
from barnabas.config.broker import BrokerConfig
from barnabas.config.mirror_settings import MIRROR_LEADER_EPOCH_START, MIRROR_LINK, MIRROR_STATE, TRUNCATING
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import ALL_BROKERS, ResourceType

R = TypeVar("R")


class Controller(BrokerPlanner):
    """See the module; the arguments are those of `ControllerState` and

    Args:
        new_id: function that returns an unused topic id.
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

    # Brokers

    def unregister(self, broker_id: int) -> Plan:
        """Forget a broker that was removed for good; raises KafkaError.

        A broker that left stays known while it has replicas, or logs to remove. If this process saw the broker leave, the
        broker stays known until this call.
        """
        if broker_id in self.image.brokers:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {broker_id} is alive; stop it first.")
        waiting = [topic_id for topic_id, brokers in self.image.deletions.items() if broker_id in brokers]
        if not waiting and broker_id not in self._departed and broker_id not in self.image.holders():
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered.")
        plan = self._new_plan()
        self._departed -= {broker_id}
        self._forget(plan, broker_id, waiting)
        return plan.build()

    # Partitions

    def bump_leader_epochs(self) -> Plan:
        """Start a new leader epoch in every partition that this broker leads: its last stop may have lost the logs' ends.

        Consumers that read lost records detect it by the epoch (KIP-320).
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
    def is_unsettled(self) -> bool:
        """Whether brokers or settings changed and some of the resulting changes are not planned yet."""
        return bool(self._unsettled)

    def settle(self) -> Plan:
        """The next step of these changes; it may be empty although more steps follow."""
        plan = self._new_plan()
        planner = self._partitions(plan)
        self._unsettled = planner.settle(self._unsettled)
        planner.finish()
        return plan.build()

    def balance_leaders(self, limit: int, but: frozenset[int] = frozenset()) -> tuple[int, Plan]:
        """Move leadership of up to `limit` partitions back to their preferred leaders; returns the number of moved partitions.

        Args:
            but: brokers that get no leadership.
        """
        plan = self._new_plan()
        planner = self._partitions(plan)
        moved = planner.balance(limit, lambda leader: leader not in but)
        planner.finish()
        return moved, plan.build()

    def give_back(self, brokers: frozenset[int], limit: int) -> tuple[tuple[int, frozenset[int]], Plan]:
        """Move leadership of up to `limit` partitions back to these brokers, except to brokers that lag.

        A broker lags if it is not in sync in a partition that it should lead.

        Returns: the number of moved partitions, and the brokers that lag.
        """
        plan = self._new_plan()
        planner = self._partitions(plan)
        lagging = planner.lagging(brokers)
        moved = planner.balance(limit, lambda leader: leader in brokers and leader not in lagging)
        planner.finish()
        return (moved, lagging), plan.build()

    def alter_partitions(
        self, leader: int, broker_epoch: int, requests: Sequence[InSyncRequest]
    ) -> tuple[list[PartitionOutcome], Plan]:
        """Change the in-sync replicas at the request of a leader; raises KafkaError(STALE_BROKER_EPOCH).

        If the leader is about to stop, a replica that came into sync may lead instead, so these topics are settled again.
        """
        plan = self._new_plan()
        planner = self._partitions(plan)
        outcomes = planner.alter(leader, broker_epoch, requests)
        if leader not in planner.electorate.active:
            topics = (self.image.topic_name(request.topic_id) for request in requests)
            self._unsettle([name for name in topics if name is not None])
        return outcomes, plan.build()

    def elect_leaders(self, kind: int, partitions: Sequence[tuple[str, int]] | None) -> tuple[list[PartitionOutcome], Plan]:
        """Elect leaders of `partitions`; None means all partitions, and the result has only those that needed an election."""
        plan = self._new_plan()
        return self._partitions(plan).elect(kind, partitions), plan.build()

    def reassign(self, requests: Sequence[MoveRequest], *, may_change_factor: bool = True) -> tuple[list[PartitionOutcome], Plan]:
        plan = self._new_plan()
        return self._partitions(plan).reassign(requests, may_change_factor=may_change_factor), plan.build()

    def _partitions(self, plan: PlanBuilder) -> PartitionPlanner:
        return PartitionPlanner(self.image, self._policy, plan)

    # Topics

    def create_topics(self, requests: Sequence[NewTopic]) -> tuple[list[TopicOutcome], Plan]:
        plan = self._new_plan()
        return self._topics(plan).create(requests), plan.build()

    def auto_create(self, names: Iterable[str]) -> tuple[dict[str, KafkaError | None], Plan]:
        """Create the missing topics; None for each topic that exists afterwards."""
        told: dict[str, KafkaError | None] = dict.fromkeys(names)
        outcomes, plan = self.create_topics(self.missing_topics(told))
        told.update((outcome.name, outcome.error) for outcome in outcomes)
        return told, plan

    def missing_topics(self, names: Iterable[str]) -> list[NewTopic]:
        """Requests for the missing topics with default settings; internal topics have settings of their own."""
        missing = [name for name in names if name not in self.image.topics]
        return [internal_topic(name, self.config, alone=self._alone) or NewTopic(name) for name in missing]

    def delete_topics(self, requests: Sequence[tuple[str | None, UUID]]) -> tuple[list[DeleteOutcome], Plan]:
        """Delete topics, each given by its name or its id."""
        if not self.config.delete_topic_enable:
            error = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
            return [DeleteOutcome(name, topic_id, error) for name, topic_id in requests], Plan()
        outcomes = resolve_deletions(self.image, requests)
        plan = self._new_plan()
        names = dict.fromkeys(o.name for o in outcomes if o.error is None and o.name is not None)
        self._topics(plan).delete(names)
        return outcomes, plan.build()

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
        for topic in self._truncated_topics(plan):
            partitions.begin_epochs_of_cut(topic)
        for topic, first in self._promoted_topics(plan):
            partitions.begin_epochs(topic, first)
        partitions.finish()
        return outcomes, plan.build()

    def _truncated_topics(self, plan: PlanBuilder) -> Iterable[Topic]:
        """The copies whose records were cut off, and that follow their source from now on. Each begins a leader epoch, by which replicas
        that were away, and consumers, learn of the cut."""
        for (kind, name), settings in plan.configs.items():
            was = self.image.config(kind, name).get(MIRROR_STATE) if kind is ResourceType.TOPIC else None
            if was == TRUNCATING and settings.get(MIRROR_STATE) != TRUNCATING:
                yield self.image.topics[name]

    def _promoted_topics(self, plan: PlanBuilder) -> Iterable[tuple[Topic, int]]:
        """The copies that become ordinary topics, each with a leader epoch above those of the source. A client that has followed the
        source takes metadata with a lower epoch for outdated."""
        for (kind, name), settings in plan.configs.items():
            was_copy = kind is ResourceType.TOPIC and MIRROR_LINK in self.image.config(kind, name)
            if was_copy and MIRROR_LINK not in settings and MIRROR_LEADER_EPOCH_START in settings:
                yield self.image.topics[name], int(settings[MIRROR_LEADER_EPOCH_START])

    def _topics_whose_minimum_changes(self, plan: PlanBuilder) -> Iterable[tuple[Topic, int]]:
        """The topics whose min.insync.replicas changes, each with the resulting value; 1 if neither the topic nor all brokers
        have one."""
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

    def _topics(self, plan: PlanBuilder) -> TopicPlanner:
        return TopicPlanner(self.image, self.config, plan, broker_id=self.broker_id, new_id=self._new_id, departed=self._departed)
