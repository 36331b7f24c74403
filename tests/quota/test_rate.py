"""The bucket of a rate: what passes in any stretch of time, and that whoever waits as told gets on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.quota.rate import UNLIMITED, RateLimit

ANSWERS = st.lists(st.tuples(st.floats(0, 3_000), st.integers(1, 5_000)), max_size=60)


def limited(rate: int, saved_s: float = 1.0) -> RateLimit:
    limit = RateLimit(saved_s)
    limit.set_rate(rate, 0.0)
    return limit


def test_without_a_rate_there_always_is_room() -> None:
    limit = RateLimit(1.0)
    limit.record(10**12, 0.0)
    assert limit.is_unlimited
    assert (limit.room(0.0), limit.wait_ms(0.0), limit.passed) == (UNLIMITED, 0.0, 10**12)


def test_what_was_too_much_is_paid_back() -> None:
    limit = limited(1_000)
    assert limit.room(500.0) == 500
    limit.record(1_500, 500.0)
    assert limit.room(500.0) == -1_000
    assert limit.room(1_500.0) == 0
    assert limit.wait_ms(1_500.0) == 50.0  # until the bytes of 1/20 s are there
    assert limit.room(1_550.0) == 50


def test_no_more_is_saved_than_may_be() -> None:
    limit = limited(1_000, saved_s=2.0)
    assert limit.room(1e9) == 2_000


def test_a_rate_of_nothing_lets_nothing_pass() -> None:
    limit = limited(0)
    assert (limit.room(1e9), limit.wait_ms(1e9)) == (0, float("inf"))


def test_another_rate_begins_with_a_clean_slate() -> None:
    limit = limited(10)
    limit.record(100_000, 0.0)
    limit.set_rate(1_000, 100.0)
    assert limit.room(1_100.0) == 1_000
    limit.set_rate(UNLIMITED, 1_200.0)
    assert limit.wait_ms(1_200.0) == 0.0


@given(ANSWERS)
def test_the_rate_is_kept_over_any_stretch_but_for_what_was_saved_and_one_answer(answers: list[tuple[float, int]]) -> None:
    """A stretch begins where room is asked for; the model adds up what passed from there on."""
    limit, now_ms = limited(1_000), 0.0
    passed: list[tuple[float, int]] = []
    for pause_ms, size in answers:
        now_ms += pause_ms
        if limit.room(now_ms) > 0:
            limit.record(size, now_ms)
            passed.append((now_ms, size))
    for first, (began_ms, _) in enumerate(passed):
        for last in range(first, len(passed)):
            so_far = sum(size for _, size in passed[first:last])  # without the last one, which may exceed the bound
            assert so_far <= 1_000 + (passed[last][0] - began_ms) + 1


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_who_waits_as_told_gets_on(rate: int, size: int) -> None:
    limit = limited(rate)
    limit.record(size, 0.0)
    now_ms = limit.wait_ms(0.0) * (1 + 1e-9) + 0.001
    assert limit.room(now_ms) > 0
