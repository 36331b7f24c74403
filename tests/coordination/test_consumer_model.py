"""A consumer group under random members, topics, refused writes and restarts, against what must hold whatever they do.

The model knows what clients own: no two own the same partition, and when they go on sending heartbeats the group comes to rest.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.interfaces import GroupSettings
from barnabas.coordination.consumer.member import ConsumerMember
from barnabas.coordination.group_shard import GroupShard
from barnabas.errors import ErrorCode, KafkaError
from tests.coordination.consumer_driver import JOIN, LEAVE, LEAVE_STATIC, Client, TopicTable, consumer_driver, let_pass
from tests.coordination.driver import GROUP

STATIC = {"s1": "i1", "s2": "i2"}
CLIENTS = st.sampled_from(["a", "b", "c", *STATIC])
TOPICS = st.sampled_from(["t", "u", "v-1", "v-2"])
MAY_FAIL = {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNRELEASED_INSTANCE_ID}


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = consumer_driver(t=3, u=2)
        self.clients: dict[str, Client] = {}
        self.lives = 0
        self.refused = False
        self.highest = 0

    @initialize(interval_ms=st.sampled_from([0, 0, 1_000]))
    def begin(self, interval_ms: int) -> None:
        self.driver.topics.settings = GroupSettings(assignment_interval_ms=interval_ms)

    def send(self, client: Client, *, full: bool) -> None:
        assert client.go_on(full=full) in MAY_FAIL

    # -- clients --------------------------------------------------------------------------------------------------------

    @rule(name=CLIENTS, topics=st.frozensets(TOPICS, max_size=2), regex=st.sampled_from(["", "", "v-.*", "[tu]"]))
    def joins(self, name: str, topics: frozenset[str], regex: str) -> None:
        """A new process, under the same name if that is static."""
        if name in self.clients and name not in STATIC:
            return
        self.lives += 1
        former = self.clients.get(name)
        if former is not None and former.epoch != JOIN:
            return
        client = Client(self.driver, f"{name}-{self.lives}", topics, regex, STATIC.get(name))
        self.clients[name] = client
        self.send(client, full=True)

    @rule(name=CLIENTS, full=st.booleans())
    def sends_a_heartbeat(self, name: str, full: bool) -> None:
        if name in self.clients:
            self.send(self.clients[name], full=full)

    @rule(name=CLIENTS, topics=st.frozensets(TOPICS, max_size=2), regex=st.sampled_from(["", "v-.*", "[tu]"]))
    def subscribes_anew(self, name: str, topics: frozenset[str], regex: str) -> None:
        if name in self.clients:
            client = self.clients[name]
            client.topics, client.regex = topics, regex
            self.send(client, full=True)

    @rule(name=CLIENTS, assignor=st.sampled_from(["uniform", "range"]))
    def chooses_an_assignor(self, name: str, assignor: str) -> None:
        if name in self.clients:
            self.clients[name].assignor = assignor

    @rule(name=CLIENTS)
    def loses_an_answer(self, name: str) -> None:
        """It says again what it has said before, in the epoch it was in."""
        client = self.clients.get(name)
        if client is None or client.epoch == JOIN:
            return
        epoch, owned = client.epoch, client.owned
        self.send(client, full=False)
        if client.epoch not in (JOIN, epoch):
            client.epoch, client.owned = epoch, owned

    @rule(name=CLIENTS, for_now=st.booleans())
    def leaves(self, name: str, for_now: bool) -> None:
        client = self.clients.get(name)
        if client is None or client.epoch == JOIN:
            return
        try:
            client.leave(LEAVE_STATIC if for_now and name in STATIC else LEAVE)
        except KafkaError:
            return
        del self.clients[name]

    @rule(name=CLIENTS)
    def dies(self, name: str) -> None:
        self.clients.pop(name, None)

    # -- environment ----------------------------------------------------------------------------------------------------

    @rule(name=TOPICS, count=st.integers(0, 4))
    def a_topic_changes(self, name: str, count: int) -> None:
        topics: TopicTable = self.driver.topics
        if count == 0 or count > topics.counts.get(name, 0):
            topics.set(name, count)

    @rule(passed_ms=st.sampled_from([1, 500, 1_000, 30_000, 46_000, 61_000]))
    def time_passes(self, passed_ms: int) -> None:
        """A member whose session has ended by then owns nothing: a client gives up its partitions when its session must be over."""
        let_pass(self.driver, passed_ms, self.clients.values())

    @rule(code=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE]))
    def the_log_refuses(self, code: ErrorCode | None) -> None:
        self.driver.refusal = code

    @rule()
    @precondition(lambda self: self.driver.refusal is None)
    def restart(self) -> None:
        self.driver.carry_out(self.driver.shard.unload(self.driver.clock.now()))
        self.driver = self.driver.restarted()
        for client in self.clients.values():
            client.driver = self.driver

    @rule()
    def everybody_goes_on(self) -> None:
        """With heartbeats alone the group comes to rest, and everything that is read has an owner."""
        self.driver.refusal = None
        self.driver.advance(46_000)
        self.time_passes(1)
        for _ in range(12):
            for client in self.clients.values():
                self.send(client, full=True)
            self.driver.advance(1_000)
        group = self.driver.shard.groups.get(GROUP)
        if not self.clients:
            assert group is None or group.is_empty
            return
        assert isinstance(group, ConsumerGroup)
        assert group.state == "Stable"
        topics: TopicTable = self.driver.topics
        read = {
            (name, p)
            for client in self.clients.values()
            for name in topics.counts
            if name in (client.topics or ()) or (client.regex and topics.matcher(client.regex)(name))
            for p in range(topics.counts[name])
        }
        assert {place for client in self.clients.values() for place in client.partitions} == read

    # -- invariants -----------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_owned_twice(self) -> None:
        owned = [place for c in self.clients.values() for t, ps in c.owned.items() for place in ((t, p) for p in ps)]
        assert len(owned) == len(set(owned))

    @invariant()
    def epochs_grow(self) -> None:
        group = self.driver.shard.groups.get(GROUP)
        epoch = group.epoch if isinstance(group, ConsumerGroup) else 0
        assert epoch >= self.highest or epoch == 0
        self.highest = epoch

    @invariant()
    def the_log_says_the_same(self) -> None:
        loaded = GroupShard(self.driver.config, self.driver.clock.now(), self.driver.topics)
        for record in self.driver.log:
            loaded.replay(record)
        loaded.validate()
        assert durable(loaded) == durable(self.driver.shard)


def durable(shard: GroupShard) -> object:
    group = shard.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return group
    members: dict[str, ConsumerMember] = group.members
    return group.epoch, group.metadata_hash, group.assignment_epoch, members, group.target, group.expressions


ConsumerGroupMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestConsumerGroups = ConsumerGroupMachine.TestCase
