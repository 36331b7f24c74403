"""The controller of several brokers: brokers that come and go, commands on partitions, a second controller in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from uuid import UUID

import pytest

from barnabas.cluster import partition_planner, records
from barnabas.cluster.alter_partition import InSyncChange
from barnabas.cluster.candidate import Candidate
from barnabas.cluster.configs import AlterOperation, ResourceChange
from barnabas.cluster.controller import Controller
from barnabas.cluster.memory_store import MemoryStore, MemoryTree
from barnabas.cluster.metadata import NO_LEADER, BrokerRegistration, BrokerState, Kept, PartitionState, ResourceType
from barnabas.cluster.observation import observe_all
from barnabas.cluster.partition_planner import ElectionType, InSyncRequest, MoveRequest, PartitionOutcome, moves
from barnabas.cluster.plan import Plan
from barnabas.cluster.store import Entry, Put, StoreConflict
from barnabas.cluster.topics import MorePartitions, NewTopic
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.message import ZERO_UUID

RACKS = {1: "a", 2: "b", 3: "c"}


class Node:
    """A broker with a session and a controller core, driven by hand."""

    def __init__(self, tree: MemoryTree, broker_id: int, new_id: Callable[[], UUID], kept: Kept = Kept.ALL) -> None:
        config, _ = BrokerConfig.from_properties({"node.id": str(broker_id)})
        self.store = MemoryStore(tree)
        self.broker_id = broker_id
        incarnation = f"process-{self.store.session.session_id}"
        self.core = Controller(config, self.store.list("/"), new_id=new_id, alone=False, incarnation=incarnation)
        self.candidate = Candidate(self.store, self.core.election, lambda _: self.reload(), lambda _: None)
        broker = BrokerRegistration(broker_id, (), RACKS.get(broker_id), incarnation=incarnation, kept=kept)
        self.commit(self.core.register(broker))

    def reload(self) -> None:
        self.core.load(self.store.list("/"))

    def commit(self, plan: Plan) -> None:
        if plan.operations:
            self.store.commit(plan.operations)
            self.core.committed(plan)

    def settle(self) -> int:
        """Read who is there and do what follows; returns the number of commits."""
        self.core.observe(observe_all(self.core.image, self.store.list("/")))
        commits = 0
        while self.core.is_unsettled:
            plan = self.core.settle()
            self.commit(plan)
            commits += bool(plan.operations)
        return commits

    def state(self, topic: str = "t", partition: int = 0) -> PartitionState:
        found = self.core.image.partition(topic, partition)
        assert found is not None
        return found


class Cluster:
    """Brokers 1 to 3; broker 1 is controller."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.ids = count(1)
        self.nodes: dict[int, Node] = {}
        for broker_id in (1, 2, 3):
            self.restart(broker_id)

    def start(self, broker_id: int, kept: Kept = Kept.ALL) -> Node:
        """Registered and fenced."""
        self.nodes[broker_id] = Node(self.tree, broker_id, lambda: UUID(int=next(self.ids)), kept)
        return self.nodes[broker_id]

    @property
    def controller(self) -> Node:
        (node,) = [node for node in self.nodes.values() if node.core.election.is_leading]
        return node

    def create(self, *topics: NewTopic) -> None:
        outcomes, plan = self.controller.core.create_topics(topics)
        assert [outcome.error for outcome in outcomes] == [None] * len(topics)
        self.controller.commit(plan)

    def kill(self, broker_id: int) -> None:
        self.nodes.pop(broker_id).store.close()
        for node in self.nodes.values():
            node.candidate.settle()
        self.controller.settle()

    def restart(self, broker_id: int, kept: Kept = Kept.ALL) -> None:
        node = self.start(broker_id, kept)
        self.controller.settle()
        node.reload()
        assert not node.core.has_old_duties
        node.commit(node.core.change_own_state(BrokerState.ACTIVE))
        self.controller.settle()

    def check(self) -> None:
        """What is in the store is what the controller believes."""
        core = self.controller.core
        core.image.validate()
        fresh = Controller(core.static, self.nodes[core.broker_id].store.list("/"), new_id=UUID, alone=False)
        assert fresh.image.topics == core.image.topics
        assert fresh.image.brokers == core.image.brokers
        assert fresh.image.deletions == core.image.deletions
        assert fresh.image.configs == core.image.configs


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def in_sync_request(node: Node, *in_sync: int, topic: str = "t", partition: int = 0) -> InSyncRequest:
    state, brokers = node.state(topic, partition), node.core.image.brokers
    epochs = tuple((n, brokers[n].epoch) for n in in_sync)
    change = InSyncChange(state.leader_epoch, state.partition_epoch, epochs)
    return InSyncRequest(node.core.image.topics[topic].topic_id, partition, change)


def alter(cluster: Cluster, *in_sync: int, topic: str = "t", partition: int = 0) -> PartitionOutcome:
    node = cluster.controller
    leader = node.state(topic, partition).leader
    request = in_sync_request(node, *in_sync, topic=topic, partition=partition)
    (outcome,), plan = node.core.alter_partitions(leader, node.core.image.brokers[leader].epoch, [request])
    node.commit(plan)
    return outcome


def move(cluster: Cluster, *requests: MoveRequest) -> list[PartitionOutcome]:
    outcomes, plan = cluster.controller.core.reassign(requests)
    cluster.controller.commit(plan)
    return outcomes


def code(outcome: PartitionOutcome) -> ErrorCode | None:
    return None if outcome.error is None else outcome.error.code


def test_topics_are_spread_over_racks_and_brokers(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 6, 3), NewTopic("u", 3, 2))
    states = cluster.controller.core.image.topics["t"].partitions
    assert sorted(state.leader for state in states) == [1, 1, 2, 2, 3, 3]
    assert all(set(state.replicas) == {1, 2, 3} == set(state.isr) for state in states)
    cluster.check()


def test_only_the_controller_plans(cluster: Cluster) -> None:
    with pytest.raises(KafkaError) as caught:
        cluster.nodes[2].core.create_topics([NewTopic("t", 1, 1)])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


def test_leaders_move_from_a_broker_that_dies_and_back_to_it(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 6, 3))
    cluster.kill(2)
    states = cluster.controller.core.image.topics["t"].partitions
    assert all(state.leader in {1, 3} and set(state.isr) == {1, 3} for state in states)
    cluster.restart(2)
    for number in range(6):
        assert code(alter(cluster, 1, 2, 3, partition=number)) is None
    cluster.controller.commit(cluster.controller.core.balance_leaders(1))
    assert sum(state.leader == 2 for state in cluster.controller.core.image.topics["t"].partitions) == 1
    cluster.controller.commit(cluster.controller.core.balance_leaders(1000))
    assert all(state.leader == state.replicas[0] for state in cluster.controller.core.image.topics["t"].partitions)
    cluster.check()


def test_the_next_controller_finishes_what_the_first_began(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_planner, "MAX_CHUNKS_PER_PLAN", 1)
    cluster.create(*(NewTopic(f"t{n}", 2, 3) for n in range(6)))
    first = cluster.controller
    cluster.nodes.pop(3).store.close()
    first.core.observe(observe_all(first.core.image, first.store.list("/")))
    first.commit(first.core.settle())  # one chunk of six
    assert first.core.is_unsettled
    cluster.kill(1)
    assert cluster.controller.broker_id == 2
    for topic in cluster.controller.core.image.topics.values():
        assert all((state.leader, state.isr) == (2, (2,)) for state in topic.partitions)
    cluster.check()


def test_a_deposed_controller_changes_nothing(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 3))
    old = cluster.controller
    plans = [old.core.create_topics([NewTopic("late", 1, 1)])[1], old.core.reassign([MoveRequest("t", 0, (2, 3))])[1]]
    old.store.expire()
    cluster.nodes[2].candidate.settle()
    for plan in plans:
        with pytest.raises(StoreConflict) as caught:
            old.store.commit(plan.operations)
        assert caught.value.path == records.CONTROLLER_EPOCH
    old.reload()
    with pytest.raises(StoreConflict):  # also what it plans on what it reads now
        old.store.commit(old.core.create_topics([NewTopic("later", 1, 1)])[1].operations)
    old.candidate.settle()
    assert cluster.controller.broker_id == 2


def test_a_broker_that_shuts_down_leads_nothing_when_it_goes(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 6, 3), NewTopic("single", assignments=[(0, (2,))]))
    node = cluster.nodes[2]
    node.reload()
    node.commit(node.core.change_own_state(BrokerState.SHUTTING_DOWN))
    cluster.controller.settle()
    states = cluster.controller.core.image.topics["t"].partitions
    assert all(2 not in state.isr and state.leader != 2 for state in states)
    assert cluster.controller.state("single").leader == 2  # nobody else can
    cluster.kill(2)
    assert cluster.controller.state("single").leader == NO_LEADER
    assert cluster.controller.state("single").isr == (2,)


def test_new_partitions_avoid_brokers_that_leave(cluster: Cluster) -> None:
    node = cluster.nodes[3]
    node.reload()
    node.commit(node.core.change_own_state(BrokerState.FENCED))
    cluster.controller.settle()
    cluster.create(NewTopic("t", 4, 2))
    outcomes, plan = cluster.controller.core.create_partitions([MorePartitions("t", 6)])
    cluster.controller.commit(plan)
    assert outcomes[0].error is None
    assert {n for state in cluster.controller.core.image.topics["t"].partitions for n in state.replicas} == {1, 2}
    outcomes, _ = cluster.controller.core.create_topics([NewTopic("u", assignments=[(0, (3,))])])
    assert outcomes[0].error is not None
    assert outcomes[0].error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_leaders_report_who_is_in_sync(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 2, 3))
    leader = cluster.controller.state().leader
    others = [n for n in (1, 2, 3) if n != leader]
    assert alter(cluster, leader).state == cluster.controller.state()
    assert cluster.controller.state().isr == (leader,)
    core = cluster.controller.core
    epoch = core.image.brokers[leader].epoch
    stale = in_sync_request(cluster.controller, leader, *others)
    assert code(alter(cluster, leader, *others)) is None
    outcomes, plan = core.alter_partitions(
        leader, epoch, [stale, stale._replace(partition=7), stale._replace(topic_id=ZERO_UUID)]
    )
    assert [code(outcome) for outcome in outcomes] == [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert plan == Plan()
    with pytest.raises(KafkaError) as caught:
        core.alter_partitions(leader, epoch - 1, [stale])
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
    cluster.check()


def test_a_move_is_asked_for_listed_and_ends(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2)), (1, (1,))]))
    outcomes = move(
        cluster,
        MoveRequest("t", 0, (2, 3)),
        MoveRequest("t", 1, None),
        MoveRequest("t", 9, (1,)),
        MoveRequest("t", 1, ()),
        MoveRequest("t", 1, (1, 1)),
        MoveRequest("t", 1, (8,)),
    )
    refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    expected = [None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, refused, refused, refused]
    assert [code(outcome) for outcome in outcomes] == expected
    state = cluster.controller.state()
    assert (state.replicas, state.adding, state.removing) == ((2, 3, 1), (3,), (1,))
    image = cluster.controller.core.image
    assert moves(image, None) == [("t", 0, state)] == moves(image, [("t", (0, 1)), ("unknown", (0,))])
    assert code(alter(cluster, 1, 2, 3)) is ErrorCode.NEW_LEADER_ELECTED
    state = cluster.controller.state()
    assert (state.leader, state.replicas, set(state.isr), state.is_moving) == (2, (2, 3), {2, 3}, False)
    cluster.check()


def test_a_move_goes_on_under_the_next_controller(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (2,))]))
    assert code(move(cluster, MoveRequest("t", 0, (3,)))[0]) is None
    cluster.kill(1)
    assert code(alter(cluster, 2, 3)) is ErrorCode.NEW_LEADER_ELECTED
    assert (cluster.controller.state().leader, cluster.controller.state().replicas) == (3, (3,))


def test_the_number_of_replicas_may_be_fixed(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2))]))
    outcomes, _ = cluster.controller.core.reassign([MoveRequest("t", 0, (1, 2, 3))], may_change_factor=False)
    assert code(outcomes[0]) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_elections_are_held_on_request(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2)), (1, (2, 3)), (2, (3,))]))
    core = cluster.controller.core
    outcomes, _ = core.elect_leaders(ElectionType.PREFERRED, [("t", 0), ("t", 9), ("u", 0)])
    expected = [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [code(outcome) for outcome in outcomes] == expected
    assert core.elect_leaders(ElectionType.PREFERRED, None) == ([], Plan())
    cluster.kill(2)
    cluster.kill(3)
    outcomes, _ = core.elect_leaders(ElectionType.UNCLEAN, None)
    assert [(o.partition, code(o)) for o in outcomes] == [(n, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE) for n in (1, 2)]
    cluster.restart(2)
    outcomes, plan = core.elect_leaders(ElectionType.UNCLEAN, [("t", 1)])
    assert [code(o) for o in outcomes] == [None]
    cluster.controller.commit(plan)
    assert (cluster.controller.state("t", 1).leader, cluster.controller.state("t", 1).isr) == (2, (2,))
    with pytest.raises(KafkaError) as caught:
        core.elect_leaders(5, None)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_preferred_leader_that_is_not_in_sync_is_not_available(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (2, 1))]))
    cluster.kill(2)
    cluster.restart(2)
    outcomes, _ = cluster.controller.core.elect_leaders(ElectionType.PREFERRED, None)
    assert [code(o) for o in outcomes] == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


def test_a_deletion_waits_for_brokers_that_are_down(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 3, 3))
    cluster.kill(3)
    core = cluster.controller.core
    topic_id = core.image.topics["t"].topic_id
    outcomes, plan = core.delete_topics([("t", ZERO_UUID)])
    assert outcomes[0].error is None
    cluster.controller.commit(plan)
    for broker_id, left in ((1, (2, 3)), (2, (3,))):
        node = cluster.nodes[broker_id]
        node.reload()
        node.commit(node.core.forget_deleted_topics())
        core.load(cluster.controller.store.list("/"))
        assert core.image.deletions == {topic_id: left}
    cluster.create(NewTopic("t", 1, 2))  # the name is free meanwhile
    cluster.check()
    cluster.restart(3)
    third = cluster.nodes[3]
    assert third.core.deleted_topics == {topic_id}
    third.commit(third.core.forget_deleted_topics())
    core.load(cluster.controller.store.list("/"))
    assert core.image.deletions == {}
    cluster.check()


def test_a_broker_that_is_gone_for_good_is_waited_for_no_more(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 3))
    core = cluster.controller.core
    for broker_id, expected in ((3, ErrorCode.INVALID_REQUEST), (9, ErrorCode.BROKER_ID_NOT_REGISTERED)):
        with pytest.raises(KafkaError) as caught:
            core.unregister(broker_id)
        assert caught.value.code is expected
    cluster.kill(3)
    cluster.controller.commit(core.delete_topics([("t", ZERO_UUID)])[1])
    cluster.controller.commit(core.unregister(3))
    assert list(core.image.deletions.values()) == [(1, 2)]


def test_a_deletion_left_by_a_broker_without_a_cluster_is_anyones() -> None:
    path = records.deleted_topic_path(UUID(int=9))
    config, _ = BrokerConfig.from_properties({"node.id": "4"})
    core = Controller(config, [Entry(path, records.encode("orders"), 0)], new_id=UUID)
    assert core.deleted_topics == {UUID(int=9)}
    core.committed(core.forget_deleted_topics())
    assert core.deleted_topics == set()


@pytest.mark.parametrize(("minimum", "eligible"), [("1", ()), ("2", (2,)), ("3", (2,))])
def test_eligible_replicas_are_forgotten_when_the_minimum_lets_others_acknowledge(
    cluster: Cluster, minimum: str, eligible: tuple[int, ...]
) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2, 3))], configs=[("min.insync.replicas", "2")]))
    cluster.kill(3)
    cluster.kill(2)
    assert cluster.controller.state().eligible == (2,)
    cluster.check()
    change = ResourceChange(ResourceType.TOPIC, "t", [("min.insync.replicas", AlterOperation.SET, minimum)])
    outcomes, plan = cluster.controller.core.alter_configs([change])
    assert outcomes == [None]
    cluster.controller.commit(plan)
    assert cluster.controller.state().eligible == eligible
    cluster.check()


def test_no_step_is_larger_than_a_commit(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 9_000, 3))
    cluster.create(*(NewTopic(f"t{n}", 30, 3) for n in range(100)))
    cluster.nodes.pop(3).store.close()
    assert cluster.controller.settle() >= 4
    topics = cluster.controller.core.image.topics.values()
    assert all(state.leader in {1, 2} and 3 not in state.isr for topic in topics for state in topic.partitions)
    cluster.check()


def test_a_broker_that_may_have_lost_records_is_in_sync_nowhere_when_it_is_active(cluster: Cluster) -> None:
    synced = [("flush.messages", "1")]
    cluster.create(
        NewTopic("t", assignments=[(0, (3, 2, 1)), (1, (3,))]), NewTopic("s", assignments=[(0, (3, 2))], configs=synced)
    )
    cluster.kill(3)
    cluster.kill(2)  # nobody leads s, whose in-sync set has broker 2
    cluster.restart(3, Kept.SYNCED)
    state = cluster.controller.state("t", 0)
    assert (state.leader, state.isr) == (1, (1,))
    state = cluster.controller.state("t", 1)
    assert (state.leader, state.isr, state.is_lost) == (3, (3,), False)  # nobody else ever had it
    cluster.restart(2, Kept.SYNCED)
    assert cluster.controller.state("s").leader == 2  # what was not synced did not count
    cluster.check()


def test_a_partition_whose_last_replica_in_sync_lost_records_waits_for_an_unclean_election(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (3, 2))]))
    cluster.kill(2)
    cluster.kill(3)
    cluster.restart(2)
    node = cluster.start(3, Kept.UNKNOWN)
    assert node.core.has_old_duties
    cluster.controller.settle()
    node.reload()
    assert not node.core.has_old_duties
    node.commit(node.core.change_own_state(BrokerState.ACTIVE))
    cluster.controller.settle()
    state = cluster.controller.state("t")
    assert (state.leader, state.isr, state.is_lost) == (NO_LEADER, (3,), True)
    cluster.check()
    cluster.kill(3)
    cluster.restart(3)  # it has all of what was left of it: that makes it no better
    assert cluster.controller.state("t").leader == NO_LEADER
    core = cluster.controller.core
    (outcome,), plan = core.elect_leaders(ElectionType.UNCLEAN, [("t", 0)])
    assert outcome.error is None
    cluster.controller.commit(plan)
    state = cluster.controller.state("t")
    assert (state.leader, state.isr, state.is_lost) == (3, (3,), False)
    cluster.check()


def test_nobody_comes_into_sync_that_has_begun_anew_unnoticed(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (1, 2))]))
    cluster.kill(2)
    cluster.restart(2)
    controller = cluster.controller
    state, young = controller.state("t"), controller.core.image.brokers
    assert state.isr == (1,)
    change = InSyncChange(state.leader_epoch, state.partition_epoch, ((1, young[1].epoch), (2, young[2].epoch)))
    request = InSyncRequest(controller.core.image.topics["t"].topic_id, 0, change)
    _, plan = controller.core.alter_partitions(1, young[1].epoch, [request])
    cluster.nodes.pop(2).store.close()
    cluster.start(2, Kept.UNKNOWN)
    with pytest.raises(StoreConflict) as caught:
        controller.commit(plan)
    assert caught.value.path == records.BROKER_EPOCH


def test_a_broker_that_comes_back_unnoticed_leads_in_an_epoch_of_its_own(cluster: Cluster) -> None:
    """It died and registered again between two looks of the controller, whose partitions still count on its former self."""
    cluster.create(NewTopic("t", assignments=[(0, (2, 1)), (1, (2,))]))
    old = cluster.controller.core.image.brokers[2]
    cluster.nodes.pop(2).store.close()
    node = cluster.start(2)
    assert node.core.has_old_duties
    cluster.controller.settle()
    young = cluster.controller.core.image.brokers[2]
    assert young.epoch > old.epoch
    assert young.state is BrokerState.FENCED
    assert (cluster.controller.state("t", 0).leader, cluster.controller.state("t", 0).isr) == (1, (1,))
    assert (cluster.controller.state("t", 1).leader, cluster.controller.state("t", 1).isr) == (NO_LEADER, (2,))
    node.reload()
    assert not node.core.has_old_duties
    node.commit(node.core.change_own_state(BrokerState.ACTIVE))
    cluster.controller.settle()
    assert (cluster.controller.state("t", 1).leader, cluster.controller.state("t", 1).leader_epoch) == (2, 2)
    stale = InSyncChange(1, 1, ((1, 1), (2, old.epoch)))
    topic_id = cluster.controller.core.image.topics["t"].topic_id
    outcomes, _ = cluster.controller.core.alter_partitions(1, 1, [InSyncRequest(topic_id, 0, stale)])
    assert code(outcomes[0]) is ErrorCode.INELIGIBLE_REPLICA


def test_what_an_operator_wrote_is_read_before_the_next_plan(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 1))
    node = cluster.controller
    with MemoryStore(cluster.tree) as operator:
        operator.commit([Put(records.config_path((ResourceType.TOPIC, "t")), records.encode({"retention.ms": "5"}))])
    change = ResourceChange(ResourceType.TOPIC, "t", [("segment.ms", AlterOperation.SET, "7")])
    _, plan = node.core.alter_configs([change])
    with pytest.raises(StoreConflict):
        node.commit(plan)
    node.reload()
    node.commit(node.core.alter_configs([change])[1])
    assert dict(node.core.image.topic_config("t")) == {"retention.ms": "5", "segment.ms": "7"}
