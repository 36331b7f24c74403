"""The conformance suite on a real ZooKeeper, and what only a real one can do."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kazoo.client import KazooClient

from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import (
    ABSENT,
    ROOT,
    Entry,
    MetadataStore,
    Operation,
    Put,
    Remove,
    SessionEvent,
    SessionState,
    StoreUnavailable,
)
from barnabas.cluster.store.memory import MemoryStore
from barnabas.cluster.zookeeper.address import parse_address
from barnabas.cluster.zookeeper.store import ZooKeeperStore
from barnabas.testing.conformance_store import Ear, OpenStore, SessionConformance
from barnabas.testing.zookeeper import ZooKeeper
from tests.cluster.harness import FakeBroker
from tests.cluster.store.test_stores import OPERATIONS, done
from tests.waiting import WITHIN_S, wait_until

WAIT_MS = 1_000
roots = count()


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    # on a busy machine ZooKeeper takes seconds to start again; the sessions must outlive it
    with ZooKeeper(longest_session_ms=60_000) as running:
        yield running


@pytest.fixture
def root() -> str:
    return f"/test/{next(roots)}"


def wait_for(store: MetadataStore, state: SessionState) -> None:
    """Until the session is in `state`."""
    reached = threading.Event()
    store.watch_session(lambda event: reached.set() if event.state is state else None)
    assert store.session.state is state or reached.wait(WITHIN_S)


class TestZooKeeperStore(SessionConformance):
    has_threads = True

    @pytest.fixture
    def open_store(self, zookeeper: ZooKeeper, root: str) -> OpenStore:
        self.zookeeper = zookeeper
        return lambda: open_patiently(zookeeper, root, connection_timeout_ms=WAIT_MS, session_timeout_ms=60_000)

    def suspend(self, store: MetadataStore) -> None:
        self.zookeeper.kill()
        wait_for(store, SessionState.SUSPENDED)

    def resume(self, store: MetadataStore) -> None:
        self.zookeeper.start()
        wait_for(store, SessionState.CONNECTED)

    def expire(self, store: MetadataStore) -> None:
        end_session(store)


def end_session(store: MetadataStore) -> None:
    """End the session from other connections.

    Its owner may take the session back before the server ends it. So this goes on until the server gives a new session to a client that
    asks for the old one.
    """
    assert isinstance(store, ZooKeeperStore)
    mine = store._client._kazoo.client_id
    assert mine is not None, "no session to end"
    given = mine
    while given == mine:
        twin = KazooClient(store.address.servers, client_id=mine)
        twin.start()
        given = twin.client_id or mine  # None if the connection has ended again
        twin.stop()
        twin.close()


def open_at(
    zookeeper: ZooKeeper, root: str, *, connection_timeout_ms: int = 60_000, session_timeout_ms: int = 18_000
) -> ZooKeeperStore:
    address = parse_address(zookeeper.address + root)
    return ZooKeeperStore(address, connection_timeout_ms=connection_timeout_ms, session_timeout_ms=session_timeout_ms)


def open_patiently(zookeeper: ZooKeeper, root: str, *, connection_timeout_ms: int, session_timeout_ms: int) -> ZooKeeperStore:
    """The time-outs are short for what the test asks, not for the opening on a busy machine."""
    address = parse_address(zookeeper.address + root)
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            return ZooKeeperStore(address, connection_timeout_ms=connection_timeout_ms, session_timeout_ms=session_timeout_ms)
        except StoreUnavailable:
            assert time.monotonic() < deadline, "no session"


def commit_patiently(store: MetadataStore, put: Put) -> None:
    """Until it is answered that it is done; each attempt waits for as long as the store does."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            store.commit([put])
            return
        except StoreUnavailable:
            assert time.monotonic() < deadline, "the server does not come back"


@pytest.fixture
def leaves_no_thread() -> Iterator[None]:
    """Of the threads of earlier tests some may end meanwhile, and one that has done its work is there for a moment."""
    before = set(threading.enumerate())
    yield
    wait_until(lambda: not set(threading.enumerate()) - before, "a thread is left")


@pytest.mark.usefixtures("leaves_no_thread")
def test_nothing_is_left_of_a_closed_store(zookeeper: ZooKeeper, root: str) -> None:
    before = set(threading.enumerate())
    store = open_at(zookeeper, root)
    store.watch(lambda paths: None)
    assert set(threading.enumerate()) - before
    store.close()


def test_the_session_is_believed_in_by_what_was_answered(root: str) -> None:
    with ZooKeeper(tick_ms=1_000) as zookeeper, open_at(zookeeper, root, session_timeout_ms=15_000) as store:
        assert 0 < store.believed_ms <= 12_500
        zookeeper.pause()
        before = store.believed_ms
        wait_until(lambda: store.believed_ms < before, "nothing was answered meanwhile")
        heard_at_s = store._client._connection.heard_at_s
        zookeeper.resume()
        store.get("/nothing")
        # The remaining time proves nothing: it may be shorter again by now. Compare the time of the last answer.
        assert store._client._connection.heard_at_s > heard_at_s
        zookeeper.kill()
        wait_for(store, SessionState.SUSPENDED)
        assert 0 < store.believed_ms <= 12_500


def test_a_server_that_stands_still_is_left_in_time(root: str) -> None:
    with ZooKeeper(3, tick_ms=500) as ensemble:
        followers = [index for index in range(3) if index != ensemble.leader()]
        address = parse_address("zookeeper://" + ",".join(f"127.0.0.1:{ensemble.ports[index]}" for index in followers) + root)
        with ZooKeeperStore(address, session_timeout_ms=10_000, connection_timeout_ms=20_000) as store:
            heard: list[SessionEvent] = []
            store.watch_session(heard.append)
            connected = store._client._connection._last
            assert connected is not None
            ensemble.pause(ensemble.ports.index(connected[1]))
            wait_for(store, SessionState.SUSPENDED)
            wait_for(store, SessionState.CONNECTED)
            assert [event.state for event in heard[:2]] == [SessionState.SUSPENDED, SessionState.CONNECTED]
            assert store._client._connection._last != connected


@pytest.mark.usefixtures("leaves_no_thread")
def test_a_store_that_lost_its_server_closes_too(root: str) -> None:
    with ZooKeeper() as zookeeper:
        store = open_at(zookeeper, root)
        zookeeper.kill()
        wait_for(store, SessionState.SUSPENDED)
        store.close()
        assert store.session.state is SessionState.CLOSED


@pytest.mark.usefixtures("leaves_no_thread")
def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1 within 300 ms"):
        ZooKeeperStore(parse_address("zookeeper://127.0.0.1:1/x"), connection_timeout_ms=300)


def test_the_timeout_of_the_session_is_the_servers(zookeeper: ZooKeeper, root: str) -> None:
    with open_patiently(zookeeper, root, connection_timeout_ms=WAIT_MS, session_timeout_ms=1_200) as store:
        assert store.session_timeout_ms == 1_200
    with open_patiently(zookeeper, root, connection_timeout_ms=WAIT_MS, session_timeout_ms=10) as store:
        assert store.session_timeout_ms == 200  # the server's tick is 100 ms


def test_watchers_are_called_where_the_caller_wants(zookeeper: ZooKeeper, root: str) -> None:
    calls: list[Callable[[], None]] = []  # another thread appends during the calls
    called = threading.Event()

    def run(function: Callable[[], None]) -> None:
        calls.append(function)
        called.set()

    def make_calls() -> None:
        while calls:
            calls.pop(0)()

    told: list[str] = []
    with ZooKeeperStore(parse_address(zookeeper.address + root), run=run) as store:
        make_calls()
        called.clear()
        store.watch(told.extend)
        store.commit([Put(f"/{n}", b"") for n in range(50)])
        assert called.wait(WITHIN_S)
        assert told == []
        store.commit([Put("/last", b"")])
        while "/last" not in told:  # each round takes the time of a request
            store.get("/last")
            make_calls()
    assert told == [*(f"/{n}" for n in range(50)), "/last"]


def test_a_commit_without_an_answer_is_decided_by_the_next_read(zookeeper: ZooKeeper, root: str) -> None:
    """The server stands still with the commit in its socket, and goes on when the caller has given up."""
    with open_patiently(zookeeper, root, connection_timeout_ms=200, session_timeout_ms=18_000) as store:
        zookeeper.pause()
        try:
            with pytest.raises(StoreUnavailable):
                store.commit([Put("/mine", b"by me", ABSENT)])
        finally:
            zookeeper.resume()  # other tests use this server
        patient = open_at(zookeeper, root)
        found = retry_read(store, "/mine")
        assert patient.get("/mine") == found
        patient.commit([Put("/later", b"")])
        assert patient.get("/mine") == found
        patient.close()


def retry_read(store: MetadataStore, path: str) -> Entry | None:
    """Each attempt waits for as long as the store does."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            return store.get(path)
        except StoreUnavailable:
            assert time.monotonic() < deadline, "the server does not come back"


def test_a_commit_that_was_given_up_is_never_sent() -> None:
    with (
        ZooKeeper(longest_session_ms=60_000) as zookeeper,
        open_patiently(zookeeper, "/x", connection_timeout_ms=200, session_timeout_ms=60_000) as store,
    ):
        ear = Ear(store)
        zookeeper.kill()
        wait_for(store, SessionState.SUSPENDED)
        store._client._connected.set()  # as if the store noticed the lost connection only after the start of the commit
        with pytest.raises(StoreUnavailable):
            store.commit([Put("/never", b"")])
        zookeeper.start()
        ear.wait_for(ROOT)
        commit_patiently(store, Put("/a", b""))
        with open_at(zookeeper, "/x") as other:
            assert [entry.path for entry in other.list("/")] == ["/a"]


def test_the_root_is_made_and_hides_what_is_beside_it(zookeeper: ZooKeeper, root: str) -> None:
    with open_at(zookeeper, f"{root}/one") as one, open_at(zookeeper, f"{root}/two") as two, open_at(zookeeper, root) as both:
        one.commit([Put("/a", b"1")])
        two.commit([Put("/a", b"2")])
        assert [entry.value for entry in one.list("/")] == [b"1"]
        assert [entry.path for entry in both.list("/two/")] == ["/two/a"]
    with open_at(zookeeper, "") as bare:
        assert not [entry for entry in bare.list("/") if entry.path.startswith("/zookeeper")]
        bare.commit([Put("/plain", b"x", ABSENT)])
        bare.commit([Remove("/plain", 0)])


def test_an_ensemble_goes_on_without_its_leader(root: str) -> None:
    with ZooKeeper(3, longest_session_ms=60_000) as ensemble, open_at(ensemble, root, session_timeout_ms=30_000) as store:
        store.commit([Put("/me", b"x", ABSENT, ephemeral=True)])
        session = store.session.session_id
        leader = ensemble.leader()
        assert leader is not None
        ensemble.kill(leader)
        ensemble.wait_ready()
        written = False
        while not written:  # a commit may be lost with its server; then it raises StoreUnavailable
            try:
                store.commit([Put("/after", b"y")])
                written = True
            except StoreUnavailable:
                assert store.session.state is not SessionState.CLOSED
        assert store.session.session_id == session
        assert store.get("/me") == ("/me", b"x", 0)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=st.lists(st.lists(OPERATIONS, max_size=4), max_size=8))
def test_the_fake_agrees_with_the_real_one(zookeeper: ZooKeeper, commits: list[list[Operation]]) -> None:
    with MemoryStore() as fake, open_at(zookeeper, f"/agree/{next(roots)}") as real:
        for operations in commits:
            assert done(fake, operations) == done(real, operations)
            assert list(fake.list("/")) == list(real.list("/"))


async def test_a_brokers_administration_works_on_it(zookeeper: ZooKeeper, root: str) -> None:
    for restart in (False, True):
        async with FakeBroker(store=open_at(zookeeper, root)) as broker:
            if not restart:
                await broker.controller.create_topics([NewTopic("orders", 300, 1)])
            assert await broker.controller.next_producer_id() == 1000 * restart
            assert len(broker.metadata.topics["orders"].partitions) == 300
            assert broker.metadata.controller_id == 1
            assert broker.metadata.brokers[1].epoch == 1 + restart


def test_a_broker_without_a_cluster_does_not_load_kazoo() -> None:
    program = "import sys, barnabas.server.main; sys.exit('kazoo' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0


def test_what_a_read_says_of_commits_without_an_answer_is_final() -> None:
    """Servers of an ensemble stand still, one or two at a time, with commits in their sockets and queues."""
    chance = random.Random(7)
    with (
        ZooKeeper(3) as ensemble,
        open_patiently(ensemble, "/x", connection_timeout_ms=150, session_timeout_ms=3_000) as store,
    ):
        judged: dict[str, bool] = {}
        for number in range(12):
            still = chance.sample(range(3), chance.choice([1, 2]))
            for index in still:
                ensemble.pause(index)
            path = f"/w/{number:02d}"
            try:
                store.commit([Put(path, b"", ABSENT)])
                judged[path] = True
            except StoreUnavailable:
                pass
            for index in still:
                ensemble.resume(index)
            judged.setdefault(path, retry_read(store, path) is not None)
        with open_at(ensemble, "/x") as auditor:
            assert {entry.path for entry in auditor.list("/w/")} == {path for path, done in judged.items() if done}
