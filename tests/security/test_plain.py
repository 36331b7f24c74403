"""PLAIN, and how long failures wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.exchange import AuthenticationFailed, Identity
from barnabas.security.penalties import FORGET_MS, FREE_FAILURES, MAX_DELAY_MS, Penalties
from barnabas.security.plain import PlainExchange

USERS = {"alice": "geheim", "zoë": "pässwort"}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("named", [True, False])
def test_who_knows_the_password_gets_in_once(user: str, named: bool) -> None:
    exchange = PlainExchange(USERS)
    message = f"{user if named else ''}\0{user}\0{USERS[user]}".encode()
    assert exchange.evaluate(message) == b""
    assert exchange.identity == Identity(user)
    with pytest.raises(AuthenticationFailed, match="too many"):
        exchange.evaluate(message)


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: f"\0alice\0{text}".encode()))
def test_nobody_else_does(message: bytes) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(AuthenticationFailed):
        exchange.evaluate(message)
    assert exchange.identity is None


def test_a_password_without_a_user_to_it_is_none() -> None:
    for message in (b"\0nobody\0", b"\0nobody\0\0", b"\0nobody\0geheim"):
        with pytest.raises(AuthenticationFailed):
            PlainExchange(USERS).evaluate(message)


A = ("a", None)


def test_failures_wait_longer_the_more_there_are() -> None:
    penalties = Penalties(100, max_hosts=100, max_waiting=2)
    delays = [penalties.delay_ms(A, 0) for _ in range(FREE_FAILURES + 10)]
    assert delays[:FREE_FAILURES] == [100] * FREE_FAILURES
    assert delays[FREE_FAILURES : FREE_FAILURES + 3] == [200, 400, 800]
    assert delays[-1] == MAX_DELAY_MS
    assert penalties.delay_ms(("b", None), 0) == 100
    assert penalties.delay_ms(A, FORGET_MS) == MAX_DELAY_MS
    assert penalties.delay_ms(A, 2 * FORGET_MS + 1) == 100


def test_a_delay_beyond_the_longest_stays_as_it_is_and_none_stays_none() -> None:
    for base_ms in (0, 2 * MAX_DELAY_MS):
        penalties = Penalties(base_ms, max_hosts=100, max_waiting=2)
        assert {penalties.delay_ms(A, 0) for _ in range(100)} == {base_ms}


def test_no_more_addresses_are_kept_than_allowed() -> None:
    penalties = Penalties(100, max_hosts=2, max_waiting=2)
    for _ in range(FREE_FAILURES + 1):
        penalties.delay_ms(A, 0)
    for host in "bc":
        penalties.delay_ms((host, None), 1)
    assert len(penalties) == 2
    assert penalties.delay_ms(A, 2) == 100


def _failing(penalties: Penalties, source: tuple[str, str | None], times: int, now_ms: float = 0) -> int:
    return [penalties.delay_ms(source, now_ms) for _ in range(times)][-1]


def test_what_an_address_shows_after_ten_failures_waits_for_the_answer_to_the_last() -> None:
    penalties = Penalties(100, max_hosts=100, max_waiting=2)
    _failing(penalties, A, FREE_FAILURES)
    assert penalties.wait_ms(A, 0) == 0, "as on Kafka"
    assert penalties.wait_ms(("b", None), 0) == 0
    assert _failing(penalties, A, 2) == 400
    assert [penalties.wait_ms(A, now_ms) for now_ms in (0, 100, 400)] == [400, 300, 0]
    _failing(penalties, A, 20)
    assert penalties.wait_ms(A, 0) == MAX_DELAY_MS


def test_a_user_who_is_known_at_the_address_does_not_wait_for_others() -> None:
    penalties = Penalties(100, max_hosts=100, max_waiting=2)
    penalties.logged_in("a", "alice")
    _failing(penalties, penalties.source("a", "bob"), 12)
    assert penalties.wait_ms(penalties.source("a", "bob"), 0) > 0
    assert penalties.wait_ms(penalties.source("a", "alice"), 0) == 0
    assert penalties.wait_ms(penalties.source("b", "alice"), 0) == 0
    _failing(penalties, penalties.source("a", "alice"), 12)
    assert penalties.wait_ms(penalties.source("a", "alice"), 0) > 0


def test_no_more_wait_than_allowed() -> None:
    penalties = Penalties(100, max_hosts=100, max_waiting=2)
    _failing(penalties, A, 12)
    assert [penalties.begin_wait(A) for _ in range(3)] == [True, True, False]
    _failing(penalties, A, 1, 2 * FORGET_MS)  # the failures count from zero again, but the waiting log-ins still count
    assert not penalties.begin_wait(A)
    penalties.end_wait(A)
    assert penalties.begin_wait(A)


def test_no_more_users_are_known_than_allowed() -> None:
    penalties = Penalties(100, max_hosts=2, max_waiting=2)
    for user in ("x", "y", "x", "z"):
        penalties.logged_in("a", user)
    assert [penalties.source("a", user)[1] for user in ("x", "y", "z")] == ["x", None, "z"]
