"""The state of a controller: the image and the versions of the store's entries.

The module uses no store, clock or randomness. The caller first writes a plan's operations to the store. Then it calls
`committed`, which makes the next image and returns the instructions.

Rules
  1. The image is never ahead of the store: it changes only in `committed`, and in `observe` with entries that were read.
  2. At most one plan is in progress; the next command is planned on the resulting image.
  3. In a cluster only the elected controller plans for others, and each such plan carries the fence of its election.
  4. A registration is ephemeral. Each process remembers the brokers whose registrations it saw disappear (`_departed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from barnabas.cluster.controller.election import ClaimOutcome, Election
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage, Topic
from barnabas.cluster.metadata.observation import Observation, observe_all
from barnabas.cluster.metadata.store_entries import ControllerEntry
from barnabas.cluster.planning.instructions import Instruction, UpdateBrokerConfig
from barnabas.cluster.planning.leadership import Policy
from barnabas.cluster.planning.plan import Plan, PlanBuilder, Versions
from barnabas.cluster.store.interface import Entry
from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import Layers
from barnabas.config.settings import topic_config
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import ALL_BROKERS, NO_LEADER, ResourceType


class ControllerState:
    """See the module.

    Args:
        static: the broker's configuration as given at start.
        entries: all entries of the store.
        alone: no other broker can join (the store is embedded).
        incarnation: unique id of this process among all processes with the broker's id.
    """

    def __init__(self, static: BrokerConfig, entries: Iterable[Entry], *, alone: bool, incarnation: str) -> None:
        self.static = static
        self.broker_id = static.node_id
        self.incarnation = incarnation
        self.election = Election(self.broker_id, incarnation)
        self._alone = alone
        self.config = static
        self._departed: frozenset[int] = frozenset()
        self.load(entries)

    def load(self, entries: Iterable[Entry]) -> None:
        """Load all entries of the store, at the start or after another broker wrote."""
        self.image = MetadataImage("")
        self.versions = Versions()
        self._controller_epoch: Entry | None = None
        self._controller_entry: ControllerEntry | None = None
        self._last_broker_epoch = self._next_block = 0
        self._unsettled: list[str] = []
        self.observe(observe_all(self.image, entries))
        self.settle_all()

    def committed(self, plan: Plan) -> tuple[Instruction, ...]:
        """Update the image after the plan's operations were written to the store; returns the instructions to execute."""
        if not plan.operations:
            return ()
        self.versions.learn(plan.operations)
        if plan.claims_controller:
            self.election.handle(ClaimOutcome.DONE)
        for broker in plan.delta.brokers:
            self._last_broker_epoch = max(self._last_broker_epoch, broker.epoch)
        self.image = self.image.apply(plan.delta)
        self._brokers_changed(plan.delta)
        before = self.config
        for instruction in plan.instructions:
            if isinstance(instruction, UpdateBrokerConfig):
                self.config = instruction.config
        self._unsettle_reconfigured(before, plan.delta)
        return plan.instructions

    def observe(self, found: Observation) -> None:
        """Apply changes of other writers; `settle` plans their effect on partitions."""
        if found.is_complete:
            self.versions = Versions()
        self.versions.reread(found.entries)
        if store_entries.CONTROLLER_EPOCH in found.entries:
            self._controller_epoch = found.entries[store_entries.CONTROLLER_EPOCH]
        if store_entries.CONTROLLER in found.entries:
            holder = found.entries[store_entries.CONTROLLER]
            self._controller_entry = None if holder is None else store_entries.decode_controller(holder.value)
        self._last_broker_epoch = max(self._last_broker_epoch, _number(found.entries.get(store_entries.BROKER_EPOCH)))
        self._next_block = max(self._next_block, _number(found.entries.get(store_entries.PRODUCER_IDS)))
        delta = found.delta
        self.image = self.image.apply(delta)
        self._brokers_changed(delta)
        before = self.config
        if any(kind is ResourceType.BROKER for kind, _ in delta.configs):
            self.config = self._config_now()
        self._unsettle_reconfigured(before, delta)

    def settle_all(self) -> None:
        """Mark every topic for `settle`: the possible leaders changed, or the progress of the last controller is unknown."""
        self._unsettled = list(self.image.topics)

    def _brokers_changed(self, delta: MetadataDelta) -> None:
        if delta.brokers or delta.gone_brokers:
            self._departed = self._departed.union(delta.gone_brokers).difference(self.image.brokers)
            self.settle_all()

    def _unsettle_reconfigured(self, before: BrokerConfig, delta: MetadataDelta) -> None:
        """Mark partitions without a leader for `settle` if a change of settings now allows an unclean election."""
        if self.config.unclean_leader_election_enable and not before.unclean_leader_election_enable:
            self.settle_all()
            return
        changed = (self.image.topic(name) for kind, name in delta.configs if kind is ResourceType.TOPIC)
        self._unsettle([topic.name for topic in changed if topic is not None and self._awaits_unclean_election(topic)])

    def _unsettle(self, topics: Sequence[str]) -> None:
        """Mark these topics for `settle` too."""
        if topics:
            self._unsettled = list(dict.fromkeys((*self._unsettled, *topics)))

    def _awaits_unclean_election(self, topic: Topic) -> bool:
        return any(state.leader == NO_LEADER for state in topic.partitions) and self._policy(topic.name).unclean

    @property
    def controller_epoch(self) -> int:
        """The epoch of the controller; 0 if it is unknown."""
        controller_entry = self.election.controller_entry if self.election.is_leading else self._controller_entry
        return 0 if controller_entry is None else controller_entry.epoch

    @property
    def deleted_topics(self) -> set[UUID]:
        """Topics whose deletion is stored, but whose logs this broker may still have."""
        mine = {self.broker_id, store_entries.ANY_BROKER}
        return {topic_id for topic_id, brokers in self.image.deletions.items() if not mine.isdisjoint(brokers)}

    def topic_config(self, name: str) -> TopicConfig:
        """The resolved settings of a topic."""
        return topic_config(self.image.topic_config(name), self.config.topic_defaults)

    def _policy(self, topic: str) -> Policy:
        config = self.topic_config(topic)
        return Policy(config.min_insync_replicas, config.unclean_leader_election_enable, config.flush_messages <= 1)

    def layers(self) -> Layers:
        of_broker = self.image.config(ResourceType.BROKER, str(self.broker_id))
        return Layers(self.config, of_broker, self.image.config(ResourceType.BROKER, ALL_BROKERS))

    def _new_plan(self) -> PlanBuilder:
        """An empty plan of the controller; raises KafkaError(NOT_CONTROLLER)."""
        if not self._alone and not self.election.is_leading:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return PlanBuilder(self.versions, self.election.fence)

    def _config_now(self) -> BrokerConfig:
        layers = {
            **self.image.config(ResourceType.BROKER, ALL_BROKERS),
            **self.image.config(ResourceType.BROKER, str(self.broker_id)),
        }
        return self.static.with_dynamic(layers) if layers else self.static


def _number(entry: Entry | None) -> int:
    return 0 if entry is None else int(store_entries.decode(entry.value))
