"""Topics that are made while brokers are away which shall have replicas of them."""

from __future__ import annotations

import pytest

from barnabas.cluster.metadata.image import OFFSETS_TOPIC, BrokerState, Kept
from barnabas.cluster.planning.topics import MorePartitions, NewTopic
from barnabas.errors import ErrorCode
from barnabas.protocol.values import ResourceType
from tests.cluster.controller.controllers import Cluster, alter


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def refused(cluster: Cluster, topic: NewTopic) -> tuple[ErrorCode, str | None]:
    ((outcome,), _) = cluster.controller.core.create_topics([topic])
    assert outcome.error is not None
    return outcome.error.code, outcome.error.message


def test_a_broker_that_is_gone_is_counted_on_and_leads_nothing(cluster: Cluster) -> None:
    cluster.kill(3)
    cluster.create(NewTopic("t", 6, 3))
    states = cluster.controller.core.image.topics["t"].partitions
    assert {state.replicas[2] for state in states} == {3}
    assert {(state.leader, frozenset(state.isr)) for state in states} == {(1, frozenset({1, 2})), (2, frozenset({1, 2}))}
    code, message = refused(cluster, NewTopic("u", 1, 4))
    assert code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert message is not None
    assert "because only 3 broker(s) are registered" in message
    cluster.restart(3)
    alter(cluster, 1, 2, 3)
    assert set(cluster.controller.state().isr) == {1, 2, 3}
    cluster.check()


def test_the_topics_of_coordinators_are_made_without_it_too(cluster: Cluster) -> None:
    cluster.kill(3)
    told, plan = cluster.controller.core.auto_create([OFFSETS_TOPIC])
    assert told == {OFFSETS_TOPIC: None}
    cluster.controller.commit(plan)
    assert set(cluster.controller.state(OFFSETS_TOPIC).replicas) == {1, 2, 3}


def test_partitions_are_added_with_as_many_replicas_as_the_others_have(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 3))
    cluster.kill(3)
    core = cluster.controller.core
    for wanted in (MorePartitions("t", 2), MorePartitions("t", 3, [[3, 2, 1]])):
        ((outcome,), plan) = core.create_partitions([wanted])
        assert outcome.error is None
        cluster.controller.commit(plan)
    added = [(state.leader, state.isr) for state in core.image.topics["t"].partitions[1:]]
    assert [set(isr) for _, isr in added] == [{1, 2}] * 2
    assert added[1][0] == 2


def test_a_controller_that_did_not_see_it_knows_it_by_its_replicas(cluster: Cluster) -> None:
    cluster.create(NewTopic("t", 1, 3))
    cluster.kill(3)
    cluster.kill(2)
    cluster.restart(2)
    cluster.kill(1)
    cluster.restart(1)
    assert cluster.controller.broker_id == 2
    cluster.create(NewTopic("u", 1, 3))
    assert cluster.controller.state("u").replicas[2] == 3


@pytest.mark.parametrize("state", [BrokerState.FENCED, BrokerState.SHUTTING_DOWN])
def test_one_that_starts_or_stops_is_taken_before_one_that_is_gone(cluster: Cluster, state: BrokerState) -> None:
    cluster.restart(4)
    for broker_id in (3, 4):
        cluster.kill(broker_id)
    node = cluster.start(4, Kept.ALL)
    if state is not BrokerState.FENCED:
        node.commit(node.core.change_own_state(state))
    cluster.controller.settle()
    cluster.create(NewTopic("t", 4, 3), NewTopic("by-hand", assignments=[(0, (4, 1)), (1, (3, 2))]))
    states = cluster.controller.core.image.topics["t"].partitions
    assert {state.replicas[2] for state in states} == {4}
    by_hand = cluster.controller.core.image.topics["by-hand"].partitions
    assert [(state.leader, state.isr) for state in by_hand] == [(1, (1,)), (2, (2,))]
    assert refused(cluster, NewTopic("u", assignments=[(0, (3, 4))]))[0] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused(cluster, NewTopic("u", assignments=[(0, (1, 9))]))[0] is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_one_that_was_unregistered_is_counted_on_no_more(cluster: Cluster) -> None:
    cluster.kill(3)
    cluster.controller.commit(cluster.controller.core.unregister(3))
    assert refused(cluster, NewTopic("t", 1, 3))[0] is ErrorCode.INVALID_REPLICATION_FACTOR


def cordon(cluster: Cluster, *brokers: int) -> None:
    plan = cluster.controller.core._new_plan()
    for broker_id in brokers:
        plan.set_config((ResourceType.BROKER, str(broker_id)), {"cordoned.log.dirs": "*"})
    cluster.controller.commit(plan.build())


def test_one_that_takes_no_replicas_takes_none_while_it_is_away(cluster: Cluster) -> None:
    cluster.kill(3)
    cordon(cluster, 3)
    assert refused(cluster, NewTopic("t", 1, 3))[0] is ErrorCode.INVALID_REPLICATION_FACTOR


def test_nothing_is_placed_where_only_brokers_that_are_away_would_take_it(cluster: Cluster) -> None:
    cluster.kill(3)
    cordon(cluster, 1, 2)
    reason = "All brokers are currently fenced, or have all their log directories cordoned."
    told = refused(cluster, NewTopic("t", 1, 1))
    assert told == (ErrorCode.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition 1 time(s): {reason}")
