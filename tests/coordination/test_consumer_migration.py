"""Groups that go from the classic protocol to that of consumers and back, with members of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.member import ClassicSide
from barnabas.coordination.result import CoordinatorResult
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_protocol_subscription import TopicPartition as Owned
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.coordination.consumer_driver import LEAVE_STATIC, Client, consumer_driver, consumer_group, settle
from tests.coordination.driver import GROUP, Driver
from tests.coordination.support import subscription

VERSION = b"\x00\x01"


def assignment(topic: str, partitions: list[int], user_data: bytes | None = None) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=topic, partitions=partitions)], user_data=user_data
    )
    return VERSION + bytes(encode(message, 1))


@dataclass
class Old:
    """A classic consumer of the topic `t` that balances cooperatively, or eagerly."""

    driver: Driver
    token: str
    instance_id: str | None = None
    is_eager: bool = False
    member_id: str = ""
    generation: int = -1
    owned: set[int] = field(default_factory=set)
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    assignor: str = "range"

    def metadata(self) -> dict[str, bytes]:
        owned = [Owned(topic="t", partitions=sorted(self.owned))] if self.owned else []
        message = ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned)
        return {self.assignor: VERSION + bytes(encode(message, 1))}

    def join(self) -> ErrorCode:
        """Ask to be in; where the group waits for others there is no answer yet, which is NONE."""
        if self.is_eager:
            self.owned = set()
        self.driver.send_join(
            self.token,
            self.member_id,
            instance_id=self.instance_id,
            protocols=self.metadata(),
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
        )
        self.driver.settle()
        return self.hear()

    def hear(self) -> ErrorCode:
        answer = self.driver.answers.get(self.token)
        if isinstance(answer, ErrorCode):
            return answer
        if isinstance(answer, JoinGroupResponse):
            self.member_id = answer.member_id or self.member_id
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                return self.join()
            if not answer.error_code:
                self.generation = answer.generation_id
            return ErrorCode(answer.error_code)
        return ErrorCode.NONE

    def sync(self, shares: dict[str, bytes] | None = None) -> ErrorCode:
        self.driver.send_sync(self.token, self.member_id, self.generation, shares, instance_id=self.instance_id)
        answer = self.driver.answers.get(f"{self.token}/sync")
        if not isinstance(answer, SyncGroupResponse):
            return ErrorCode.NONE
        if not answer.error_code:
            told = decode(ConsumerProtocolAssignment, 1, answer.assignment, 2) if answer.assignment else None
            self.owned = {p for each in (told.assigned_partitions if told else ()) for p in each.partitions}
        return ErrorCode(answer.error_code)

    def heartbeat(self) -> ErrorCode:
        try:
            return self.driver.heartbeat(self.member_id, self.generation, self.instance_id)
        except KafkaError as error:
            return error.code

    def go_on(self) -> None:
        """Do what a consumer does between two polls."""
        if self.heartbeat() is not ErrorCode.NONE:
            assert self.join() is ErrorCode.NONE
            assert self.sync() is ErrorCode.NONE


def classic(driver: Driver, **how: Any) -> Old:
    """The only member of a stable classic group, with all partitions of a topic of four."""
    old = Old(driver, "old", **how)
    assert old.join() is ErrorCode.NONE
    assert old.sync({old.member_id: assignment("t", [0, 1, 2, 3])}) is ErrorCode.NONE
    assert old.owned == {0, 1, 2, 3}
    return old


def numbers(client: Client) -> set[int]:
    return {p for _, p in client.partitions}


def both_at_rest(old: Old, new: Client) -> None:
    for _ in range(6):
        old.go_on()
        new.beat()
        assert not old.owned & numbers(new)
    assert len(old.owned) == len(new.partitions) == 2
    assert consumer_group(new.driver).state == "Stable"


@pytest.mark.parametrize("is_eager", [False, True])
def test_classic_members_go_on_beside_new_ones(is_eager: bool) -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver, is_eager=is_eager), Client(driver, "m")
    new.beat()
    assert new.partitions == set(), "the classic member has all, and does not know yet"
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    both_at_rest(old, new)
    types = {m.member_id: m.member_type for m in driver.shard.describe_consumers(GROUP).members}
    assert types == {"m": 1, old.member_id: 0}
    restarted = driver.restarted()
    old.driver = new.driver = restarted
    both_at_rest(old, new)


def test_the_last_new_member_leaves_a_classic_group_behind() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver), Client(driver, "m")
    new.beat()
    both_at_rest(old, new)
    new.leave()
    assert driver.group().state_name == "PreparingRebalance"
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join() is ErrorCode.NONE
    assert old.generation == 3
    assert old.sync({old.member_id: assignment("t", [0, 1, 2, 3])}) is ErrorCode.NONE
    assert old.owned == {0, 1, 2, 3}
    new.epoch = 0
    new.beat()
    both_at_rest(old, new)


def test_a_new_member_that_falls_silent_leaves_a_classic_group_behind() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver, session_timeout_ms=60_000), Client(driver, "m")
    new.beat()
    both_at_rest(old, new)
    driver.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.advance(46_000)
    assert isinstance(driver.shard.groups[GROUP], ConsumerGroup)
    driver.refusal = None
    driver.advance(1_000)
    assert driver.group().members.keys() == {old.member_id}


def test_a_group_that_was_to_become_classic_does_so_when_it_is_loaded() -> None:
    driver = consumer_driver(t=4)
    driver.config.group_consumer_migration_policy = "upgrade"
    old, new = classic(driver), Client(driver, "m")
    new.beat()
    both_at_rest(old, new)
    new.leave()
    assert isinstance(driver.shard.groups[GROUP], ConsumerGroup), "the way back is not allowed"
    driver.config.group_consumer_migration_policy = "bidirectional"
    restarted = driver.restarted()
    assert isinstance(restarted.shard.groups[GROUP], ClassicGroup)


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_group_may_have_to_stay_classic(policy: str) -> None:
    driver = consumer_driver(t=4)
    driver.config.group_consumer_migration_policy = policy
    old = classic(driver)
    assert Client(driver, "m").error() is ErrorCode.GROUP_ID_NOT_FOUND
    assert old.heartbeat() is ErrorCode.NONE


def test_what_cannot_be_translated_stays_classic() -> None:
    driver = consumer_driver(t=4)
    old = Old(driver, "old")
    driver.send_join("old", protocols={"range": b"?"})
    assert old.hear() is not None
    driver.send_join("old", driver.joined("old").member_id, protocols={"range": b"?"})
    driver.settle()
    assert Client(driver, "m").error() is ErrorCode.GROUP_ID_NOT_FOUND


def test_every_subscription_of_a_classic_member_has_to_be_readable() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver, assignor="roundrobin"), Client(driver, "m")
    new.beat()
    both_at_rest(old, new)
    driver.send_join("x", "x", protocols={"range": subscription(["t"]), "roundrobin": b"?"})
    assert driver.join_error("x") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert set(consumer_group(driver).members) == {old.member_id, "m"}


def test_a_classic_group_with_an_unreadable_subscription_stays_one() -> None:
    driver = consumer_driver(t=4)
    member_id = driver.new_id("old", protocols=["range"])
    driver.send_join("old", member_id, protocols={"range": subscription(["t"]), "roundrobin": b"?"})
    driver.settle()
    assert Client(driver, "m").error() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_subscription_of_another_broker_s_log_that_cannot_be_read_breaks_no_deadline() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver, session_timeout_ms=60_000), Client(driver, "m")
    new.beat()
    both_at_rest(old, new)
    member = consumer_group(driver).members[old.member_id]
    broken = replace(member, classic=ClassicSide(60_000, (("range", b"?"),)))
    driver.carry_out(CoordinatorResult(records=[broken.to_member_record(GROUP)]))
    new.leave()
    driver.advance(30_000)
    assert set(consumer_group(driver).members) == {old.member_id}, "it cannot become a classic group"
    restarted = driver.restarted()
    restarted.advance(61_000)
    assert consumer_group(restarted).is_empty


@pytest.mark.parametrize(("assignor", "is_known"), [("cooperative-sticky", True), ("range", True), ("of-my-own", False)])
def test_data_beside_an_assignment_counts_where_an_assignor_may_read_it(assignor: str, is_known: bool) -> None:
    driver = consumer_driver(t=4)
    old = Old(driver, "old", assignor=assignor)
    assert old.join() is ErrorCode.NONE
    assert old.sync({old.member_id: assignment("t", [0, 1, 2, 3], b"what the member has sent")}) is ErrorCode.NONE
    new = Client(driver, "m")
    if is_known:
        new.beat()
        both_at_rest(old, new)
    else:
        assert new.error() is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_upgrade_that_is_refused_has_not_been() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver), Client(driver, "m")
    driver.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert new.error() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.refusal = None
    assert old.heartbeat() is ErrorCode.NONE
    new.beat()
    both_at_rest(old, new)


@pytest.mark.parametrize("refusal", [None, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_who_waits_for_others_is_sent_to_join_again(refusal: ErrorCode | None) -> None:
    driver = consumer_driver(t=4)
    old = classic(driver)
    late = Old(driver, "late")
    late.join()
    assert "late" not in driver.answers or driver.answers["late"].error_code == ErrorCode.MEMBER_ID_REQUIRED
    driver.refusal = refusal
    Client(driver, "m").error()
    driver.refusal = None
    assert late.hear() in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS}
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    late.join()
    assert late.member_id in (consumer_group(driver).members if refusal is None else driver.group().members)


def test_what_cooperative_members_go_on_reading_is_theirs_in_an_unfinished_rebalance() -> None:
    driver = consumer_driver(t=4)
    old, second = classic(driver), Old(driver, "second")
    second.join()
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    old.join()
    assert driver.group().state_name == "CompletingRebalance"
    Old(driver, "third").join()
    assert driver.group().state_name == "PreparingRebalance"
    new = Client(driver, "m")
    new.beat()
    assert old.owned == {0, 1, 2, 3}
    assert new.partitions == set()
    for _ in range(4):
        old.go_on()
        new.beat()
        assert not old.owned & numbers(new)
    assert new.partitions


def test_classic_members_are_held_to_their_timeouts() -> None:
    for case in ("session", "join", "sync"):
        driver = consumer_driver(t=4)
        old, new = classic(driver, rebalance_timeout_ms=20_000, session_timeout_ms=30_000), Client(driver, "m")
        new.beat()
        if case == "join":
            assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        elif case == "sync":
            assert old.join() is ErrorCode.NONE
        for _ in range(35 if case == "session" else 22):
            driver.advance(1_000)
            new.beat()
            if case != "session" and old.member_id in consumer_group(driver).members:
                old.heartbeat()
        assert set(consumer_group(driver).members) == {"m"}, case


def test_classic_requests_have_to_fit_the_member() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver), Client(driver, "m")
    new.beat()
    other = Old(driver, "other", member_id="m", generation=new.epoch)
    assert other.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert other.sync() is ErrorCode.UNKNOWN_MEMBER_ID
    generation, old.generation = old.generation, 99
    assert old.heartbeat() is ErrorCode.ILLEGAL_GENERATION
    assert old.sync() is ErrorCode.ILLEGAL_GENERATION
    old.generation = generation
    assert old.sync() is ErrorCode.REBALANCE_IN_PROGRESS
    driver.send_join("x", protocol_type="connect")
    assert driver.join_error("x") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    driver.send_join("x", protocols=["strange"])
    assert driver.join_error("x") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_static_member_is_upgraded_in_its_place() -> None:
    driver = consumer_driver(t=4)
    old = classic(driver, instance_id="i")
    new = Client(driver, "m", instance_id="i")
    new.beat()
    settle(new)
    assert numbers(new) == {0, 1, 2, 3}
    assert set(consumer_group(driver).members) == {"m"}
    assert old.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    new.leave(LEAVE_STATIC)
    old.member_id = ""
    assert old.join() is ErrorCode.NONE
    assert isinstance(driver.shard.groups[GROUP], ClassicGroup), "all that is left is classic"


def test_a_classic_static_member_that_restarts_is_taken_to_its_target() -> None:
    driver = consumer_driver(t=4)
    new = Client(driver, "m")
    new.beat()
    old = Old(driver, "old", instance_id="i")
    assert old.join() is ErrorCode.NONE
    assert old.sync() is ErrorCode.NONE
    assert old.owned == set(), "the other has all yet"
    again = Old(driver, "again", instance_id="i")
    assert again.join() is ErrorCode.NONE
    assert again.sync() is ErrorCode.NONE
    both_at_rest(again, new)


def test_a_classic_static_member_that_restarts_at_its_target_stays_there() -> None:
    driver = consumer_driver(t=4)
    old, new = classic(driver, instance_id="i"), Client(driver, "m")
    new.beat()
    both_at_rest(old, new)
    had, generation = old.owned, old.generation
    again = Old(driver, "again", instance_id="i")
    assert again.join() is ErrorCode.NONE
    assert again.sync() is ErrorCode.NONE
    assert (again.owned, again.generation) == (had, generation)
    assert again.heartbeat() is ErrorCode.NONE


def test_what_an_expression_matches_is_not_resolved_for_a_classic_member() -> None:
    driver = consumer_driver(**{"t": 4, "v-1": 1})
    new = Client(driver, "m", topics=None, regex="v-.*", may_describe=lambda names: [name for name in names if name == "v-1"])
    new.beat()
    driver.topics.set("v-2", 1)
    old = Old(driver, "old")
    assert old.join() is ErrorCode.NONE
    new.beat()
    assert consumer_group(driver).expressions == {"v-.*": frozenset({"v-1"})}
    assert new.partitions == {("v-1", 0)}


def test_members_of_both_kinds_leave_by_the_classic_request() -> None:
    driver = consumer_driver(t=4)
    old, new, static = classic(driver), Client(driver, "m"), Client(driver, "s", instance_id="i")
    new.beat()
    static.beat()
    assert driver.leave("m", "x", ("", "i"), ("", "j")) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert driver.group().members.keys() == {old.member_id}


def test_an_empty_group_of_consumers_becomes_classic_on_the_first_join() -> None:
    driver = consumer_driver(t=4)
    new = Client(driver, "m")
    new.beat()
    driver.commit(5, "m", 2, topic_id=driver.topics.topic_id("t"))
    new.leave()
    driver.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    old = Old(driver, "old")
    assert old.join() is ErrorCode.NOT_ENOUGH_REPLICAS
    assert consumer_group(driver).is_empty
    driver.refusal = None
    old = classic(driver)
    assert driver.fetch() == 5
    assert driver.restarted().group().members.keys() == {old.member_id}
