"""The election: scenes on the fake ZooKeeper, a random history of several candidates, and the same on a real one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.cluster.controller.election import (
    BecomeController,
    Claim,
    ClaimOutcome,
    ControllerReadEvent,
    Election,
    ElectionState,
    ReadController,
    ResignController,
    WriteRefusedEvent,
)
from barnabas.cluster.membership.candidate import Candidate
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.store.interface import (
    ABSENT,
    Check,
    Entry,
    MetadataStore,
    Operation,
    Put,
    Remove,
    SessionState,
    StoreConflict,
    StoreUnavailable,
)
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.cluster.zookeeper.address import parse_address
from barnabas.cluster.zookeeper.store import ZooKeeperStore
from barnabas.testing.zookeeper import ZooKeeper
from tests.cluster.zookeeper.test_store import end_session
from tests.waiting import WITHIN_S, wait_until

T = TypeVar("T")


class Broker:
    """A candidate and what it was told."""

    def __init__(self, broker_id: int, store: MetadataStore, incarnation: str = "") -> None:
        self.store = store
        self.history: list[str] = []
        self.candidate = Candidate(store, Election(broker_id, incarnation or f"process-{broker_id}"), self._take, self._leave)

    @property
    def election(self) -> Election:
        return self.candidate.election

    def _take(self, taken: BecomeController) -> None:
        self.history.append(f"takes {taken.epoch}")

    def _leave(self, left: ResignController) -> None:
        self.history.append("leaves")

    def write(self, path: str) -> None:
        """As a controller writes."""
        fence = self.election.fence
        assert fence is not None
        self.store.commit([Check(store_entries.CONTROLLER_EPOCH, fence), Put(path, str(self.election.broker_id).encode())])


def watching(broker: Broker) -> Broker:
    """Its candidate follows what the (fake) store tells."""
    broker.store.watch_session(broker.candidate.session_changed)
    broker.store.watch(lambda paths: broker.candidate.settle() if Candidate.concerns(paths) else None)
    broker.candidate.settle()
    return broker


class Fleet:
    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.stores = {n: MemoryStore(self.tree) for n in (1, 2, 3)}
        self.brokers = {n: watching(Broker(n, store)) for n, store in self.stores.items()}

    @property
    def leading(self) -> list[int]:
        return [n for n, broker in self.brokers.items() if broker.election.is_leading]


def test_the_first_who_asks_is_elected() -> None:
    fleet = Fleet()
    assert fleet.leading == [1]
    assert fleet.brokers[1].history == ["takes 1"]
    assert {broker.election.controller_entry for broker in fleet.brokers.values()} == {
        store_entries.ControllerEntry(1, 1, "process-1")
    }


def test_another_is_elected_when_the_session_expires_and_the_old_one_learns_it() -> None:
    fleet = Fleet()
    fleet.stores[1].suspend()
    assert fleet.leading == [1]
    fleet.stores[1].expire()
    assert fleet.leading == [1, 2]  # the old controller cannot know yet, but the store refuses its writes
    with pytest.raises(StoreUnavailable):
        fleet.brokers[1].write("/work")
    fleet.stores[1].resume()
    assert fleet.leading == [2]
    assert fleet.brokers[1].history == ["takes 1", "leaves"]
    fleet.brokers[2].write("/work")


def test_a_controller_that_wakes_up_late_is_fenced() -> None:
    """It writes before it heard that it lost its session and got another one."""
    fleet = Fleet()
    fleet.stores[1].hold_watches()
    fleet.stores[1].expire()
    assert fleet.leading == [1, 2]
    with pytest.raises(StoreConflict) as caught:
        fleet.brokers[1].write("/work")
    assert caught.value.path == store_entries.CONTROLLER_EPOCH
    fleet.brokers[1].candidate.tell(WriteRefusedEvent())
    assert fleet.leading == [2]
    fleet.stores[1].release_watches()
    assert fleet.leading == [2]


@pytest.mark.parametrize("done", [True, False])
def test_a_claim_without_an_answer_is_settled_by_reading(done: bool) -> None:
    tree = MemoryTree()
    store = MemoryStore(tree)
    broker = Broker(1, store)
    store.lose_next_reply(done=done)
    broker.candidate.settle()
    assert broker.candidate.undecided
    assert not broker.election.is_leading
    store.resume()
    broker.candidate.settle()
    assert broker.history == ["takes 1"]
    broker.write("/work")


def test_a_lost_claim_of_a_session_that_expired_stands_for_nothing() -> None:
    tree = MemoryTree()
    store = MemoryStore(tree)
    broker = Broker(1, store)
    store.lose_next_reply(done=True)
    broker.candidate.settle()
    store.expire()
    other = watching(Broker(2, MemoryStore(tree)))
    store.resume()
    broker.candidate.settle()
    assert broker.history == []
    assert other.history == ["takes 2"]


class Interrupted(MemoryStore):
    """Its session ends after the next reading, and what is read then is read in another."""

    is_next = False

    def get(self, path: str) -> Entry | None:
        entry = super().get(path)
        if self.is_next:
            self.is_next = False
            self.expire()
        return entry


def test_a_successor_that_is_elected_while_the_office_is_read_keeps_it() -> None:
    tree = MemoryTree()
    store = Interrupted(tree)
    broker, successor = watching(Broker(1, store)), watching(Broker(2, MemoryStore(tree)))
    store.hold_watches()
    store.is_next = True
    broker.candidate.settle()
    assert broker.history == ["takes 1", "leaves"]
    assert successor.history == ["takes 2"]
    store.release_watches()
    assert successor.history == ["takes 2"]
    successor.write("/work")


def test_a_former_self_is_not_taken_for_oneself() -> None:
    """A broker that was started again finds its own id in office, held by a session that has not yet expired."""
    tree = MemoryTree()
    former = MemoryStore(tree)
    watching(Broker(1, former, "first"))
    again = watching(Broker(1, MemoryStore(tree), "second"))
    assert again.history == []
    former.close()
    assert again.history == ["takes 2"]


def test_who_stops_frees_the_office() -> None:
    fleet = Fleet()
    fleet.brokers[1].candidate.stop()
    assert fleet.brokers[1].election.state is ElectionState.STOPPED
    assert fleet.leading == [2]
    fleet.brokers[3].candidate.stop()
    fleet.brokers[2].candidate.stop()
    assert fleet.leading == []
    assert store_entries.CONTROLLER not in fleet.tree.entries


def test_who_stops_late_does_not_free_a_successors_office() -> None:
    fleet = Fleet()
    fleet.stores[1].hold_watches()
    fleet.stores[1].expire()
    fleet.brokers[1].candidate.stop()
    assert fleet.leading == [2]
    assert fleet.brokers[2].history == ["takes 2"]
    fleet.brokers[2].write("/work")


def test_an_epoch_raised_by_hand_deposes_the_controller() -> None:
    fleet = Fleet()
    with MemoryStore(fleet.tree) as operator:
        operator.commit([Put(store_entries.CONTROLLER_EPOCH, store_entries.encode(7), 0)])
    assert len(fleet.leading) == 1
    epochs = [int(event.split()[1]) for broker in fleet.brokers.values() for event in broker.history if event != "leaves"]
    assert sorted(epochs) == [1, 8]


def test_an_office_removed_by_hand_is_filled_again() -> None:
    fleet = Fleet()
    with MemoryStore(fleet.tree) as operator:
        operator.commit([Remove(store_entries.CONTROLLER, 0)])
    assert len(fleet.leading) == 1


def test_nothing_is_claimed_on_an_outcome_nobody_waits_for() -> None:
    election = Election(1, "a")
    assert election.handle(ClaimOutcome.DONE) == []
    assert election.handle(SessionState.CONNECTED) == [ReadController()]
    assert election.state is ElectionState.FOLLOWING


def test_the_first_claim_expects_that_nobody_was_ever_elected() -> None:
    (claim,) = Election(4, "a").handle(ControllerReadEvent(None, None))
    controller_entry = store_entries.encode_controller(store_entries.ControllerEntry(4, 1, "a"))
    assert isinstance(claim, Claim)
    assert claim.operations == (
        Put(store_entries.CONTROLLER, controller_entry, ABSENT, ephemeral=True),
        Put(store_entries.CONTROLLER_EPOCH, b"1", ABSENT),
    )


BROKERS = st.sampled_from([1, 2, 3])


class ElectionHistory(RuleBasedStateMachine):
    """Connections lost, sessions expired, answers and watches lost and late, controllers that write whenever they believe they may."""

    @initialize()
    def start(self) -> None:
        self.fleet = Fleet()
        self.writes = 0

    @rule(n=BROKERS)
    def suspend(self, n: int) -> None:
        self.fleet.stores[n].suspend()

    @rule(n=BROKERS)
    def resume(self, n: int) -> None:
        self.fleet.stores[n].resume()

    @rule(n=BROKERS)
    def expire(self, n: int) -> None:
        self.fleet.stores[n].expire()

    @rule(n=BROKERS, late=st.booleans())
    def watches(self, n: int, late: bool) -> None:
        if late:
            self.fleet.stores[n].hold_watches()
        else:
            self.fleet.stores[n].release_watches()

    @rule(n=BROKERS, done=st.booleans())
    def lose_reply(self, n: int, done: bool) -> None:
        self.fleet.stores[n].lose_next_reply(done=done)

    @rule(n=BROKERS)
    def settle(self, n: int) -> None:
        self.fleet.brokers[n].candidate.settle()

    @rule(n=BROKERS)
    def write(self, n: int) -> None:
        broker = self.fleet.brokers[n]
        if not broker.election.is_leading:
            return
        newest = int(store_entries.decode(self.fleet.tree.entries[store_entries.CONTROLLER_EPOCH].value))
        mine = broker.election._claim
        try:
            broker.write("/work")
        except StoreConflict:
            assert mine < newest
            broker.candidate.tell(WriteRefusedEvent())
        except StoreUnavailable:
            pass
        else:
            assert mine == newest, "a deposed controller wrote"

    @invariant()
    def one_controller_for_each_epoch(self) -> None:
        taken = [event for broker in self.fleet.brokers.values() for event in set(broker.history) if event != "leaves"]
        assert len(taken) == len(set(taken))
        epochs = [broker.election._claim for broker in self.fleet.brokers.values() if broker.election.is_leading]
        assert len(epochs) == len(set(epochs))

    def teardown(self) -> None:
        for n, store in self.fleet.stores.items():
            store._next_reply_lost = None
            store.resume()
            store.release_watches()
            self.fleet.brokers[n].candidate.settle()
        for broker in self.fleet.brokers.values():
            broker.candidate.settle()
        (leading,) = self.fleet.leading
        self.fleet.brokers[leading].write("/work")
        self.one_controller_for_each_epoch()


ElectionHistory.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestElectionHistory = ElectionHistory.TestCase


# Tests with a real ZooKeeper


class Driven(Broker):
    """A candidate with a thread of its own that follows what the store tells."""

    def __init__(self, broker_id: int, address: str, news: threading.Condition) -> None:
        self.news = news
        self.work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        super().__init__(broker_id, ZooKeeperStore(parse_address(address), run=self.work.put, connection_timeout_ms=60_000))
        self.store.watch_session(self.candidate.session_changed)
        self.store.watch(lambda paths: self.candidate.settle() if Candidate.concerns(paths) else None)
        self.work.put(self.candidate.settle)
        self.thread = threading.Thread(target=self.drive)
        self.thread.start()

    def drive(self) -> None:
        while (function := self.work.get()) is not None:
            function()
            with self.news:
                self.news.notify_all()

    def ask(self, function: Callable[[], T]) -> T:
        """The result of `function` on the thread that uses the store."""
        asked: Future[T] = Future()

        def work() -> None:
            try:
                asked.set_result(function())
            except (AssertionError, StoreConflict, StoreUnavailable) as error:
                asked.set_exception(error)

        self.work.put(work)
        return asked.result(WITHIN_S)

    def is_refused(self, operations: Sequence[Operation]) -> bool:
        """Whether it is; False where there is no connection to say so."""
        try:
            self.ask(lambda: self.store.commit(operations))
        except StoreConflict:
            return True
        except StoreUnavailable:
            return False
        raise AssertionError("a deposed controller wrote")

    def close(self) -> None:
        self.work.put(None)
        self.thread.join()
        self.store.close()


def test_a_controller_that_loses_its_session_is_followed_by_another(shared_zookeeper: ZooKeeper) -> None:
    address = f"{shared_zookeeper.address}/election"
    news = threading.Condition()
    brokers = [Driven(n, address, news) for n in (1, 2)]

    def leader(epoch: int) -> Driven:
        def found() -> list[Driven]:
            return [broker for broker in brokers if broker.election.is_leading and f"takes {epoch}" in broker.history]

        with news:
            assert news.wait_for(found, WITHIN_S)
            return found()[0]

    try:
        for epoch in (1, 2, 3):
            old = leader(epoch)
            fence = old.election.fence
            assert fence is not None
            end_session(old.store)
            young = leader(epoch + 1)  # may be the same broker with its next session
            stale: list[Operation] = [Check(store_entries.CONTROLLER_EPOCH, fence), Put("/work", b"stale")]
            wait_until(partial(old.is_refused, stale), "no answer to the stale write")
            young.ask(partial(young.write, "/work"))
    finally:
        for broker in brokers:
            broker.close()
