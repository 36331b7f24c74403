"""Static members: who has a name keeps its place (KIP-345, KIP-814)."""

from __future__ import annotations

import pytest

from barnabas.coordination.classic.group import GroupState
from barnabas.errors import ErrorCode
from tests.coordination.driver import Driver
from tests.coordination.support import subscription


def static_group(driver: Driver, *tokens: str) -> dict[str, str]:
    """A stable group of static members named after their tokens."""
    for token in tokens:
        driver.send_join(token, instance_id=token)
    driver.settle()
    ids = {token: driver.joined(token).member_id for token in tokens}
    group = driver.group()
    for token, member_id in sorted(ids.items(), key=lambda item: item[1] == group.leader):
        shares = {m: t.encode() for t, m in ids.items()} if member_id == group.leader else {}
        driver.send_sync(token, member_id, group.generation, shares, instance_id=token)
    assert group.state is GroupState.STABLE
    return ids


def test_a_static_member_needs_no_second_request() -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    assert driver.joined("a").generation_id == 1
    assert ids["a"] == "a-1"


def test_a_follower_that_restarts_keeps_its_assignment_without_a_rebalance() -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    driver.send_join("b2", instance_id="b")
    again = driver.joined("b2")
    assert (again.error_code, again.generation_id, again.skip_assignment) == (ErrorCode.NONE, 1, False)
    assert again.member_id != ids["b"]
    driver.send_sync("b2", again.member_id, 1, instance_id="b")
    assert driver.synced("b2").assignment == b"b"
    assert driver.heartbeat(ids["a"], 1, "a") is ErrorCode.NONE


def test_the_former_member_is_fenced_everywhere() -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    driver.send_join("b2", instance_id="b")
    driver.send_join("b", ids["b"], instance_id="b")
    assert driver.join_error("b") is ErrorCode.FENCED_INSTANCE_ID
    driver.send_sync("b", ids["b"], 1, instance_id="b")
    assert driver.synced("b").error_code == ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(Exception, match="FENCED_INSTANCE_ID"):
        driver.heartbeat(ids["b"], 1, "b")
    assert driver.leave((ids["b"], "b")) == [ErrorCode.FENCED_INSTANCE_ID]


@pytest.mark.parametrize(("version", "skips"), [(9, True), (8, False)])
def test_a_leader_that_restarts_is_spared_the_assignment_if_it_understands(version: int, *, skips: bool) -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    driver.send_join("a2", instance_id="a", version=version)
    again = driver.joined("a2")
    assert again.skip_assignment is skips
    assert (again.leader == again.member_id) is skips
    assert len(again.members) == (2 if skips else 0)
    if not skips:
        assert again.leader == ids["a"]  # so the member acts as a follower


def test_what_was_replaced_is_what_is_loaded() -> None:
    driver = Driver()
    static_group(driver, "a", "b")
    driver.send_join("b2", instance_id="b")
    group = driver.restarted().group()
    assert group.members[driver.joined("b2").member_id].assignment == b"b"
    assert len(group.members) == 2


def test_another_protocol_means_a_rebalance() -> None:
    driver = Driver()
    for token in ("a", "b"):
        driver.send_join(token, instance_id=token, protocols=("range", "rr"))
    driver.settle()
    ids = {token: driver.joined(token).member_id for token in ("a", "b")}
    driver.assign(ids)
    driver.send_join("b2", instance_id="b", protocols=("rr",))
    assert "b2" not in driver.answers
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    driver.send_join("a", ids["a"], instance_id="a", protocols=("range", "rr"))
    assert driver.joined("b2").protocol_name == "rr"


def test_coming_back_while_the_leader_assigns_means_a_rebalance() -> None:
    driver = Driver()
    for token in ("a", "b"):
        driver.send_join(token, instance_id=token)
    driver.settle()
    a, b = (driver.joined(token).member_id for token in ("a", "b"))
    driver.send_sync("b", b, 1, instance_id="b")
    driver.send_join("b2", instance_id="b")
    assert driver.synced("b").error_code == ErrorCode.FENCED_INSTANCE_ID
    driver.send_sync("a", a, 1, {a: b"", b: b""}, instance_id="a")
    assert driver.synced("a").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.send_join("a", a, instance_id="a")
    assert driver.joined("b2").generation_id == 2


def test_two_of_one_name_waiting_the_first_is_fenced() -> None:
    driver = Driver()
    driver.send_join("first", instance_id="a")
    driver.send_join("second", instance_id="a")
    driver.settle()
    assert driver.join_error("first") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.joined("second").generation_id == 1
    assert len(driver.group().members) == 1


def test_static_members_stay_through_a_rebalance_that_they_miss() -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    driver.send_join("a", ids["a"], instance_id="a", protocols={"range": subscription(["u"])}, session_timeout_ms=100_000)
    driver.group().members[ids["b"]].session_timeout_ms = 100_000
    driver.heartbeat(ids["b"], 1, "b")
    driver.advance(60_000)
    assert driver.joined("a").generation_id == 2
    assert len(driver.joined("a").members) == 2


def test_an_administrator_removes_by_name() -> None:
    driver = Driver()
    static_group(driver, "a", "b")
    assert driver.leave(("", "b"), ("", "nobody")) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(driver.group().static_members) == ["a"]
    assert driver.group().state is GroupState.PREPARING_REBALANCE


def test_a_replacement_that_cannot_be_written_is_taken_back() -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    driver.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    driver.send_join("b2", instance_id="b", session_timeout_ms=50_000)
    assert driver.join_error("b2") is ErrorCode.NOT_COORDINATOR
    assert driver.heartbeat(ids["b"], 1, "b") is ErrorCode.NONE
    assert driver.group().members[ids["b"]].session_timeout_ms == 10_000


def test_a_name_is_of_no_use_to_a_pending_member() -> None:
    driver = Driver()
    member_id = driver.new_id("a")
    driver.send_join("a", member_id, instance_id="x")
    assert driver.join_error("a") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("timeout_ms", [0, -(2**31)])
def test_absent_static_members_without_patience_do_not_keep_the_shard_busy(timeout_ms: int) -> None:
    driver = Driver()
    ids = static_group(driver, "a", "b")
    for member in driver.group().members.values():
        member.rebalance_timeout_ms = timeout_ms
    driver.send_join("c")
    driver.leave(driver.joined("c").member_id)
    driver.settle()
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    assert set(driver.group().members) == set(ids.values())
    assert driver.shard.next_deadline_ms() > driver.clock.steady
