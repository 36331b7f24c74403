"""The controller of several brokers: brokers that come and go, a second controller in the middle of it."""

from __future__ import annotations

import pytest

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerState
from barnabas.cluster.metadata.observation import observe_all
from barnabas.cluster.planning import partitions
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.partitions import MoveRequest
from barnabas.cluster.planning.topics import MorePartitions, NewTopic
from barnabas.cluster.store.interface import Put, StoreConflict
from barnabas.cluster.store.memory import MemoryStore
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import NO_LEADER, ResourceType
from tests.cluster.controller.controllers import Cluster, alter, code


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


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
    cluster.controller.commit(cluster.controller.core.balance_leaders(1)[1])
    assert sum(state.leader == 2 for state in cluster.controller.core.image.topics["t"].partitions) == 1
    cluster.controller.commit(cluster.controller.core.balance_leaders(1000)[1])
    assert all(state.leader == state.replicas[0] for state in cluster.controller.core.image.topics["t"].partitions)
    cluster.check()


def test_the_next_controller_finishes_what_the_first_began(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MAX_CHUNKS_PER_PLAN", 1)
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
        assert caught.value.path == store_entries.CONTROLLER_EPOCH
    old.reload()
    with pytest.raises(StoreConflict):  # also a plan made from a fresh read
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
    assert cluster.controller.state("single").leader == 2  # broker 2 is the only replica
    cluster.kill(2)
    assert cluster.controller.state("single").leader == NO_LEADER
    assert cluster.controller.state("single").isr == (2,)


def test_who_comes_into_sync_with_a_leader_that_shuts_down_takes_over(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", assignments=[(0, (2, 3))]))
    cluster.kill(3)
    cluster.restart(3)
    node = cluster.nodes[2]
    node.reload()
    node.commit(node.core.change_own_state(BrokerState.SHUTTING_DOWN))
    cluster.controller.settle()
    assert (cluster.controller.state().leader, cluster.controller.state().isr) == (2, (2,))
    assert code(alter(cluster, 2, 3)) is None
    cluster.controller.settle()
    assert (cluster.controller.state().leader, cluster.controller.state().isr) == (3, (3,))
    cluster.check()


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


def test_no_step_is_larger_than_a_commit(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 9_000, 3))
    cluster.create(*(NewTopic(f"t{n}", 30, 3) for n in range(100)))
    cluster.nodes.pop(3).store.close()
    assert cluster.controller.settle() >= 4
    topics = cluster.controller.core.image.topics.values()
    assert all(state.leader in {1, 2} and 3 not in state.isr for topic in topics for state in topic.partitions)
    cluster.check()


def test_what_an_operator_wrote_is_read_before_the_next_plan(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 1))
    node = cluster.controller
    with MemoryStore(cluster.tree) as operator:
        operator.commit([Put(store_entries.config_path((ResourceType.TOPIC, "t")), store_entries.encode({"retention.ms": "5"}))])
    change = ResourceChange(ResourceType.TOPIC, "t", [("segment.ms", AlterOperation.SET, "7")])
    _, plan = node.core.alter_configs([change])
    with pytest.raises(StoreConflict):
        node.commit(plan)
    node.reload()
    node.commit(node.core.alter_configs([change])[1])
    assert dict(node.core.image.topic_config("t")) == {"retention.ms": "5", "segment.ms": "7"}
