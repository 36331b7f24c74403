"""The changes that every broker plans for itself: its registration, the content of the registration, and ids from the store.

These plans carry no fence, since any broker may write them at any time. Like every plan, they check the versions of the
entries that were read. If there is no controller, the plans of registering and of unregistering dead brokers also claim that
role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from msgspec.structs import replace

from barnabas.cluster.controller.dead_brokers import DeadBrokers, Successor, remove_registration
from barnabas.cluster.controller.election import Claim, ControllerReadEvent
from barnabas.cluster.controller.registration import register, update
from barnabas.cluster.controller.state import ControllerState
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, LogEnd, MetadataDelta
from barnabas.cluster.planning.configs import MIN_IN_SYNC
from barnabas.cluster.planning.leadership import Electorate, counts_on
from barnabas.cluster.planning.plan import Plan, PlanBuilder
from barnabas.cluster.store.interface import ABSENT, Operation, Put, Remove
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import ALL_BROKERS, NO_CONTROLLER, ResourceType

PRODUCER_ID_BLOCK = 1000  # ids that a broker takes at once, as in Kafka
MAX_PRODUCER_ID = 2**63 - 1
FORGOTTEN_AT_ONCE = 1_000  # deleted topics in one plan, because the size of a commit is limited


class BrokerPlanner(ControllerState):
    """See the module."""

    # Registration of this broker

    def set_cluster_id(self, cluster_id: str) -> Plan:
        """Set the id of a cluster that has none."""
        if self.image.cluster_id:
            return Plan()
        put = Put(store_entries.CLUSTER, store_entries.encode({"id": cluster_id}), ABSENT)
        return Plan((put,), MetadataDelta(cluster_id=cluster_id))

    def set_minimum(self) -> Plan:
        """Store the default of min.insync.replicas for all brokers, if it is not stored yet.

        From then on the value is the same for every broker, whatever the broker's own configuration says (as in Kafka, with
        eligible leader replicas).
        """
        resource = (ResourceType.BROKER, ALL_BROKERS)
        settings = self.image.config(*resource)
        if MIN_IN_SYNC in settings:
            return Plan()
        plan = PlanBuilder(self.versions)
        plan.set_config(resource, {**settings, MIN_IN_SYNC: str(self.static.min_insync_replicas)})
        return plan.build()

    def register(self, broker: BrokerRegistration) -> Plan:
        """Register this broker and, if there is no controller, make it controller; raises BrokerIdInUse.

        In a cluster the broker begins FENCED, see `has_old_duties`.
        """
        found = self.image.brokers.get(broker.broker_id)
        if not self._alone:
            broker = replace(broker, state=BrokerState.FENCED)
        registered, operations = register(broker, found, self._last_broker_epoch, self.versions)
        delta = MetadataDelta(brokers=(registered,))
        if found is not None and self._held_controller_entry(found):
            operations.append(Remove(store_entries.CONTROLLER, self.versions.expected(store_entries.CONTROLLER)))
            delta = replace(delta, controller_id=NO_CONTROLLER)
        claims = self.versions.expected(store_entries.CONTROLLER) == ABSENT
        if claims:
            operations += self._claim()
            delta = replace(delta, controller_id=broker.broker_id)
        return Plan(tuple(operations), delta, claims_controller=claims)

    def _claim(self) -> tuple[Operation, ...]:
        """Make this broker controller if there is none."""
        instructions = self.election.handle(ControllerReadEvent(None, self._controller_epoch))
        return tuple(each for claim in instructions if isinstance(claim, Claim) for each in claim.operations)

    def _held_controller_entry(self, former: BrokerRegistration) -> bool:
        """Whether the stored controller is a former process of this broker."""
        return self._holds_controller_entry(former) and former.incarnation != self.incarnation

    def _holds_controller_entry(self, broker: BrokerRegistration) -> bool:
        controller_entry = self._controller_entry
        return controller_entry is not None and (controller_entry.broker_id, controller_entry.incarnation) == (
            broker.broker_id,
            broker.incarnation,
        )

    @property
    def has_old_duties(self) -> bool:
        """Whether partitions still rely on this broker's state from before its registration; if so, it must not become ACTIVE.

        A broker that lost the end of its log must not continue to lead in the same leader epoch: it would give other records
        the offsets that clients have already read. Once the controller has seen the broker fenced, it leads nothing, and it is
        in sync only where no other replica is. Later elections have a higher epoch. If the broker may have lost records, it is
        in sync nowhere.
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
        """Change this broker's state because it is ready, or about to stop."""
        broker = replace(self.image.brokers[self.broker_id], state=state)
        return Plan(tuple(update(broker, self.versions)), MetadataDelta(brokers=(broker,)))

    def say_log_ends(self, ends: tuple[LogEnd, ...]) -> Plan:
        """Report to the controller the ends of this broker's logs of lost partitions, and of no others."""
        broker = replace(self.image.brokers[self.broker_id], log_ends=ends)
        return Plan(tuple(update(broker, self.versions)), MetadataDelta(brokers=(broker,)))

    def say_offline(self, offline: Mapping[UUID, tuple[int, ...]]) -> Plan:
        """Report to the controller the partitions whose log on this broker is in a failed directory."""
        broker = replace(self.image.brokers[self.broker_id], offline=offline)
        return Plan(tuple(update(broker, self.versions)), MetadataDelta(brokers=(broker,)))

    def unregister_dead(self, dead: DeadBrokers) -> Plan | None:
        """Remove the registration of one of these brokers; None if this broker does not have to do it."""
        for broker in dead.among(self.image.brokers):
            if self._holds_controller_entry(broker):
                return remove_registration(broker, self.versions, successor=Successor(self.broker_id, self._claim()))
            if self.election.is_leading:
                return remove_registration(broker, self.versions, successor=None)
        return None

    # Logs of deleted topics

    def forget_deleted_topics(self) -> Plan:
        """Record that no log of these topics is left on this broker; every broker does this for itself.

        One plan covers at most `FORGOTTEN_AT_ONCE` topics. Live brokers take turns, the lowest id first. They finish at about
        the same time, and if several wrote the same entry at once, the store would refuse all but one.
        """
        plan = PlanBuilder(self.versions)
        self._forget(plan, self.broker_id, sorted(filter(self._has_turn, self.deleted_topics))[:FORGOTTEN_AT_ONCE])
        return plan.build()

    def _has_turn(self, topic_id: UUID) -> bool:
        """Whether this broker may confirm now; it does not wait for brokers that are down, or that cannot confirm because a
        log directory failed."""
        found = (self.image.brokers.get(other) for other in self.image.deletions[topic_id] if other < self.broker_id)
        return not any(other is not None and other.is_active and not other.offline for other in found)

    def _forget(self, plan: PlanBuilder, broker_id: int, topic_ids: Iterable[UUID]) -> None:
        """Record that a broker has no log of these topics any more."""
        for topic_id in topic_ids:
            brokers = self.image.deletions.get(topic_id)
            if brokers is not None:
                gone = {broker_id, store_entries.ANY_BROKER}
                plan.wait_for_deletion(topic_id, tuple(other for other in brokers if other not in gone))

    # Producer ids

    def take_producer_ids(self) -> tuple[range, Plan]:
        """A block of producer ids; they belong to this broker once the plan is committed. Records of promoted copies have none of them."""
        start = max(self._next_block, self.image.producer_id_end)
        if start > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no producer ids are left")
        self._next_block = start + PRODUCER_ID_BLOCK
        path = store_entries.PRODUCER_IDS
        put = Put(path, store_entries.encode(self._next_block), self.versions.expected(path))
        return range(start, self._next_block), Plan((put,))
