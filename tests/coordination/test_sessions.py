"""Assignments, heartbeats, leaving, and members of which nothing is heard."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.classic.group import GroupState
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from tests.coordination.driver import Driver


def test_followers_wait_for_the_leader_s_assignment() -> None:
    driver = Driver()
    a, b = (driver.new_id(token) for token in ("a", "b"))
    driver.send_join("a", a)
    driver.send_join("b", b)
    driver.settle()
    driver.send_sync("b", b, 1)
    assert driver.group().state is GroupState.COMPLETING_REBALANCE
    driver.send_sync("a", a, 1, {a: b"A", "ghost": b"G"})
    assert driver.synced("a").assignment == b"A"
    assert driver.synced("b").assignment == b""
    assert driver.synced("b").protocol_name == "range"


def test_an_assignment_is_given_again_while_the_group_is_stable() -> None:
    driver = Driver()
    _, b = driver.stable("a", "b")
    driver.send_sync("again", b, 1)
    assert driver.synced("again").assignment == b"b"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "rr"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_syncs_that_do_not_fit_are_refused(how: dict[str, Any], code: ErrorCode) -> None:
    driver = Driver()
    (a,) = driver.stable("a")
    driver.send_sync("x", **{"member_id": a, "generation": 1, **how})
    assert driver.synced("x").error_code == code


def test_a_rebalance_sends_those_who_wait_for_an_assignment_back() -> None:
    driver = Driver()
    a, b = (driver.new_id(token) for token in ("a", "b"))
    driver.send_join("a", a)
    driver.send_join("b", b)
    driver.settle()
    driver.send_sync("b", b, 1)
    driver.send_join("c", version=3)
    assert driver.synced("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.send_sync("late", a, 1)
    assert driver.synced("late").error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_leader_leaves_in_the_middle_and_another_leads() -> None:
    driver = Driver()
    a, b = (driver.new_id(token) for token in ("a", "b"))
    driver.send_join("a", a)
    driver.send_join("b", b)
    driver.settle()
    driver.send_sync("b", b, 1)
    assert driver.leave(a) == [ErrorCode.NONE]
    assert driver.synced("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.send_join("b", b)
    assert driver.joined("b").leader == b
    assert driver.joined("b").generation_id == 2


def test_an_assignment_that_cannot_be_written_is_given_to_nobody() -> None:
    driver = Driver()
    a, b = (driver.new_id(token) for token in ("a", "b"))
    driver.send_join("a", a)
    driver.send_join("b", b)
    driver.settle()
    driver.send_sync("b", b, 1)
    driver.refusal = ErrorCode.MESSAGE_TOO_LARGE
    driver.send_sync("a", a, 1, {a: b"A", b: b"B"})
    assert driver.synced("a").error_code == driver.synced("b").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert driver.group().state is GroupState.PREPARING_REBALANCE


def test_who_is_not_heard_of_is_out() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b", session_timeout_ms=6_000)
    for _ in range(3):
        driver.advance(2_500)
        if b in driver.group().members:
            assert driver.heartbeat(a, 1) in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
    assert list(driver.group().members) == [a]
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        driver.heartbeat(b, 1)


def test_who_waits_for_us_is_not_silent() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b", session_timeout_ms=6_000, rebalance_timeout_ms=50_000)
    driver.send_join("a", a, session_timeout_ms=6_000, rebalance_timeout_ms=50_000)
    for _ in range(8):
        driver.advance(5_000)
        assert driver.heartbeat(b, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert a in driver.group().members


def test_a_new_member_that_waits_too_long_is_taken_for_gone() -> None:
    driver = Driver()
    (a,) = driver.stable("a", session_timeout_ms=6_000, rebalance_timeout_ms=1_000_000)
    driver.send_join("b", version=3, rebalance_timeout_ms=1_000_000)
    for _ in range(60):
        driver.advance(5_000)
        driver.heartbeat(a, 1)
    assert driver.join_error("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_never_asks_for_its_assignment_is_out() -> None:
    driver = Driver()
    a, b = (driver.new_id(token, rebalance_timeout_ms=6_000) for token in ("a", "b"))
    driver.send_join("a", a, rebalance_timeout_ms=6_000)
    driver.send_join("b", b, rebalance_timeout_ms=6_000)
    driver.settle()
    driver.send_sync("a", a, 1, {a: b"A", b: b"B"})
    driver.advance(5_000)
    assert driver.heartbeat(b, 1) is ErrorCode.NONE
    driver.advance(1_000)
    assert list(driver.group().members) == [a]
    assert driver.heartbeat(a, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_to_leave_empties_the_group() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    assert driver.leave(a, b, "ghost") == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    group = driver.restarted().group()
    assert group.is_empty
    assert group.generation == 2
    assert group.protocol_type == "consumer"


def test_a_pending_member_may_leave() -> None:
    driver = Driver()
    member_id = driver.new_id("a")
    assert driver.leave(member_id) == [ErrorCode.NONE]
    assert not driver.group().pending_joins


def test_a_restart_keeps_members_until_their_sessions_run_out() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    driver = driver.restarted()
    assert driver.group().state is GroupState.STABLE
    driver.advance(9_000)
    assert driver.heartbeat(a, 1) is ErrorCode.NONE
    driver.send_sync("b", b, 1)
    assert driver.synced("b").assignment == b"b"
    driver.advance(1_000)
    assert list(driver.group().members) == [a]


def test_unloading_sends_everybody_away() -> None:
    driver = Driver()
    a, b = driver.stable("a", "b")
    driver.send_join("a", a)
    driver.carry_out(driver.shard.unload(driver.clock.now()))
    assert driver.join_error("a") is ErrorCode.NOT_COORDINATOR
    assert driver.group().state is GroupState.DEAD
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        driver.heartbeat(b, 1)


def test_groups_without_a_name_have_no_members() -> None:
    driver = Driver()
    with pytest.raises(KafkaError, match="INVALID_GROUP_ID"):
        driver.shard.heartbeat(HeartbeatRequest(), driver.clock.now())
