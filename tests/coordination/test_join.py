"""How members of the classic protocol come together."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.classic.group import GroupState
from barnabas.coordination.classic.join import MAX_PENDING_JOINS
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.coordination.driver import GROUP, Driver
from tests.coordination.support import Config, caller, subscription


def test_a_new_member_is_told_its_id_first() -> None:
    driver = Driver()
    member_id = driver.new_id("a")
    assert member_id == "client-1"
    assert driver.group().pending_joins == {member_id}
    driver.send_join("a", member_id)
    driver.settle()
    assert driver.joined("a").generation_id == 1
    assert not driver.group().pending_joins


@pytest.mark.parametrize("version", [0, 3])
def test_an_old_client_is_in_at_once(version: int) -> None:
    driver = Driver()
    driver.send_join("a", version=version)
    driver.settle()
    assert driver.join_error("a") is ErrorCode.NONE


def test_the_leader_learns_who_is_there_and_the_others_do_not() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    assert driver.joined("a").leader == driver.joined("b").leader == a
    assert [m.member_id for m in driver.joined("a").members] == [a, b]
    assert not driver.joined("b").members
    assert driver.synced("b").assignment == b"b"
    assert driver.group().state is GroupState.STABLE


def test_the_first_rebalance_waits_for_company_but_not_for_ever() -> None:
    driver = Driver(Config(group_initial_rebalance_delay_ms=3_000))
    for second in range(6):
        token = f"m{second}"
        driver.send_join(token, driver.new_id(token, rebalance_timeout_ms=8_000), rebalance_timeout_ms=8_000)
        driver.advance(1_400)
        assert ("m0" in driver.answers and driver.join_error("m0") is ErrorCode.NONE) == (second == 5)
    assert driver.joined("m0").generation_id == 1
    assert len(driver.group().members) == 6


def test_without_company_the_delay_runs_once() -> None:
    driver = Driver(Config(group_initial_rebalance_delay_ms=3_000))
    driver.send_join("a", driver.new_id("a"))
    driver.advance(2_999)
    assert "a" not in driver.answers
    driver.advance(1)
    assert driver.join_error("a") is ErrorCode.NONE


def test_members_that_do_not_come_back_are_out_when_time_is_up() -> None:
    driver = Driver()
    patient: dict[str, Any] = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 5_000}
    a, b = driver.stable("a", "b", **patient)
    driver.send_join("c", driver.new_id("c", **patient), **patient)
    driver.send_join("b", b, **patient)
    driver.advance(4_999)
    assert "c" not in driver.answers
    driver.advance(1)
    assert driver.join_error("c") is ErrorCode.NONE
    assert a not in driver.group().members
    assert driver.group().leader == driver.joined("b").leader == b


def test_a_pending_member_holds_a_rebalance_until_it_expires() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    pending = driver.new_id("c", session_timeout_ms=6_000)
    driver.send_join("a", a)
    driver.send_join("b", b)
    assert "a" not in driver.answers
    driver.advance(6_000)
    assert driver.joined("a").generation_id == 2
    driver.send_join("c", pending)
    assert driver.join_error("c") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_says_nothing_new_does_not_disturb() -> None:
    driver = Driver()
    _, b = driver.stable("a", "b")
    driver.send_join("b", b)
    assert driver.joined("b").generation_id == 1
    assert driver.group().state is GroupState.STABLE


def test_new_metadata_or_the_leader_joining_mean_a_rebalance() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    driver.send_join("b", b, protocols={"range": subscription(["u"])})
    assert driver.heartbeat(a, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.send_join("a", a)
    assert driver.joined("b").generation_id == 2
    driver.assign({"a": a, "b": b})
    driver.send_join("a", a)
    assert driver.heartbeat(b, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_lost_answer_is_given_again_while_the_group_completes() -> None:
    driver = Driver()
    member_id = driver.new_id("a")
    for _ in range(2):
        driver.send_join("a", member_id)
        driver.settle()
        assert driver.joined("a").generation_id == 1
        assert len(driver.joined("a").members) == 1


def test_a_member_that_joins_twice_is_answered_twice() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    driver.send_join("first", a)
    driver.send_join("second", a)
    driver.send_join("b", b)
    assert driver.join_error("first") is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.joined("second").generation_id == 2


def test_the_protocol_is_chosen_by_vote_among_those_all_speak() -> None:
    driver = Driver()
    tokens = {"a": ("x", "range", "rr"), "b": ("rr", "range"), "c": ("rr", "range", "x")}
    ids = {token: driver.new_id(token, protocols=protocols) for token, protocols in tokens.items()}
    for token, protocols in tokens.items():
        driver.send_join(token, ids[token], protocols=protocols)
    driver.settle()
    assert {driver.joined(token).protocol_name for token in tokens} == {"rr"}


@pytest.mark.parametrize(
    "how", [{"protocols": ("other",)}, {"protocol_type": "connect"}, {"protocols": ()}, {"protocol_type": ""}]
)
def test_who_cannot_follow_the_group_is_refused(how: dict[str, Any]) -> None:
    driver = Driver()
    driver.stable("a")
    driver.send_join("b", **how)
    assert driver.join_error("b") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_is_written_down_when_it_is_made() -> None:
    driver = Driver()
    driver.new_id("a")
    assert len(driver.log) == 1
    assert list(driver.restarted().shard.groups) == [GROUP]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "é" * 16_001}, ErrorCode.INVALID_GROUP_ID),
        ({"instance_id": "i" * 32_001}, ErrorCode.INVALID_REQUEST),
        ({"protocols": ("p" * 32_001,)}, ErrorCode.INVALID_REQUEST),
        ({"protocol_type": "p" * 32_001}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_cannot_be_right_are_refused(how: dict[str, Any], code: ErrorCode) -> None:
    driver = Driver()
    driver.send_join("a", **how)
    assert driver.join_error("a") is code
    assert not driver.shard.groups


def test_names_that_just_fit_are_written() -> None:
    driver = Driver()
    longest = "é" * 16_000
    driver.send_join("a", instance_id=longest, protocols=(longest,), protocol_type=longest)
    driver.settle()
    member_id = driver.joined("a").member_id
    driver.send_sync("a", member_id, 1, {member_id: b"A"}, instance_id=longest, protocol_type=longest)
    assert driver.synced("a").assignment == b"A"
    assert list(driver.restarted().group().static_members) == [longest]


def test_ids_are_not_given_out_without_end() -> None:
    driver = Driver()
    for number in range(MAX_PENDING_JOINS):
        driver.carry_out(driver.shard.join(new_member(), caller(9, str(number)), str(number), driver.clock.now()))
    driver.send_join("one more")
    assert driver.join_error("one more") is ErrorCode.GROUP_MAX_SIZE_REACHED
    driver.advance(10_000)
    driver.stable("a")


def new_member() -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols)


def test_a_full_group_takes_no_more() -> None:
    driver = Driver(Config(group_max_size=2))
    a, _ = driver.stable("a", "b")
    driver.send_join("c", version=3)
    assert driver.join_error("c") is ErrorCode.GROUP_MAX_SIZE_REACHED
    driver.send_join("a", a)
    assert driver.heartbeat(a, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_is_too_large_refuses_the_last_to_come_back() -> None:
    config = Config()
    driver = Driver(config)
    a, b, c = driver.stable("a", "b", "c")
    config.group_max_size = 2
    driver = driver.restarted()
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    for token, member_id in (("a", a), ("b", b), ("c", c)):
        driver.send_join(token, member_id)
    assert driver.join_error("c") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert set(driver.group().members) == {a, b}
    assert driver.joined("a").generation_id == 2


def test_a_group_that_cannot_be_written_is_not_made() -> None:
    driver = Driver(refusal=ErrorCode.NOT_ENOUGH_REPLICAS)
    driver.send_join("a", version=3)
    assert driver.join_error("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not driver.shard.groups
    driver.refusal = None
    driver.stable("a")
