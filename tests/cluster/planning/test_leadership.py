"""Elections, in-sync replicas and moves of one partition."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from barnabas.cluster.metadata.image import PartitionState
from barnabas.cluster.planning import reassignment
from barnabas.cluster.planning.alter_partition import ANY_EPOCH, InSyncChange, alter, check_broker_epoch
from barnabas.cluster.planning.leadership import (
    Electorate,
    Policy,
    elect_preferred,
    elect_unclean,
    settle,
)
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import NO_LEADER
from tests.cluster.planning.electorates import STABLE, brokers, electorate


def test_nothing_changes_without_a_reason() -> None:
    assert settle(STABLE, electorate(1, 2, 3), Policy()) is STABLE


def test_the_next_replica_in_sync_leads_when_the_leader_dies() -> None:
    after = settle(STABLE, electorate(2, 3), Policy())
    assert after == PartitionState(2, 6, (1, 2, 3), (2, 3), 9)


def test_a_dead_follower_leaves_without_a_leader_epoch() -> None:
    assert settle(STABLE, electorate(1, 2), Policy()) == PartitionState(1, 5, (1, 2, 3), (1, 2), 9)


def test_the_last_in_sync_stay_so_when_all_die_and_lead_when_one_is_back() -> None:
    dead = settle(STABLE, electorate(), Policy())
    assert dead == PartitionState(NO_LEADER, 6, (1, 2, 3), (1, 2, 3), 9)
    back = settle(dead, electorate(3), Policy())
    assert (back.leader, back.leader_epoch, back.isr) == (3, 7, (3,))


def test_who_is_not_in_sync_leads_only_where_that_is_allowed() -> None:
    state = replace(STABLE, isr=(1,))
    assert settle(state, electorate(2, 3), Policy()).leader == NO_LEADER
    unclean = settle(state, electorate(2, 3), Policy(unclean=True))
    assert (unclean.leader, unclean.isr, unclean.leader_epoch) == (2, (2,), 6)


def test_an_eligible_replica_leads_when_nobody_in_sync_can() -> None:
    policy = Policy(min_in_sync=2)
    one = settle(STABLE, electorate(1, 2), policy)
    assert one.eligible == ()  # brokers 1 and 2 are enough for acknowledgements, and broker 3 does not get those records
    two = settle(one, electorate(1), policy)
    assert (two.isr, two.eligible) == ((1,), (2,))
    three = settle(two, electorate(2, 3), policy)
    assert (three.leader, three.isr, three.eligible) == (2, (2,), (1,))


def test_a_leader_that_shuts_down_hands_over_unless_it_is_the_last() -> None:
    assert settle(STABLE, electorate(2, 3, leaving=(1,)), Policy()).leader == 2
    last = replace(STABLE, isr=(1,))
    assert settle(last, electorate(2, 3, leaving=(1,)), Policy()) is last
    handed = settle(replace(last, eligible=(3,)), electorate(2, 3, leaving=(1,)), Policy(min_in_sync=2))
    assert (handed.leader, handed.isr) == (3, (3,))


def test_preferred_leaders_lead_only_when_in_sync() -> None:
    state = replace(STABLE, leader=2)
    elected = elect_preferred(state, electorate(1, 2, 3), Policy())
    assert elected is not None
    assert (elected.leader, elected.leader_epoch) == (1, 6)
    assert elect_preferred(replace(state, isr=(2, 3)), electorate(1, 2, 3), Policy()) is None
    assert elect_preferred(state, electorate(2, 3), Policy()) is None


def test_an_unclean_election_is_clean_where_it_can_be() -> None:
    state = replace(STABLE, leader=NO_LEADER, isr=(2,))
    elected = elect_unclean(state, electorate(1, 2), Policy())
    assert elected is not None
    assert (elected.leader, elected.isr) == (2, (2,))
    assert elect_unclean(state, electorate(), Policy()) is None


# AlterPartition


def ask(*in_sync: int, leader_epoch: int = 5, partition_epoch: int = 8, **epochs: int) -> InSyncChange:
    return InSyncChange(leader_epoch, partition_epoch, tuple((n, epochs.get(f"e{n}", 100 + n)) for n in in_sync))


@pytest.mark.parametrize(
    ("asked", "leader", "code"),
    [
        (ask(1, leader_epoch=6), 1, ErrorCode.NOT_CONTROLLER),
        (ask(1, partition_epoch=9), 1, ErrorCode.NOT_CONTROLLER),
        (ask(1, leader_epoch=4, partition_epoch=7), 1, ErrorCode.FENCED_LEADER_EPOCH),
        (ask(1, 2), 2, ErrorCode.INVALID_REQUEST),
        (ask(1, partition_epoch=7), 1, ErrorCode.INVALID_UPDATE_VERSION),
        (ask(1, 7), 1, ErrorCode.INVALID_REQUEST),
        (ask(1, 2, 2), 1, ErrorCode.INVALID_REQUEST),
        (ask(2, 3), 1, ErrorCode.INVALID_REQUEST),
        (ask(), 1, ErrorCode.INVALID_REQUEST),
        (ask(1, 4), 1, ErrorCode.INELIGIBLE_REPLICA),
        (ask(1, 2, e2=99), 1, ErrorCode.INELIGIBLE_REPLICA),
        (ask(1, 3), 1, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_what_a_leader_may_not_say_is_refused(asked: InSyncChange, leader: int, code: ErrorCode) -> None:
    state = replace(STABLE, replicas=(1, 2, 3, 4), isr=(1, 2))
    with pytest.raises(KafkaError) as caught:
        alter(state, asked, leader=leader, brokers=brokers(1, 2, leaving=(3,)), policy=Policy())
    assert caught.value.code is code


def test_a_leader_says_who_is_in_sync() -> None:
    shrunk = alter(STABLE, ask(1, 3), leader=1, brokers=brokers(1, 2, 3), policy=Policy(min_in_sync=3))
    assert shrunk == PartitionState(1, 5, (1, 2, 3), (1, 3), 9, eligible=(2,))
    grown = alter(shrunk, ask(1, 3, 2, partition_epoch=9, e2=ANY_EPOCH), leader=1, brokers=brokers(1, 2, 3), policy=Policy())
    assert grown == PartitionState(1, 5, (1, 2, 3), (1, 3, 2), 10)
    assert alter(grown, ask(2, 1, 3, partition_epoch=10), leader=1, brokers=brokers(1, 2, 3), policy=Policy()) is grown


def test_a_broker_from_an_earlier_life_is_not_heard() -> None:
    check_broker_epoch(brokers(1), 1, 101)
    for epoch, broker_id in ((100, 1), (102, 2)):
        with pytest.raises(KafkaError) as caught:
            check_broker_epoch(brokers(1), broker_id, epoch)
        assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


# Moves


def test_a_move_adds_catches_up_and_removes() -> None:
    everyone = brokers(1, 2, 3, 4, 5)
    moving = reassignment.begin(STABLE, (4, 5, 1), Electorate.of(everyone.values()), Policy())
    assert moving == PartitionState(1, 5, (4, 5, 1, 2, 3), (1, 2, 3), 9, (4, 5), (2, 3))
    half = alter(moving, ask(1, 2, 3, 4, partition_epoch=9), leader=1, brokers=everyone, policy=Policy())
    assert half.is_moving
    done = alter(half, ask(1, 2, 3, 4, 5, partition_epoch=10), leader=1, brokers=everyone, policy=Policy())
    assert done == PartitionState(1, 6, (4, 5, 1), (1, 4, 5), 11), "in another epoch, for whoever is gone forgets its log"


def test_a_move_away_from_the_leader_elects_another() -> None:
    everyone = brokers(1, 2, 3, 4)
    moving = reassignment.begin(STABLE, (4, 3), Electorate.of(everyone.values()), Policy())
    done = alter(moving, ask(1, 2, 3, 4, partition_epoch=9), leader=1, brokers=everyone, policy=Policy())
    assert done == PartitionState(4, 6, (4, 3), (3, 4), 10)


def test_a_cancelled_move_leaves_nothing() -> None:
    voters = electorate(1, 2, 3, 4, 5)
    moving = reassignment.begin(STABLE, (4, 5), voters, Policy())
    assert reassignment.cancel(moving, voters, Policy()) == replace(STABLE, leader_epoch=6, partition_epoch=10)


def test_a_move_that_is_cancelled_when_only_the_added_one_lives_ends_when_an_old_one_is_back() -> None:
    moving = PartitionState(4, 7, (4, 1, 2), (4,), 9, (4,), (1, 2))
    back = reassignment.cancel(moving, electorate(4), Policy())
    assert (back.leader, back.replicas, back.adding, back.removing) == (4, (1, 2, 4), (), (4,))
    done = alter(back, ask(4, 1, leader_epoch=7, partition_epoch=10), leader=4, brokers=brokers(1, 4), policy=Policy())
    assert done == PartitionState(1, 8, (1, 2), (1,), 11)


def test_fewer_replicas_or_another_order_need_no_catching_up() -> None:
    voters = electorate(1, 2, 3)
    assert reassignment.begin(STABLE, (3, 2), voters, Policy()) == PartitionState(3, 6, (3, 2), (2, 3), 9)
    assert reassignment.begin(STABLE, (3, 2, 1), voters, Policy()) == replace(STABLE, replicas=(3, 2, 1), partition_epoch=9)
    assert reassignment.begin(STABLE, (1, 2, 3), voters, Policy()) is STABLE
