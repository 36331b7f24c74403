"""The leader of a partition after brokers came back that may have lost the end of their logs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, LogEnd, PartitionState
from barnabas.cluster.planning.alter_partition import ANY_EPOCH, InSyncChange, alter
from barnabas.cluster.planning.leadership import (
    Electorate,
    Policy,
    counts_on,
    elect_preferred,
    elect_unclean,
    is_settled,
    recover,
    settle,
)
from barnabas.protocol.values import NO_LEADER
from tests.cluster.planning.electorates import STABLE, TOPIC_ID, brokers, electorate

# Brokers that may have lost records


def doubtful(*active: int, synced: tuple[int, ...] = (), unknown: tuple[int, ...] = ()) -> Electorate:
    back = [BrokerRegistration(n, (), state=BrokerState.FENCED, kept=Kept.SYNCED) for n in synced]
    back += [BrokerRegistration(n, (), state=BrokerState.FENCED, kept=Kept.UNKNOWN) for n in unknown]
    return Electorate.of([*brokers(*active).values(), *back])


def test_who_may_have_lost_records_leaves_the_set_though_nobody_else_is_there() -> None:
    dead = settle(STABLE, electorate(), Policy(min_in_sync=2))
    first = settle(dead, doubtful(synced=(1,)), Policy(min_in_sync=2))
    assert first == PartitionState(NO_LEADER, 6, (1, 2, 3), (2, 3), 10, last_known=(1,))
    assert settle(first, electorate(1), Policy(min_in_sync=2)) is first
    second = settle(first, electorate(1, 3), Policy(min_in_sync=2))
    assert (second.leader, second.isr, second.eligible) == (3, (3,), (2,))


def test_who_only_lost_its_process_leads_again() -> None:
    dead = settle(STABLE, electorate(), Policy())
    everyone = brokers(2)
    fenced = Electorate.of([replace(everyone[2], state=BrokerState.FENCED)])
    assert settle(dead, fenced, Policy()) is dead
    assert settle(dead, electorate(2), Policy()).leader == 2


def test_who_may_have_lost_records_is_not_eligible() -> None:
    state = PartitionState(1, 5, (1, 2, 3), (1,), 8, eligible=(2, 3))
    voters = doubtful(1, synced=(2,))
    assert not is_settled(state, voters)
    assert settle(state, voters, Policy(min_in_sync=3)) == replace(state, partition_epoch=9, eligible=(3,), last_known=(2,))


def test_eligible_replicas_take_the_place_of_who_lost_records() -> None:
    state = PartitionState(NO_LEADER, 5, (1, 2, 3), (1,), 8, eligible=(3,))
    after = settle(state, doubtful(2, synced=(1,)), Policy(min_in_sync=2))
    assert after == PartitionState(NO_LEADER, 5, (1, 2, 3), (3,), 9, last_known=(1,))


def test_the_last_known_leader_waits_for_an_unclean_election() -> None:
    state = PartitionState(1, 5, (1, 2, 3), (1,), 8)
    lost = settle(state, doubtful(3, synced=(1,)), Policy())
    assert lost == PartitionState(NO_LEADER, 6, (1, 2, 3), (1,), 9, is_lost=True, last_known=(1,))
    assert settle(lost, electorate(1, 2, 3), Policy()) is lost
    assert elect_preferred(lost, electorate(1, 2, 3), Policy()) is None
    for elected in (elect_unclean(lost, electorate(1, 2, 3), Policy()), settle(lost, electorate(1, 2, 3), Policy(unclean=True))):
        assert elected == PartitionState(1, 7, (1, 2, 3), (1,), 10)


def test_the_last_known_leader_has_the_most_of_what_is_left() -> None:
    lost = PartitionState(NO_LEADER, 6, (1, 2, 3), (3,), 9, is_lost=True)
    elected = elect_unclean(lost, electorate(1, 2, 3), Policy())
    assert elected is not None
    assert (elected.leader, elected.isr) == (3, (3,))


def test_who_holds_a_partition_alone_leads_on_with_what_it_has() -> None:
    alone = PartitionState(1, 5, (1,), (1,), 8)
    moving = PartitionState(1, 5, (2, 1), (1,), 8, adding=(2,), removing=(1,))
    for state in (alone, moving):
        gone = settle(state, doubtful(2, unknown=(1,)), Policy())
        assert gone == replace(state, leader=NO_LEADER, leader_epoch=6, partition_epoch=9)
        assert not counts_on(gone, 1, lossy=True)
        assert settle(gone, electorate(1, 2), Policy()).leader == 1


def test_what_is_synced_before_it_counts_is_lost_with_the_disk_only() -> None:
    dead = settle(STABLE, electorate(), Policy())
    policy = Policy(is_synced=True)
    assert settle(dead, doubtful(synced=(1,)), policy) is dead
    assert settle(dead, doubtful(unknown=(1,)), policy).isr == (2, 3)


def test_a_broker_waits_until_nothing_counts_on_what_it_lost() -> None:
    dead = settle(STABLE, electorate(), Policy())
    assert counts_on(STABLE, 1, lossy=False)
    assert not counts_on(dead, 1, lossy=False)
    assert counts_on(dead, 1, lossy=True)
    assert counts_on(replace(dead, isr=(2,), eligible=(1,)), 1, lossy=True)
    assert not counts_on(replace(dead, isr=(2,), eligible=(1,)), 1, lossy=False)
    assert not counts_on(replace(dead, isr=(1,), is_lost=True), 1, lossy=True)
    assert not counts_on(replace(dead, isr=(2, 3)), 1, lossy=True)


# Lost partitions

LOST = PartitionState(NO_LEADER, 6, (1, 2, 3), (3,), 12, is_lost=True, last_known=(1, 2, 3))


def ends(leader_epoch: int = 6, **logs: tuple[int, int]) -> dict[int, LogEnd]:
    """`_2=(5, 10)`: the log of broker 2 has records of epoch 5 up to offset 10."""
    return {int(name[1:]): LogEnd(TOPIC_ID, 0, leader_epoch, *last) for name, last in logs.items()}


def test_when_all_lose_their_power_each_is_remembered() -> None:
    policy = Policy(min_in_sync=2)
    state = settle(STABLE, electorate(), policy)
    for n, known in ((1, (1,)), (3, (1, 3)), (2, (1, 2, 3))):
        state = settle(state, doubtful(*known, synced=(n,)), policy)
        assert state.last_known == known
    assert (state.is_lost, state.leader, state.isr) == (True, NO_LEADER, (2,))


def test_the_log_that_goes_furthest_leads_when_all_are_back() -> None:
    elected = recover(LOST, electorate(1, 2, 3), ends(_1=(5, 20), _2=(6, 10), _3=(6, 12)))
    assert elected == PartitionState(3, 7, (1, 2, 3), (3,), 13, last_known=(1, 2, 3))
    assert recover(LOST, electorate(1, 2, 3), ends(_1=(6, 12), _2=(6, 10), _3=(6, 12))).leader == 1


@pytest.mark.parametrize(
    ("state", "alive", "said"),
    [
        (LOST, (1, 2), ends(_1=(5, 20), _2=(5, 20), _3=(5, 10))),  # broker 3 is down again
        (LOST, (1, 2, 3), ends(_1=(5, 20), _2=(5, 20))),  # broker 3 has not reported its log end
        # all reports are older than the current leader epoch
        (LOST, (1, 2, 3), ends(leader_epoch=5, _1=(5, 20), _2=(5, 20), _3=(5, 20))),
        (replace(LOST, last_known=()), (1, 2, 3), ends(_1=(5, 20), _2=(5, 20), _3=(5, 20))),  # no last known replica
        (replace(LOST, is_lost=False), (1, 2, 3), ends(_1=(5, 20), _2=(5, 20), _3=(5, 20))),
    ],
)
def test_a_lost_partition_waits(state: PartitionState, alive: tuple[int, ...], said: dict[int, LogEnd]) -> None:
    assert recover(state, electorate(*alive), said) is state


def test_an_emptied_disk_is_not_waited_for() -> None:
    after = settle(LOST, doubtful(1, 2, unknown=(3,)), Policy(min_in_sync=2))
    assert after == replace(LOST, last_known=(1, 2), partition_epoch=13)
    assert counts_on(LOST, 3, lossy=True, unknown=True)
    assert not counts_on(after, 3, lossy=True, unknown=True)
    assert recover(after, electorate(1, 2, 3), ends(_1=(5, 4), _2=(5, 9), _3=(-1, 0))).leader == 2


def test_the_last_known_are_forgotten_when_enough_are_in_sync() -> None:
    led = recover(LOST, electorate(1, 2, 3), ends(_1=(5, 20), _2=(5, 20), _3=(5, 20)))
    change = InSyncChange(led.leader_epoch, led.partition_epoch, ((1, ANY_EPOCH), (2, ANY_EPOCH)))
    alone = settle(led, electorate(1), Policy(min_in_sync=2))
    assert alone is led
    both = alter(led, change, leader=1, brokers=brokers(1, 2, 3), policy=Policy(min_in_sync=2))
    assert (both.isr, both.last_known) == ((1, 2), ())


def test_an_unclean_election_by_hand_takes_the_furthest_of_those_that_are_there() -> None:
    elected = elect_unclean(LOST, electorate(1, 2), Policy(), ends(_1=(5, 20), _2=(5, 25)))
    assert elected is not None
    assert (elected.leader, elected.isr, elected.last_known) == (2, (2,), ())
