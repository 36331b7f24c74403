"""When brokers that come and go get their leaderships back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barnabas.cluster.controller.returned_brokers import FORGIVEN_MS, LONGEST_MS, STABLE_MS, ReturnedBrokers
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, MetadataDelta, MetadataImage
from barnabas.cluster.planning.topics import NewTopic
from tests.cluster.controller.controllers import Cluster, alter

TICK_MS = 1_000


class Broker:
    """One broker as the image has it; `went_back` are the times at which it was given its leaderships."""

    def __init__(self) -> None:
        self.book = ReturnedBrokers()
        self.epoch = 0
        self.now_ms = 10 * FORGIVEN_MS  # the clock started long before
        self.image = MetadataImage("")
        self.went_back: list[int] = []

    def be(self, state: BrokerState | None, for_ms: int) -> None:
        """In this state, or gone; each second somebody looks."""
        if state is None:
            self.image = self.image.apply(MetadataDelta(gone_brokers=(1,)))
        else:
            if 1 not in self.image.brokers:
                self.epoch += 1
            registration = replace(BrokerRegistration(1, (), epoch=self.epoch), state=state)
            self.image = self.image.apply(MetadataDelta(brokers=(registration,)))
        for _ in range(0, for_ms, TICK_MS):
            self.now_ms += TICK_MS
            if 1 in self.book.look(self.image, self.now_ms):
                assert 1 not in self.book.on_probation(self.now_ms)
                self.went_back.append(self.now_ms)
                self.book.settle(1)

    def flap(self, up_ms: int, down_ms: int, until_ms: int) -> None:
        until_ms += self.now_ms
        while self.now_ms < until_ms:
            self.be(BrokerState.ACTIVE, up_ms)
            self.be(None, down_ms)


def test_who_stood_still_once_is_trusted_after_a_moment() -> None:
    broker = Broker()
    broker.be(BrokerState.ACTIVE, 60_000)
    broker.went_back.clear()
    broker.be(None, 1_000)
    broker.be(BrokerState.FENCED, 3_000)
    began_ms = broker.now_ms
    broker.be(BrokerState.ACTIVE, 60_000)
    (at_ms,) = broker.went_back
    assert STABLE_MS <= at_ms - began_ms <= STABLE_MS + 2 * TICK_MS


def test_who_was_back_before_anybody_looked_is_seen_by_its_epoch() -> None:
    broker = Broker()
    broker.be(BrokerState.ACTIVE, 60_000)
    broker.be(None, 0)
    broker.be(BrokerState.ACTIVE, 60_000)
    assert len(broker.went_back) == 2


@pytest.mark.parametrize("up_s", [5, 15, 30, 60, 120, 600])
def test_a_broker_that_comes_and_goes_has_its_leaderships_moved_a_few_times_only(up_s: int) -> None:
    """In four hours; with rounds of balancing alone, each 300 s, they would move each time that it is there at one of them."""
    broker = Broker()
    broker.flap(up_s * 1000, 5_000, 4 * 3_600_000)
    assert len(broker.went_back) <= 1 + (LONGEST_MS // STABLE_MS).bit_length()
    assert up_s * 1000 > STABLE_MS or not broker.went_back


def test_what_is_long_ago_is_forgiven() -> None:
    broker = Broker()
    broker.flap(20_000, 5_000, 600_000)
    broker.be(BrokerState.ACTIVE, FORGIVEN_MS + TICK_MS)
    broker.went_back.clear()
    broker.be(None, 1_000)
    began_ms = broker.now_ms
    broker.be(BrokerState.ACTIVE, 60_000)
    (at_ms,) = broker.went_back
    assert at_ms - began_ms <= STABLE_MS + 2 * TICK_MS


States = st.sampled_from([BrokerState.ACTIVE, BrokerState.FENCED, BrokerState.SHUTTING_DOWN, None])
Spans = st.lists(st.tuples(States, st.integers(0, 900)), max_size=20)


@given(Spans)
def test_between_two_losses_it_is_given_back_once_and_only_while_it_is_there(
    spans: Iterable[tuple[BrokerState | None, int]],
) -> None:
    broker = Broker()
    by_epoch: dict[int, int] = {}
    for state, seconds in spans:
        before = len(broker.went_back)
        broker.be(state, seconds * 1000)
        given = len(broker.went_back) - before
        assert not given or state is BrokerState.ACTIVE
        by_epoch[broker.epoch] = by_epoch.get(broker.epoch, 0) + given
    assert all(count <= 1 for count in by_epoch.values())


def led(cluster: Cluster, broker_id: int) -> int:
    return sum(state.leader == broker_id for topic in cluster.controller.core.image.topics.values() for state in topic.partitions)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    found.create(NewTopic("t", assignments=[(index, (2, 1, 3)) for index in range(10)]))
    yield found
    found.check()


def test_leaderships_go_back_some_at_a_time_when_the_broker_is_in_sync_everywhere(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.restart(2)
    core, two = cluster.controller.core, frozenset({2})
    for partition in range(9):
        alter(cluster, 1, 3, 2, partition=partition)
    (moved, lagging), plan = core.give_back(two, 4)
    assert (moved, lagging, plan.operations) == (0, two, ())
    alter(cluster, 1, 3, 2, partition=9)
    for expected in (4, 8, 10):
        (moved, lagging), plan = core.give_back(two, 4)
        cluster.controller.commit(plan)
        assert (led(cluster, 2), lagging) == (expected, frozenset())
    assert core.give_back(two, 4)[0] == (0, frozenset())


def test_rounds_of_balancing_leave_out_who_is_on_probation(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.restart(2)
    for partition in range(10):
        alter(cluster, 1, 3, 2, partition=partition)
    core = cluster.controller.core
    assert core.balance_leaders(1000, frozenset({2}))[0] == 0
    assert core.balance_leaders(1000)[0] == 10
