"""The leader's book of its followers, held to its rules one by one and by a model."""

from __future__ import annotations

from itertools import permutations

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.replication.in_sync import InSyncReplicas, Member

LAG_MAX = 1_000


def make(isr: tuple[int, ...] = (1, 2, 3), replicas: tuple[int, ...] = (1, 2, 3), epoch_start: int = 0) -> InSyncReplicas:
    return InSyncReplicas(
        leader_id=1,
        replicas=replicas,
        isr=isr,
        leader_epoch=5,
        partition_epoch=7,
        epoch_start=epoch_start,
        now_ms=0,
        lag_max_ms=LAG_MAX,
    )


def fetch(replicas: InSyncReplicas, replica_id: int, offset: int, *, end: int, now_ms: int = 0) -> None:
    assert replicas.fetched(replica_id, offset, start_offset=0, broker_epoch=40 + replica_id, leader_end=end, now_ms=now_ms)


def mark(replicas: InSyncReplicas, end: int, current: int = 0, min_insync_replicas: int = 1, now_ms: int = 0) -> int:
    return replicas.high_watermark(current, end, min_insync_replicas=min_insync_replicas, now_ms=now_ms)


def test_what_all_in_sync_have_is_committed() -> None:
    replicas = make()
    assert mark(replicas, 10) == 0, "nobody was heard of"
    fetch(replicas, 2, 8, end=10)
    assert mark(replicas, 10) == 0
    fetch(replicas, 3, 6, end=10)
    assert mark(replicas, 10) == 6
    assert mark(replicas, 10, current=7) == 7, "it never moves back"


def test_a_lone_leader_commits_what_it_has() -> None:
    assert mark(make(isr=(1,), replicas=(1,)), 10) == 10
    assert mark(make(isr=(1,), replicas=(1,)), 10, min_insync_replicas=2) == 10, "there is no second replica to wait for"


def test_the_last_replica_standing_commits_nothing() -> None:
    replicas = make(isr=(1,))
    assert mark(replicas, 10, current=4, min_insync_replicas=2, now_ms=9_000) == 4
    assert mark(replicas, 10, current=4, min_insync_replicas=1, now_ms=9_000) == 10


def test_both_sets_bind_while_a_change_is_under_way() -> None:
    replicas = make()
    fetch(replicas, 2, 10, end=10, now_ms=0)
    fetch(replicas, 3, 4, end=10, now_ms=0)
    change = replicas.propose_shrinking(10, LAG_MAX + 1)
    assert change is not None
    assert (change.members, change.leader_epoch, change.partition_epoch) == ((Member(1, -1), Member(2, 42)), 5, 7)
    assert mark(replicas, 10, now_ms=LAG_MAX + 1) == 4, "replica 3 may still be chosen as leader"
    assert replicas.propose_shrinking(10, LAG_MAX + 1) is None, "one change at a time"
    assert replicas.settle((1, 2), 8)
    assert mark(replicas, 10, now_ms=LAG_MAX + 1) == 10


def test_a_refused_change_is_as_if_it_had_not_been() -> None:
    replicas = make(isr=(1, 2))
    fetch(replicas, 2, 5, end=5)
    fetch(replicas, 3, 5, end=5)
    assert replicas.propose_expansion(3, 5, lambda replica, epoch: True) is not None
    assert replicas.maximal == {1, 2, 3}
    replicas.withdraw()
    assert replicas.maximal == {1, 2}


def test_an_older_word_of_the_controller_is_passed_over() -> None:
    replicas = make()
    assert not replicas.settle((1,), 6)
    assert replicas.isr == {1, 2, 3}


@pytest.mark.parametrize(("offset", "epoch_start", "joins"), [(4, 0, False), (5, 0, True), (5, 6, False), (6, 6, True)])
def test_who_joins_has_the_committed_part_and_the_epochs_before(offset: int, epoch_start: int, joins: bool) -> None:
    replicas = make(isr=(1, 2), epoch_start=epoch_start)
    fetch(replicas, 3, offset, end=10)
    change = replicas.propose_expansion(3, 5, lambda replica, epoch: (replica, epoch) == (3, 43))
    assert (change is not None) == joins


def test_who_joins_begins_no_earlier_than_the_leader() -> None:
    replicas = make(isr=(1, 2))
    fetch(replicas, 3, 10, end=10)
    assert replicas.propose_expansion(3, 5, lambda replica, epoch: True, log_start=1) is None
    assert replicas.propose_expansion(3, 5, lambda replica, epoch: True, log_start=0) is not None


def test_a_broker_that_is_fenced_does_not_join() -> None:
    replicas = make(isr=(1, 2))
    fetch(replicas, 3, 10, end=10)
    assert replicas.propose_expansion(3, 5, lambda replica, epoch: False) is None


def test_a_follower_of_no_replica_is_unknown() -> None:
    assert make().fetched(9, 3, start_offset=0, broker_epoch=1, leader_end=3, now_ms=0) is None


@pytest.mark.parametrize("registrations", list(permutations((41, 42, 43))))
def test_a_fetch_of_an_earlier_registration_that_comes_late_says_nothing(registrations: tuple[int, ...]) -> None:
    """It tells of a log that the follower may have lost. Its session has no news then, and does not say again where it is."""
    replicas = make(isr=(1, 2))
    offsets = {41: 9, 42: 3, 43: 7}  # by broker epoch; the follower registered again after it had lost records
    counted = [
        epoch
        for epoch in registrations
        if replicas.fetched(3, offsets[epoch], start_offset=0, broker_epoch=epoch, leader_end=9, now_ms=0) is not None
    ]
    assert counted == [epoch for place, epoch in enumerate(registrations) if epoch == max(registrations[: place + 1])]
    found = replicas.followers()[3]
    assert (found.broker_epoch, found.end_offset) == (43, 7)
    assert replicas.propose_expansion(3, 7, lambda _, epoch: epoch == 43) is not None


def test_a_follower_that_tells_no_registration_is_heard() -> None:
    """Requests of versions before 15 have no place for it."""
    replicas = make()
    for offset in (3, 5):
        assert replicas.fetched(3, offset, start_offset=0, broker_epoch=-1, leader_end=5, now_ms=0) is not None
    assert replicas.followers()[3].end_offset == 5


def test_a_follower_is_in_sync_while_it_reaches_the_end_of_its_fetch_before() -> None:
    replicas = make(isr=(1, 2), replicas=(1, 2))
    for step in range(1, 5):  # the leader is 10 records ahead, but each fetch reaches the leader's end at the previous fetch
        fetch(replicas, 2, 10 * step, end=10 * (step + 1), now_ms=900 * step)
        assert replicas.propose_shrinking(10 * (step + 1), 900 * step) is None
    assert replicas.propose_shrinking(50, 900 * 3 + LAG_MAX + 1) is not None


def test_a_new_replica_is_not_in_sync_until_it_joins() -> None:
    replicas = make(isr=(1,), replicas=(1,))
    replicas.set_replicas((1, 2), 0)
    assert mark(replicas, 10, now_ms=0) == 10
    assert replicas.propose_shrinking(10, 10_000) is None
    assert replicas.lowest_start_offset() == 2**63 - 1, "nobody else has a say"
    assert make().lowest_start_offset() == -1, "nobody was heard of"


class Leader(RuleBasedStateMachine):
    """A leader with two followers and a controller whose answers may come late or get lost."""

    @initialize()
    def begin(self) -> None:
        self.replicas = make()
        self.now_ms, self.end, self.mark = 0, 0, 0
        self.reached = {2: 0, 3: 0}
        self.possible: list[frozenset[int]] = [frozenset({1, 2, 3})]  # in-sync sets that the controller may have written

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.end += count
        self.advance()

    @rule(replica=st.sampled_from([2, 3]), count=st.integers(0, 5))
    def follow(self, replica: int, count: int) -> None:
        self.reached[replica] = min(self.end, self.reached[replica] + count)
        fetch(self.replicas, replica, self.reached[replica], end=self.end, now_ms=self.now_ms)
        change = self.replicas.propose_expansion(replica, self.mark, lambda *_: True)
        if change is not None:
            self.possible.append(frozenset(member.replica_id for member in change.members))
        self.advance()

    @rule(ms=st.integers(1, 700))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        change = self.replicas.propose_shrinking(self.end, self.now_ms)
        if change is not None:
            assert change.members[0].replica_id == 1, "the leader itself is always in sync"
            self.possible.append(frozenset(member.replica_id for member in change.members))
        self.advance()

    @precondition(lambda self: self.replicas.proposed is not None)
    @rule(accepted=st.booleans())
    def answer(self, accepted: bool) -> None:
        if accepted:
            assert self.replicas.settle(self.possible[-1], self.replicas.partition_epoch + 1)
            self.possible = self.possible[-1:]
        else:
            self.replicas.withdraw()
            self.possible = self.possible[:1]
        self.advance()

    def advance(self) -> None:
        before = self.mark
        self.mark = self.replicas.high_watermark(self.mark, self.end, min_insync_replicas=2, now_ms=self.now_ms)
        assert before <= self.mark <= self.end
        if self.mark > before:
            assert len(self.replicas.isr) >= 2, "never by the last replica alone"

    @invariant()
    def committed_records_are_with_everybody_who_may_lead(self) -> None:
        for isr in self.possible:
            for replica in isr - {1}:
                assert self.reached[replica] >= self.mark


TestLeader = Leader.TestCase
