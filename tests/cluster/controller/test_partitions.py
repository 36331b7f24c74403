"""Commands on partitions of several brokers: who is in sync, who leads, where they lie."""

from __future__ import annotations

import pytest

from barnabas.cluster.planning.partitions import ElectionType, MoveRequest
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.planning.reassignment import under_way
from barnabas.cluster.planning.topics import NewTopic
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from tests.cluster.controller.controllers import Cluster, alter, code, in_sync_request, move


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


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
    assert under_way(image, None) == [("t", 0, state)] == under_way(image, [("t", (0, 1)), ("unknown", (0,))])
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
    said = [outcome.error and outcome.error.message for outcome in outcomes]
    assert said == ["Leader election not needed for topic partition.", "No such partition as t-9", "No such topic as u"]
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
