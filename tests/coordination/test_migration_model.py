"""Members of both protocols in one group, at random: whatever group it is at the moment, nothing is owned twice."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.coordination.consumer_driver import JOIN, Client, consumer_driver, let_pass
from tests.coordination.driver import GROUP, Driver
from tests.coordination.test_consumer_migration import Old, assignment

PARTITIONS = 4
NEW, OLD = st.sampled_from(["n1", "n2"]), st.sampled_from(["o1", "o2", "static"])
MAY_FAIL = {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class Classic(Old):
    """An eager consumer that does one thing at a time: it owns nothing from the moment it joins until it is assigned something."""

    waits_for = ""  # "", "join" or "sync"

    def step(self) -> None:
        if self.waits_for:
            self.take_answer()
        elif self.generation < 0:
            self.ask_to_join()
        else:
            code = self.heartbeat()
            if code is not ErrorCode.NONE:
                self.generation = -1
                self.member_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
                self.owned = set()
                self.ask_to_join()

    def ask_to_join(self) -> None:
        self.owned = set()
        self.waits_for = "join"
        self.driver.send_join(
            self.token, self.member_id, instance_id=self.instance_id, protocols=self.metadata(), session_timeout_ms=10_000
        )
        self.driver.settle()
        self.take_answer()

    def take_answer(self) -> None:
        key = self.token if self.waits_for == "join" else f"{self.token}/sync"
        answer = self.driver.answers.pop(key, None)
        if answer is None:
            return
        waited_for, self.waits_for = self.waits_for, ""
        code = answer if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        if code is not ErrorCode.NONE:
            self.generation = -1
        elif waited_for == "join":
            assert isinstance(answer, JoinGroupResponse)
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.ask_for_assignment(answer)
        else:
            assert isinstance(answer, SyncGroupResponse)
            told = decode(ConsumerProtocolAssignment, 1, answer.assignment, 2) if answer.assignment else None
            self.owned = {p for each in (told.assigned_partitions if told else ()) for p in each.partitions}

    def ask_for_assignment(self, joined: JoinGroupResponse) -> None:
        ids = [m.member_id for m in joined.members]
        shares = {m: assignment("t", [p for p in range(PARTITIONS) if p % len(ids) == i]) for i, m in enumerate(ids)}
        self.waits_for = "sync"
        self.driver.send_sync(self.token, self.member_id, self.generation, shares, instance_id=self.instance_id)
        self.take_answer()


class MigrationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver: Driver = consumer_driver(t=PARTITIONS)
        self.old: dict[str, Classic] = {}
        self.new: dict[str, Client] = {}
        self.lives = 0

    @rule(name=OLD)
    def old_goes_on(self, name: str) -> None:
        self.lives += name not in self.old
        self.old.setdefault(name, self.begun(name)).step()

    def begun(self, name: str) -> Classic:
        return Classic(self.driver, f"{name}-{self.lives}", name if name == "static" else None)

    @rule()
    @precondition(lambda self: "static" in self.old)
    def the_static_one_restarts(self) -> None:
        """It has nothing, and does not know who it was."""
        self.lives += 1
        self.old["static"] = self.begun("static")
        self.old["static"].step()

    @rule(name=NEW, full=st.booleans())
    def new_goes_on(self, name: str, full: bool) -> None:
        self.lives += name not in self.new
        client = self.new.setdefault(name, Client(self.driver, f"{name}-{self.lives}"))
        assert client.go_on(full=full) in MAY_FAIL

    @rule(name=NEW)
    def new_leaves(self, name: str) -> None:
        client = self.new.get(name)
        if client is not None and client.epoch != JOIN and self.driver.refusal is None:
            with suppress(KafkaError):  # the group had removed the member already
                client.leave()
            del self.new[name]

    @rule(name=OLD)
    def old_leaves(self, name: str) -> None:
        old = self.old.get(name)
        if old is not None and old.member_id and not old.waits_for and self.driver.refusal is None:
            self.driver.leave(old.member_id)
            del self.old[name]

    @rule(passed_ms=st.sampled_from([1, 3_000, 61_000]))
    def time_passes(self, passed_ms: int) -> None:
        """A member whose session has ended by then has noticed it by its own clock."""
        members = let_pass(self.driver, passed_ms, self.new.values())
        for old in self.old.values():
            if old.member_id not in members:
                old.owned = set()

    @rule(code=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def the_log_refuses(self, code: ErrorCode | None) -> None:
        self.driver.refusal = code

    @rule()
    @precondition(lambda self: self.driver.refusal is None)
    def restart(self) -> None:
        self.driver.carry_out(self.driver.shard.unload(self.driver.clock.now()))
        answers = self.driver.answers
        self.driver = self.driver.restarted()
        self.driver.answers.update(answers)
        for new in self.new.values():
            new.driver = self.driver
        for old in self.old.values():
            old.driver = self.driver

    @rule()
    def everybody_goes_on(self) -> None:
        """With heartbeats alone the group comes to rest, and every partition has an owner."""
        self.driver.refusal = None
        self.time_passes(61_000)
        for _ in range(16):
            for name in list(self.old):
                self.old_goes_on(name)
            for name in list(self.new):
                self.new_goes_on(name, full=True)
            self.driver.advance(1_000)
        owned = {p for old in self.old.values() for p in old.owned}
        owned |= {p for client in self.new.values() for _, p in client.partitions}
        assert owned == (set(range(PARTITIONS)) if self.old or self.new else set())
        group = self.driver.shard.groups.get(GROUP)
        assert not self.new or isinstance(group, ConsumerGroup)
        assert self.new or not self.old or isinstance(group, ClassicGroup)

    @invariant()
    def nothing_is_owned_twice(self) -> None:
        group = self.driver.shard.groups.get(GROUP)
        generation = group.generation if isinstance(group, ClassicGroup) else None
        owned: list[int] = []
        for old in self.old.values():
            # members of older generations of a classic group have to rebalance
            if generation is None or old.generation == generation:
                owned += old.owned
        if isinstance(group, ConsumerGroup):
            owned += [p for client in self.new.values() for _, p in client.partitions]
            assert len(owned) == len(set(owned))

    @invariant()
    def who_is_where_the_target_is_has_what_it_says(self) -> None:
        """All members subscribe to the same topic, and it stays."""
        group = self.driver.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        for member in group.members.values():
            if member.is_reconciled_to(group.assignment_epoch):
                has = {t: frozenset(partitions) for t, partitions in member.assigned.items()}
                target = group.target.get(member.member_id, {})
                assert has == {t: partitions for t, partitions in target.items() if partitions}
                assert not member.pending_revocation


MigrationMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestMigration = MigrationMachine.TestCase
