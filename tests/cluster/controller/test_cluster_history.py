"""Whole clusters of controller cores on the fake ZooKeeper, through random histories: who leads, and whom the store believes.

Every broker is driven as its process would drive it, but by hand: it looks at the store when the history says so, loses connections,
sessions and answers, dies and comes back. After each step the store itself is examined, not what the brokers believe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.controller.election import WriteRefusedEvent
from barnabas.cluster.controller.registration import BrokerIdInUse
from barnabas.cluster.membership.candidate import Candidate
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, MetadataImage, PartitionState, Topic
from barnabas.cluster.metadata.observation import observe_all
from barnabas.cluster.planning.alter_partition import InSyncChange
from barnabas.cluster.planning.leadership import counts_on
from barnabas.cluster.planning.partitions import ElectionType, InSyncRequest, MoveRequest
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import Entry, Operation, StoreConflict, StoreUnavailable
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.values import NO_LEADER

BROKERS = (1, 2, 3, 4)
SETTINGS = [("min.insync.replicas", "2")]


class Process:
    """A broker's process: it does what `server/` will do, in single steps."""

    def __init__(self, tree: MemoryTree, broker_id: int, name: str, new_id: Callable[[], UUID], kept: Kept = Kept.ALL) -> None:
        self.kept = kept
        self.broker_id, self.name = broker_id, name
        self.store = MemoryStore(tree)
        config, _ = BrokerConfig.from_properties({"node.id": str(broker_id)})
        self.core = Controller(config, (), new_id=new_id, alone=False, incarnation=name)
        self.candidate = Candidate(self.store, self.core.election, lambda _: self.reload())
        self.store.watch_session(self.candidate.session_changed)
        self.stale = True

    def reload(self) -> None:
        self.core.load(self.store.list("/"))
        self.stale = False

    def attempt(self, step: Callable[[], None]) -> None:
        """One step; what goes wrong leaves the process in doubt, and who is in doubt reads."""
        try:
            if self.stale:
                self.reload()
            step()
        except StoreConflict as conflict:
            self.stale = True
            if conflict.path == store_entries.CONTROLLER_EPOCH:
                self.candidate.tell(WriteRefusedEvent())
        except (StoreUnavailable, BrokerIdInUse):
            self.stale = True
        except KafkaError as error:
            if error.code not in {ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH}:
                raise

    def commit(self, plan: Plan) -> None:
        if plan.operations:
            self.store.commit(plan.operations)
            self.core.committed(plan)

    def live(self) -> None:
        """Register, become active, stand for controller, and as one settle what came of others."""
        self.candidate.settle()
        core = self.core
        core.observe(observe_all(core.image, self.store.list("/")))
        mine = core.image.brokers.get(self.broker_id)
        if mine is None or mine.incarnation != self.name:
            self.commit(core.register(BrokerRegistration(self.broker_id, (), incarnation=self.name, kept=self.kept)))
        elif mine.state is BrokerState.FENCED:
            self.reload()
            if not core.has_old_duties:
                self.commit(core.change_own_state(BrokerState.ACTIVE))
                if self.kept is not Kept.ALL:
                    stored = observe_all(MetadataImage(""), self.store.list("/")).delta.topics
                    states = [state for topic in stored for state in topic.partitions]
                    assert not any(counts_on(state, self.broker_id, lossy=True) for state in states)
                self.kept = Kept.ALL
        if core.election.is_leading:
            while core.is_unsettled:
                self.commit(core.settle())


class History(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.tree = MemoryTree()
        self.ids = iter(range(1, 1_000_000))
        self.names = 0
        self.processes: dict[int, Process] = {}
        self.doubtful: set[int] = set()  # brokers that ended before the controller had handled their lost records
        self.led: dict[tuple[UUID, int, int], int] = {}  # the leader of a partition in a leader epoch
        self.led_in: dict[tuple[UUID, int, int], int] = {}  # the broker epoch of that leader
        self.last: dict[tuple[UUID, int], PartitionState] = {}
        self.epochs: set[tuple[int, int]] = set()
        for broker_id in BROKERS:
            self.begin(broker_id)
        for _ in range(3):
            for process in self.processes.values():
                process.attempt(process.live)
        self.create(1, 2, "a")
        assert len(self.stored()) == 1

    def begin(self, broker_id: int, *, lost_power: bool = False) -> None:
        self.names += 1
        kept = Kept.SYNCED if lost_power or broker_id in self.doubtful else Kept.ALL
        self.doubtful.discard(broker_id)
        process = Process(self.tree, broker_id, f"process-{self.names}", lambda: UUID(int=next(self.ids)), kept)
        self.processes[broker_id] = process

    def on(self, broker_id: int, step: Callable[[Process], None]) -> None:
        process = self.processes.get(broker_id)
        if process is not None:
            process.attempt(lambda: step(process))

    @rule(n=st.sampled_from(BROKERS))
    def live(self, n: int) -> None:
        self.on(n, Process.live)

    @rule(order=st.permutations(BROKERS))
    def all_live(self, order: Sequence[int]) -> None:
        for n in order:
            self.live(n)

    @rule(n=st.sampled_from(BROKERS), noticed=st.booleans(), looks=st.integers(0, 3))
    def crash(self, n: int, noticed: bool, looks: int) -> None:
        """The process ends and another one begins, at once or when everybody has seen that it was gone; it looks before the others."""
        self.die(n)
        self.sessions_of_the_dead_expire()
        if noticed:
            self.all_live(BROKERS)
        self.begin_again(n)
        for _ in range(looks):
            self.live(n)

    @rule(n=st.sampled_from(BROKERS))
    def die(self, n: int) -> None:
        """The session outlives the process until it expires."""
        if n in self.processes:
            process = self.processes.pop(n)
            process.store.suspend()
            if process.kept is not Kept.ALL:
                self.doubtful.add(n)

    @rule(n=st.sampled_from(BROKERS), lost_power=st.booleans())
    def begin_again(self, n: int, lost_power: bool = False) -> None:
        if n not in self.processes:
            self.begin(n, lost_power=lost_power)

    @rule()
    def sessions_of_the_dead_expire(self) -> None:
        for client in list(self.tree.clients):
            if all(process.store is not client for process in self.processes.values()):
                client.close()

    @rule(n=st.sampled_from(BROKERS), fault=st.sampled_from(["suspend", "resume", "expire"]))
    def connection(self, n: int, fault: str) -> None:
        if n in self.processes:
            getattr(self.processes[n].store, fault)()

    @rule(n=st.sampled_from(BROKERS), done=st.booleans())
    def lose_reply(self, n: int, done: bool) -> None:
        if n in self.processes:
            self.processes[n].store.lose_next_reply(done=done)

    @rule(n=st.sampled_from(BROKERS), partitions=st.integers(1, 3), name=st.sampled_from("ab"))
    def create(self, n: int, partitions: int, name: str) -> None:
        def step(process: Process) -> None:
            process.commit(process.core.create_topics([NewTopic(name, partitions, 3, configs=SETTINGS)])[1])

        self.on(n, step)

    @rule(n=st.sampled_from(BROKERS), name=st.sampled_from("ab"))
    def delete(self, n: int, name: str) -> None:
        self.on(n, lambda process: process.commit(process.core.delete_topics([(name, ZERO_UUID)])[1]))

    @rule(n=st.sampled_from(BROKERS), replicas=st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True))
    def move(self, n: int, replicas: Sequence[int]) -> None:
        self.on(n, lambda process: process.commit(process.core.reassign([MoveRequest("a", 0, replicas)])[1]))

    @rule(n=st.sampled_from(BROKERS))
    def cancel(self, n: int) -> None:
        self.on(n, lambda process: process.commit(process.core.reassign([MoveRequest("a", 0, None)])[1]))

    @rule(n=st.sampled_from(BROKERS))
    def elect(self, n: int) -> None:
        self.on(n, lambda process: process.commit(process.core.elect_leaders(ElectionType.PREFERRED, None)[1]))

    @rule(n=st.sampled_from(BROKERS), others=st.sets(st.sampled_from(BROKERS)))
    def alter(self, n: int, others: set[int]) -> None:
        """Broker `n` hears from every leader which replicas of its partitions are in sync."""
        self.on(n, lambda process: self.report(process, others))

    def report(self, process: Process, others: set[int]) -> None:
        image = process.core.image
        for topic in list(image.topics.values()):
            for number, state in enumerate(topic.partitions):
                leader = image.brokers.get(state.leader)
                if leader is None:
                    continue
                in_sync = {state.leader, *(others & set(state.replicas) & image.brokers.keys())}
                epochs = tuple((broker_id, image.brokers[broker_id].epoch) for broker_id in sorted(in_sync))
                change = InSyncChange(state.leader_epoch, state.partition_epoch, epochs)
                request = InSyncRequest(topic.topic_id, number, change)
                process.commit(process.core.alter_partitions(state.leader, leader.epoch, [request])[1])

    def stored(self) -> list[Topic]:
        entries = sorted(self.tree.entries.values())

        def under(prefix: str) -> list[Entry]:
            return [entry for entry in entries if entry.path.startswith(prefix)]

        return store_entries.decode_topics(under(store_entries.TOPICS), under(store_entries.PARTITIONS))

    @invariant()
    def the_store_is_sound(self) -> None:
        brokers = [store_entries.decode_broker(e) for e in self.tree.entries.values() if e.path.startswith(store_entries.BROKERS)]
        self.brokers = {broker.broker_id: broker for broker in brokers}
        for topic in self.stored():
            for number, state in enumerate(topic.partitions):
                self.check_state(topic.topic_id, number, state)

    def check_state(self, topic_id: UUID, number: int, state: PartitionState) -> None:
        leader = self.brokers.get(state.leader)
        if leader is not None and leader.is_active:
            term = topic_id, number, state.leader_epoch
            assert self.led_in.setdefault(term, leader.epoch) == leader.epoch, "a leader went on after it was gone"
        assert state.isr
        assert set(state.isr) <= set(state.replicas)
        assert set(state.eligible) <= set(state.replicas) - set(state.isr)
        if state.leader != NO_LEADER:
            assert state.leader in state.isr
            assert not state.is_lost
            assert self.led.setdefault((topic_id, number, state.leader_epoch), state.leader) == state.leader
        before = self.last.get((topic_id, number), state)
        if state != before:
            assert state.leader_epoch >= before.leader_epoch
            assert state.partition_epoch > before.partition_epoch
        self.last[topic_id, number] = state

    @invariant()
    def one_process_for_each_broker_epoch(self) -> None:
        for entry in list(self.tree.entries.values()):
            if entry.path.startswith(store_entries.BROKERS):
                broker = store_entries.decode_broker(entry)
                self.epochs.add((broker.epoch, broker.broker_id))
        assert len({epoch for epoch, _ in self.epochs}) == len(self.epochs)

    @precondition(lambda self: hasattr(self, "tree"))
    @rule()
    def heal(self) -> None:
        """Everyone is back and looks a few times: there is one controller, and everything is led by who is active."""
        self.sessions_of_the_dead_expire()
        for n in BROKERS:
            self.begin_again(n)
            self.processes[n].store._next_reply_lost = None
            self.processes[n].store.resume()
        for _ in range(4):
            for process in self.processes.values():
                process.attempt(process.live)
        (controller,) = [process for process in self.processes.values() if process.core.election.is_leading]
        for _ in range(2):
            controller.attempt(lambda: self.report(controller, set(BROKERS)))
            controller.attempt(controller.live)
        brokers = controller.core.image.brokers
        assert {n: broker.state for n, broker in brokers.items()} == dict.fromkeys(BROKERS, BrokerState.ACTIVE)
        assert {t.name: t for t in self.stored()} == dict(controller.core.image.topics)
        for topic in self.stored():
            for state in topic.partitions:
                assert state.leader != NO_LEADER
                assert set(state.isr) == set(state.replicas)
                assert not state.is_moving

    def teardown(self) -> None:
        if hasattr(self, "tree"):
            self.heal()


History.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestHistory = History.TestCase


def test_a_controller_without_its_fence_is_caught() -> None:
    """The canary: the same history with a controller whose writes are not fenced breaks the rules that are checked here."""
    history = History()
    history.start()
    old = history.processes[1]
    old.store.hold_watches()
    old.store.expire()
    for n in (2, 3, 2, 3):
        history.live(n)
    assert history.processes[2].core.election.is_leading

    def unfenced(operations: tuple[Operation, ...]) -> list[Operation]:
        return [operation for operation in operations if operation.path != store_entries.CONTROLLER_EPOCH]

    _, plan = old.core.reassign([MoveRequest("a", 0, (4,))])
    for fenced in (True, False):
        refused = ""
        try:
            old.store.commit(plan.operations if fenced else unfenced(plan.operations))
        except StoreConflict as conflict:
            refused = conflict.path
        # Without the fence only the chunk version stops the write, and only if the successor has written the chunk.
        assert refused == (store_entries.CONTROLLER_EPOCH if fenced else store_entries.chunk_path("a", 0))
