"""A partition under random elections, changes of its in-sync replicas and moves, against a model that knows who has which records."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, LogEnd, PartitionState
from barnabas.cluster.planning import reassignment
from barnabas.cluster.planning.alter_partition import InSyncChange, alter
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
from tests.cluster.planning.electorates import TOPIC_ID

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
        self.doubtful: set[int] = set()  # brokers that lost power and have not been active since
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
