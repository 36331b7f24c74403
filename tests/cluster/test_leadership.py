"""Elections, in-sync replicas and moves of one partition: a random history against a model that knows who has which records."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.cluster import reassignment
from barnabas.cluster.alter_partition import ANY_EPOCH, InSyncChange, alter, check_broker_epoch
from barnabas.cluster.leadership import (
    Electorate,
    Policy,
    counts_on,
    elect_preferred,
    elect_unclean,
    is_settled,
    recover,
    settle,
)
from barnabas.cluster.metadata import NO_LEADER, BrokerRegistration, BrokerState, Kept, LogEnd, PartitionState
from barnabas.cluster.placement import place_replicas
from barnabas.errors import ErrorCode, KafkaError

TOPIC_ID = UUID(int=7)
STABLE = PartitionState(1, 5, (1, 2, 3), (1, 2, 3), 8)


def brokers(*active: int, leaving: tuple[int, ...] = ()) -> dict[int, BrokerRegistration]:
    return {
        n: BrokerRegistration(n, (), epoch=100 + n, state=BrokerState.SHUTTING_DOWN if n in leaving else BrokerState.ACTIVE)
        for n in (*active, *leaving)
    }


def electorate(*active: int, leaving: tuple[int, ...] = ()) -> Electorate:
    return Electorate.of(brokers(*active, leaving=leaving).values())


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
    assert one.eligible == ()  # two are enough: what they acknowledge, the third does not have
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


# Brokers that cannot say that their logs are whole


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
        (LOST, (1, 2), ends(_1=(5, 20), _2=(5, 20), _3=(5, 10))),  # one of them is gone again
        (LOST, (1, 2, 3), ends(_1=(5, 20), _2=(5, 20))),  # or has not said it
        (LOST, (1, 2, 3), ends(leader_epoch=5, _1=(5, 20), _2=(5, 20), _3=(5, 20))),  # or only before somebody led meanwhile
        (replace(LOST, last_known=()), (1, 2, 3), ends(_1=(5, 20), _2=(5, 20), _3=(5, 20))),  # nobody had anything
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


EVERYONE = (1, 2, 3, 4, 5)
BROKER = st.sampled_from(EVERYONE)
TARGETS = st.lists(BROKER, min_size=1, max_size=4, unique=True).map(tuple)


class PartitionHistory(RuleBasedStateMachine):
    """`records[b]` is how many of the acknowledged records broker b has; a record is acknowledged when all in sync have it."""

    @initialize(minimum=st.integers(1, 3), unclean=st.booleans())
    def start(self, minimum: int, unclean: bool) -> None:
        self.policy = Policy(minimum, unclean)
        self.live = dict.fromkeys(EVERYONE, BrokerState.ACTIVE)
        self.state = PartitionState(1, 0, (1, 2, 3), (1, 2, 3))
        self.records = dict.fromkeys(EVERYONE, 0)
        self.acknowledged = 0
        self.lossy = False
        self.doubtful: set[int] = set()  # lost power, and were not active since
        self.leaders = {0: 1}
        self.target: tuple[int, ...] = (1, 2, 3)

    @property
    def brokers(self) -> dict[int, BrokerRegistration]:
        kept = {n: Kept.SYNCED if n in self.doubtful else Kept.ALL for n in self.live}
        return {n: BrokerRegistration(n, (), epoch=100 + n, state=state, kept=kept[n]) for n, state in self.live.items()}

    @property
    def electorate(self) -> Electorate:
        return Electorate.of(self.brokers.values())

    def become(self, state: PartitionState, *, unclean: bool = False, caught_up: tuple[int, ...] = ()) -> None:
        before, self.state = self.state, state
        if state is before:
            return
        assert state.partition_epoch == before.partition_epoch + 1
        assert state.leader_epoch - before.leader_epoch in {0, 1}
        if state.leader != before.leader:
            assert state.leader_epoch == before.leader_epoch + 1
        if state.leader != NO_LEADER:
            assert self.leaders.setdefault(state.leader_epoch, state.leader) == state.leader
            if before.is_lost or state.leader not in {*before.isr, *before.eligible, *caught_up}:
                assert unclean
                self.lossy = True
        if not self.lossy and not state.is_lost:
            assert set(state.isr) & {*before.isr, *before.eligible, *caught_up}, "whoever had everything was forgotten"

    def settle(self) -> None:
        after = settle(self.state, self.electorate, self.policy)
        assert not is_settled(self.state, self.electorate) or after is self.state
        self.become(after, unclean=self.policy.unclean)
        assert settle(self.state, self.electorate, self.policy) is self.state

    @rule(n=BROKER)
    def dies(self, n: int) -> None:
        self.live.pop(n, None)
        self.settle()

    @rule(n=BROKER, state=st.sampled_from(BrokerState))
    def comes(self, n: int, state: BrokerState) -> None:
        if n in self.doubtful:
            state = BrokerState.FENCED
        self.live[n] = state
        self.settle()
        self.becomes_active(n)

    def becomes_active(self, n: int) -> None:
        """As a broker does that had to wait until nothing counts on what it was."""
        if n in self.doubtful and not counts_on(self.state, n, lossy=True):
            if n in self.state.isr and not self.state.is_lost:
                assert {*self.state.replicas} - {n} <= {*self.state.adding} - {*self.state.isr}, "others may have more"
                self.lossy = True
            self.doubtful.discard(n)
            self.live[n] = BrokerState.ACTIVE
            self.settle()

    @rule(n=BROKER, keeps=st.integers(0, 1), comes_back=st.booleans())
    def loses_power(self, n: int, keeps: int, comes_back: bool) -> None:
        """Its end is gone, and perhaps it is back before it was missed."""
        self.live.pop(n, None)
        if not comes_back:
            self.settle()
        self.records[n] = min(self.records[n], keeps)
        self.doubtful.add(n)
        self.live[n] = BrokerState.FENCED
        self.settle()
        if comes_back:
            self.becomes_active(n)
        else:
            self.live.pop(n)

    @rule(lost=st.sets(BROKER))
    def many_die(self, lost: set[int]) -> None:
        for n in lost:
            self.live.pop(n, None)
        self.settle()

    @precondition(lambda self: self.state.leader in self.live)
    @rule()
    def produce(self) -> None:
        in_sync = self.state.isr
        if len(in_sync) >= min(self.policy.min_in_sync, len(self.state.replicas)) and all(n in self.live for n in in_sync):
            self.acknowledged += 1
            for n in in_sync:
                self.records[n] = self.acknowledged

    @precondition(lambda self: self.state.leader in self.live)
    @rule(others=st.sets(BROKER))
    def alter(self, others: set[int]) -> None:
        state = self.state
        able = {n for n in others if n in state.replicas and self.live.get(n) is BrokerState.ACTIVE}
        asked = ((state.leader, 100 + state.leader), *((n, 100 + n) for n in sorted(able - {state.leader})))
        change = InSyncChange(state.leader_epoch, state.partition_epoch, asked)
        for n in able:
            self.records[n] = self.records[state.leader]
        after = alter(state, change, leader=state.leader, brokers=self.brokers, policy=self.policy)
        self.become(after, caught_up=tuple(able))

    @rule()
    def prefer(self) -> None:
        self.become(elect_preferred(self.state, self.electorate, self.policy) or self.state)

    @precondition(lambda self: self.state.leader == NO_LEADER)
    @rule()
    def elect_unclean(self) -> None:
        self.become(elect_unclean(self.state, self.electorate, self.policy) or self.state, unclean=True)

    @rule(replicas=TARGETS)
    def move(self, replicas: tuple[int, ...]) -> None:
        self.target = replicas
        led = self.state.leader != NO_LEADER
        self.become(reassignment.begin(self.state, replicas, self.electorate, self.policy))
        assert not led or self.state.leader != NO_LEADER

    @rule()
    def cancel(self) -> None:
        self.target = reassignment.original(self.state)
        self.become(reassignment.cancel(self.state, self.electorate, self.policy))

    @rule(minimum=st.integers(1, 3))
    def change_minimum(self, minimum: int) -> None:
        if minimum != self.policy.min_in_sync:
            self.policy = replace(self.policy, min_in_sync=minimum)
            state, last_known = self.state, self.state.last_known if self.state.leader == NO_LEADER else ()
            if state.eligible or last_known != state.last_known:
                self.become(replace(state, eligible=(), last_known=last_known, partition_epoch=state.partition_epoch + 1))

    @precondition(lambda self: self.state.is_lost)
    @rule()
    def recover(self) -> None:
        """All that are there have said how far their logs go; the model's records are of one epoch."""
        said = {n: LogEnd(TOPIC_ID, 0, self.state.leader_epoch, 0, self.records[n]) for n in self.live}
        known = self.state.last_known
        able = all(self.live.get(n) is BrokerState.ACTIVE for n in known)
        after = recover(self.state, self.electorate, said)
        assert (after is not self.state) == bool(known and able)
        if after is not self.state:
            assert self.records[after.leader] == max(self.records[n] for n in known)
            self.become(after, unclean=True)

    @invariant()
    def state_is_sound(self) -> None:
        state = self.state
        assert state.isr
        assert len(set(state.replicas)) == len(state.replicas)
        assert set(state.isr) <= set(state.replicas)
        assert set(state.eligible) <= set(state.replicas) - set(state.isr)
        assert state.leader == NO_LEADER or state.leader in state.isr
        assert not state.is_lost or (state.leader == NO_LEADER and not state.eligible)
        assert set(state.last_known) <= set(state.replicas)
        assert set(state.adding) <= set(state.replicas)
        assert set(state.removing) <= set(state.replicas)
        assert not set(state.adding) & set(state.removing)

    @invariant()
    def a_leader_has_all_that_was_acknowledged(self) -> None:
        if self.state.leader != NO_LEADER and not self.lossy:
            assert self.records[self.state.leader] == self.acknowledged

    def teardown(self) -> None:
        """Everyone comes back, followers catch up: the partition is led, and where it was asked to be."""
        if not hasattr(self, "state"):
            return
        for n in EVERYONE:
            self.comes(n, BrokerState.ACTIVE)
        assert not self.doubtful
        if self.state.is_lost:
            assert self.state.last_known, "nobody lost a disk"
            self.recover()
        for _ in range(2):
            self.alter(set(EVERYONE))
        self.state_is_sound()
        self.a_leader_has_all_that_was_acknowledged()
        assert self.state.leader != NO_LEADER
        assert not self.state.is_moving
        assert self.state.replicas == self.target
        assert set(self.state.isr) == set(self.target)


PartitionHistory.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestPartitionHistory = PartitionHistory.TestCase


# Placement


@settings(max_examples=100, deadline=None)
@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 5),
    start=st.integers(0, 100),
)
def test_placement_spreads_leaders_and_racks(racks: list[str | None], partitions: int, factor: int, start: int) -> None:
    live = {n: BrokerRegistration(n, (), rack) for n, rack in enumerate(racks)}
    factor = min(factor, len(live))
    placed = place_replicas(live, partitions=partitions, replication_factor=factor, start=start)
    led = [sum(replicas[0] == n for replicas in placed) for n in live]
    assert max(led) - min(led) <= 1
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[n] for n in replicas}) == min(factor, len(set(racks)))


def test_with_equal_racks_replicas_are_even_too() -> None:
    live = {n: BrokerRegistration(n, (), f"rack-{n % 3}") for n in range(6)}
    placed = place_replicas(live, partitions=60, replication_factor=3, start=0)
    held = [sum(n in replicas for replicas in placed) for n in live]
    assert max(held) - min(held) <= 1
