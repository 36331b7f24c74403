"""A group under random clients, against what must hold whatever they do.

The model knows only what clients were told. The log refuses writes and the coordinator restarts now and then.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordination.classic.group import ClassicGroup, GroupState
from barnabas.coordination.group_shard import GroupShard
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupResponse
from tests.coordination.driver import GROUP, Driver
from tests.coordination.support import Config, subscription

CLIENTS = st.sampled_from(["a", "b", "c", "d"])
STATIC = {"c": "ic", "d": "id"}  # static members: client -> group instance id
PARTITIONS = range(4)


def durable(shard: GroupShard) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state that a restart must not change: settled groups and all offsets."""
    groups = {}
    for group_id, group in shard.groups.items():
        assert isinstance(group, ClassicGroup)
        if group.is_in(GroupState.STABLE, GroupState.EMPTY):
            members = {
                m.member_id: (m.instance_id, m.assignment, m.session_timeout_ms, m.protocols.get(group.protocol or ""))
                for m in group.members.values()
            }
            groups[group_id] = (group.state, group.generation, group.protocol, group.leader, members)
    offsets = {g: {t: {p: v.offset for p, v in o.items()} for t, o in shard.offsets.of_group(g).items()} for g in shard.groups}
    return groups, offsets


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(Config(group_initial_rebalance_delay_ms=1_000))
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}  # the generation that each client knows
        self.waiting: set[str] = set()  # clients whose JoinGroup is not answered
        self.syncing: set[str] = set()
        self.assigned: dict[int, dict[int, str]] = {}  # generation -> partition -> member id
        self.committed: dict[int, int] = {}
        self.highest = 0
        self.refused = False  # a write was refused since the last restart: the log may be behind the memory

    # -- clients --------------------------------------------------------------------------------------------------------

    @rule(client=CLIENTS, topic=st.sampled_from(["t", "u"]), version=st.sampled_from([3, 5, 9]), fresh=st.booleans())
    def join(self, client: str, topic: str, version: int, *, fresh: bool) -> None:
        """As clients do: with the id they know or without, and again at once when they are told one."""
        self.collect()
        if client in self.waiting:
            return
        known = self.ids.get(client)
        self.send_join(client, "" if fresh else known or "", topic, version)
        if client not in self.waiting and self.ids.get(client) not in {None, known}:
            self.send_join(client, self.ids[client], topic, version)

    def send_join(self, client: str, member_id: str, topic: str, version: int) -> None:
        self.waiting.add(client)
        protocols = {"range": subscription([topic])}
        self.driver.send_join(client, member_id, instance_id=STATIC.get(client), protocols=protocols, version=version)
        self.collect()

    @rule(client=CLIENTS)
    def sync(self, client: str) -> None:
        self.collect()
        if client not in self.generations or client in self.waiting or client in self.syncing:
            return
        group = self.driver.shard.groups.get(GROUP)
        shares = {}
        if isinstance(group, ClassicGroup) and group.leader == self.ids[client]:
            members = list(group.members)
            shares = {m: bytes(p for p in PARTITIONS if p % len(members) == i) for i, m in enumerate(members)}
        self.syncing.add(client)
        self.driver.send_sync(client, self.ids[client], self.generations[client], shares, instance_id=STATIC.get(client))
        self.collect()

    @rule(client=CLIENTS)
    def heartbeat(self, client: str) -> None:
        if client not in self.generations:
            return
        try:
            self.driver.heartbeat(self.ids[client], self.generations[client], STATIC.get(client))
        except KafkaError as error:
            code = error.code
        else:
            return
        assert code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}

    @rule(client=CLIENTS, partition=st.sampled_from(PARTITIONS), offset=st.integers(0, 100))
    def commit(self, client: str, partition: int, offset: int) -> None:
        member_id, generation = self.ids.get(client, ""), self.generations.get(client, -1)
        group = self.driver.shard.groups.get(GROUP)
        try:
            error = self.driver.commit(offset, member_id, generation, partition=partition)
        except KafkaError:
            return
        if self.driver.refusal is not None:
            return
        assert error is ErrorCode.NONE
        self.committed[partition] = offset
        if isinstance(group, ClassicGroup) and group.members:
            assert group.generation == generation
            assert member_id in group.members

    @rule(client=CLIENTS)
    def leave(self, client: str) -> None:
        if client in self.ids and GROUP in self.driver.shard.groups:
            self.driver.leave((self.ids[client], STATIC[client]) if client in STATIC else self.ids[client])
            self.generations.pop(client, None)
            self.ids.pop(client)
        self.collect()

    # -- environment ----------------------------------------------------------------------------------------------------

    @rule(passed_ms=st.sampled_from([1, 500, 1_000, 5_000, 9_000, 70_000]))
    def time_passes(self, passed_ms: int) -> None:
        self.driver.advance(passed_ms)
        self.collect()

    @rule(code=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE]))
    def the_log_refuses(self, code: ErrorCode | None) -> None:
        self.driver.refusal = code
        self.refused = self.refused or code is not None

    @rule()
    @precondition(lambda self: self.driver.refusal is None)
    def restart(self) -> None:
        self.collect()
        self.driver.carry_out(self.driver.shard.unload(self.driver.clock.now()))
        self.collect()
        assert not self.waiting, "somebody was forgotten"
        assert not self.syncing
        self.driver = self.driver.restarted()
        self.refused = False
        self.highest = min(self.highest, self.driver.group().generation) if GROUP in self.driver.shard.groups else 0

    def collect(self) -> None:
        """Read what has been answered."""
        for client in list(self.waiting):
            answer = self.driver.answers.pop(client, None)
            if answer is None:
                continue
            self.waiting.discard(client)
            if isinstance(answer, JoinGroupResponse) and answer.error_code in {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}:
                self.ids[client] = answer.member_id
                if answer.error_code == ErrorCode.NONE:
                    self.generations[client] = answer.generation_id
        for client in list(self.syncing):
            answer = self.driver.answers.pop(f"{client}/sync", None)
            if answer is None:
                continue
            self.syncing.discard(client)
            if not isinstance(answer, ErrorCode) and answer.error_code == ErrorCode.NONE:
                owners = self.assigned.setdefault(self.generations[client], {})
                for partition in answer.assignment:
                    owner = self.ids[client]
                    known = owners.setdefault(partition, owner)
                    same_name = client in STATIC and known.startswith(STATIC[client])
                    assert known == owner or same_name, f"{partition} belongs to {known} and {owner}"

    # -- invariants -----------------------------------------------------------------------------------------------------

    @invariant()
    def generations_grow(self) -> None:
        group = self.driver.shard.groups.get(GROUP)
        if isinstance(group, ClassicGroup):
            assert group.generation >= self.highest
            self.highest = group.generation

    @invariant()
    def what_was_committed_is_there(self) -> None:
        for partition, offset in self.committed.items():
            assert self.driver.fetch(partition=partition) == offset

    @invariant()
    def the_log_says_the_same(self) -> None:
        if self.driver.refusal is not None:
            return
        loaded = GroupShard(self.driver.config, self.driver.clock.now(), self.driver.topics)
        for record in self.driver.log:
            loaded.replay(record)
        loaded.validate()
        here_groups, here_offsets = durable(self.driver.shard)
        log_groups, log_offsets = durable(loaded)
        assert here_offsets == log_offsets
        assert here_groups.keys() <= log_groups.keys()
        for group_id, state in here_groups.items():
            assert self.refused or state == log_groups[group_id]

    def teardown(self) -> None:
        self.driver.refusal = None
        self.driver.carry_out(self.driver.shard.unload(self.driver.clock.now()))
        self.collect()
        assert not self.waiting, "somebody was never answered"
        assert not self.syncing


GroupMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)
TestGroups = GroupMachine.TestCase
