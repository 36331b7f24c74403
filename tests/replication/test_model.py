"""Three brokers, a controller and everything that may come late: what was acknowledged is with everybody who may lead next.

No sockets: fetches, answers, proposals and the controller's words are steps of their own, in any order, and some get lost. Brokers go on
with old news until they are told.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import iterate_records, split_batches
from barnabas.protocol.values import NO_LEADER
from barnabas.replication.follower_partition import FollowerPartition
from barnabas.replication.follower_state import DivergingEpoch, LeadersAnswer, Next, Position
from barnabas.replication.in_sync import IsrChange
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.partition import OnlinePartition
from barnabas.storage.log import Log
from tests.replication.test_follower_state import failed
from tests.replication.test_partition import NOW_MS, batch
from tests.replication.test_partition_followers import FakeCluster, State
from tests.storage.support import bytes_of, open_log

NODES = (1, 2, 3)
MINIMUM = 2
node = st.sampled_from(NODES)


class Node(FakeCluster):
    """One broker: its log and its part in the partition."""

    def __init__(self, node_id: int, folder: Path) -> None:
        super().__init__()
        self.node_id = node_id
        self.log: Log = open_log(folder / str(node_id), config=TopicConfig(min_insync_replicas=MINIMUM, segment_bytes=4096))
        self.role: OnlinePartition = FollowerPartition(self.log, State(NO_LEADER, 0), flushes=None, high_watermark=0)
        self.flight: tuple[FollowerPartition, Position, LeadersAnswer] | None = None  # an answer in flight to this node

    def assume(self, state: State, now_ms: int) -> None:
        """As the hosting does it."""
        role = self.role
        if state.leader_epoch < role.leader_epoch:
            return
        if isinstance(role, FollowerPartition):
            if state.leader != self.node_id:
                role.follow(state)
                return
            led = LeaderPartition(
                self.log, leader_id=self.node_id, leader_epoch=state.leader_epoch, high_watermark=role.high_watermark
            )
            self.role = led
            led.lead(state, self, now_ms)
        elif state.leader == self.node_id:
            role.lead(state, self, now_ms)
        else:
            self.role = FollowerPartition(self.log, state, flushes=None, high_watermark=role.high_watermark)
        if self.role is not role:
            role.close()

    def restart(self) -> None:
        """The process was killed: the log is as it was, but begins where was written down; the high watermark is an older one."""
        mark = self.role.high_watermark // 2
        self.log.log_start_offset = self.log.kept_start_offset
        self.role.close()
        self.flight = None
        self.proposed.clear()
        self.role = FollowerPartition(self.log, State(NO_LEADER, 0), flushes=None, high_watermark=mark)

    def records(self) -> dict[int, bytes]:
        """The records of the log, by offset."""
        found, offset = {}, self.log.log_start_offset
        while (region := self.log.reader.read(offset, 10**6, limit_offset=self.log.log_end_offset, minimum_one=True)) is not None:
            data = bytes_of(region)
            for at, header in split_batches(data):
                found.update({record.offset: record.value or b"" for record in iterate_records(data, at)})
                offset = header.next_offset
        return found


class Replication(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.nodes = {node_id: Node(node_id, folder) for node_id in NODES}
        self.state = State(leader_epoch=1)
        self.now_ms = 0
        self.count = 0
        self.acknowledged: dict[int, bytes] = {}
        self.seen: dict[int, bytes] = {}  # records that consumers read, from any leader
        self.deletable = self.deleted = 0  # deletion was requested below `deletable`, and acknowledged below `deleted`
        for each in self.nodes.values():
            each.assume(self.state, 0)

    # Clients

    @rule(at=node)
    def produce(self, at: int) -> None:
        role = self.nodes[at].role
        if not role.is_leader:
            return
        self.count += 1
        value = b"%d" % self.count
        try:
            offset = role.append_as_leader(batch(value), NOW_MS, acks_all=True).first_offset
        except KafkaError:
            return

        def done(error: KafkaError | None) -> None:
            if error is None:
                self.acknowledged[offset] = value

        if role.is_committed(offset):
            done(None)
        else:
            role.wait_acknowledged(offset, done, acks_all=True)

    @rule(at=node, share=st.floats(0, 1))
    def delete(self, at: int, share: float) -> None:
        """DeleteRecords: the leader writes its own start down at once."""
        role = self.nodes[at].role
        if not role.is_leader:
            return
        offset = round(share * role.high_watermark)
        self.deletable = max(self.deletable, offset)
        role.log.truncator.delete_records_before(offset)
        role.log.truncator.start_written(role.log.truncator.start_mark)

        def done(error: KafkaError | None) -> None:
            if error is None:
                self.deleted = max(self.deleted, offset)

        if role.is_deleted(offset):
            done(None)
        else:
            role.wait_deleted(offset, done)

    # Followers

    @rule(at=node)
    def write_start(self, at: int) -> None:
        log = self.nodes[at].log
        log.truncator.start_written(log.truncator.start_mark)

    @rule(at=node)
    def fetch(self, at: int) -> None:
        role = self.nodes[at].role
        if isinstance(role, FollowerPartition) and role.leader_id != NO_LEADER:
            self.nodes[at].flight = role, role.position, self._answer(at, role)

    def _answer(self, at: int, follower: FollowerPartition) -> LeadersAnswer:
        leader, asked = self.nodes[follower.leader_id].role, follower.position
        try:
            leader.check_leader_epoch(asked.leader_epoch)
            if not leader.is_leader:
                raise KafkaError(leader.refusal)
            diverging = leader.diverging_epoch(asked.last_fetched_epoch, asked.offset)
            if diverging is not None:
                return LeadersAnswer(ErrorCode.NONE, -1, -1, b"", DivergingEpoch(*diverging))
            leader.fetched_by(at, asked.offset, start_offset=asked.log_start_offset, broker_epoch=at, now_ms=self.now_ms)
            region = leader.read_as_follower(asked.offset, 150, minimum_one=True)
        except KafkaError as error:
            return failed(error.code)
        records = b"" if region is None else bytes_of(region)
        return LeadersAnswer(ErrorCode.NONE, leader.high_watermark, leader.log.log_start_offset, records)

    @rule(at=node)
    def deliver(self, at: int) -> None:
        flight, self.nodes[at].flight = self.nodes[at].flight, None
        if flight is not None and flight[0] is self.nodes[at].role:
            follower, asked, answer = flight
            if follower.receive(asked, answer, NOW_MS) is Next.ASK_RANGE:
                leader = self.nodes[follower.leader_id].role
                if leader.is_leader and leader.leader_epoch == follower.leader_epoch:
                    follower.reset(leader.log.log_start_offset, leader.log.log_end_offset)

    @rule(at=node)
    def follow(self, at: int) -> None:
        self.fetch(at)
        self.deliver(at)

    @rule(count=st.integers(1, 3))
    def produce_well(self, count: int) -> None:
        """A while in which nothing is late."""
        for at in NODES:
            self.tell(at)
        for _ in range(count):
            self.produce(self.state.leader)
        for at in NODES * 2:
            self.write_start(at)
            self.follow(at)

    @rule(at=node)
    def lose_answer(self, at: int) -> None:
        self.nodes[at].flight = None

    # The controller

    @rule(ms=st.integers(1, 800))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        for each in self.nodes.values():
            if each.role.is_leader:
                each.role.check_in_sync(self.now_ms)

    @rule(at=node, accepts=st.booleans(), tells=st.booleans())
    def decide(self, at: int, accepts: bool, tells: bool) -> None:
        """The controller hears a leader's proposal; its answer may get lost."""
        leader = self.nodes[at]
        if not leader.proposed:
            return
        change = leader.proposed.pop(0)
        members = tuple(member.replica_id for member in change.members)
        state = self.state
        if at != state.leader or (change.leader_epoch, change.partition_epoch) != (state.leader_epoch, state.partition_epoch):
            return  # the proposal is stale
        if accepts:
            self.state = state._replace(isr=members, partition_epoch=state.partition_epoch + 1)
            if tells:
                epochs = {"leader_epoch": self.state.leader_epoch, "partition_epoch": self.state.partition_epoch}
                if leader.role.is_leader:
                    leader.role.settle_isr(members, **epochs)
        elif tells:
            if leader.role.is_leader:
                leader.role.isr_refused(change)
        else:
            self._propose_again(leader, change)

    def _propose_again(self, leader: Node, change: IsrChange) -> None:
        if leader.role.is_leader and leader.role.is_proposing(change):
            leader.proposed.append(change)

    @rule(at=node)
    def tell(self, at: int) -> None:
        self.nodes[at].assume(self.state, self.now_ms)

    @rule(choice=st.integers(0, 2), drops=st.booleans(), told=st.sets(node))
    def elect(self, choice: int, drops: bool, told: set[int]) -> None:
        state = self.state
        leader = state.isr[choice % len(state.isr)]
        isr = tuple(i for i in state.isr if i != state.leader) if drops and leader != state.leader else state.isr
        self.state = state._replace(
            leader=leader, isr=isr, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1
        )
        for at in sorted(told):
            self.tell(at)

    @rule(at=node)
    def crash(self, at: int) -> None:
        """Nobody counts on it any more before it is back; who is the last in sync stays so."""
        state = self.state
        others = tuple(i for i in state.isr if i != at)
        isr = others or state.isr
        leader = state.leader if state.leader != at else isr[0]
        epoch = state.leader_epoch + (state.leader == at)
        self.state = state._replace(leader=leader, isr=isr, leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)
        self.nodes[at].restart()

    # Invariants

    @invariant()
    def who_may_lead_has_all_that_was_acknowledged(self) -> None:
        for node_id in self.state.isr:
            records = self.nodes[node_id].records()
            wanted = {offset: value for offset, value in self.acknowledged.items() if offset >= self.deletable}
            assert {offset: records.get(offset) for offset in wanted} == wanted, node_id

    @invariant()
    def who_may_lead_begins_where_records_were_said_to_be_gone(self) -> None:
        for node_id in self.state.isr:
            assert self.nodes[node_id].log.kept_start_offset >= self.deleted, node_id

    @invariant()
    def what_a_consumer_saw_never_changes(self) -> None:
        for each in self.nodes.values():
            mark = each.role.high_watermark
            assert mark <= each.log.log_end_offset
            each.log.validate()
            for offset, value in each.records().items():
                if offset < mark:
                    assert self.seen.setdefault(offset, value) == value

    @invariant()
    def one_leader_in_an_epoch(self) -> None:
        epochs = [each.role.leader_epoch for each in self.nodes.values() if each.role.is_leader]
        assert len(set(epochs)) == len(epochs)

    def teardown(self) -> None:
        """Everything is heard by everybody in the end: then all have the same, and all of it is committed."""
        self.state = self.state._replace(leader=self.state.isr[0], leader_epoch=self.state.leader_epoch + 1)
        for _ in range(40 + 2 * self.count):
            for at in NODES:
                self.tell(at)
                self.write_start(at)
                self.fetch(at)
                self.deliver(at)
                self.decide(at, True, True)
            self.wait(1)
        ends = {each.log.log_end_offset for each in self.nodes.values()}
        marks = {each.role.high_watermark for each in self.nodes.values()}
        assert ends == marks, f"ends {ends} marks {marks}"
        start = max(each.log.log_start_offset for each in self.nodes.values())
        records = [{offset: value for offset, value in each.records().items() if offset >= start} for each in self.nodes.values()]
        assert records.count(records[0]) == len(records)
        assert set(self.state.isr) == set(NODES)
        self.who_may_lead_has_all_that_was_acknowledged()
        for each in self.nodes.values():
            each.log.close()
        self.stack.close()


TestReplication = Replication.TestCase
TestReplication.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
