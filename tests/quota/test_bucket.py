"""Tokens come at their rate, are saved up to a bound, and what is owed is waited for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.quota.bucket import MAX_THROTTLE_MS, TokenBucket

RATE = 100.0


def test_it_begins_with_its_first_part_and_saves_up_to_its_bound() -> None:
    bucket = TokenBucket(saved_s=2, first_s=0.5)
    assert bucket.tokens(RATE, 1_000) == 50
    assert bucket.tokens(RATE, 2_000) == 150
    assert bucket.tokens(RATE, 60_000) == 200


def test_what_is_owed_is_waited_for_and_not_forgotten() -> None:
    bucket = TokenBucket(saved_s=1, first_s=1)
    bucket.take(1_100, RATE, 0)
    assert bucket.throttle_ms(RATE, 0) == 10_000
    assert bucket.throttle_ms(RATE, 9_000) == 1_000
    assert bucket.throttle_ms(RATE, 10_000) == 0


def test_what_is_given_back_need_not_be_waited_for() -> None:
    bucket = TokenBucket(saved_s=1, first_s=0)
    bucket.take(500, RATE, 0)
    bucket.take(-400, RATE, 0)
    assert bucket.throttle_ms(RATE, 0) == 1_000


def test_another_rate_leaves_the_debt_and_changes_the_wait() -> None:
    bucket = TokenBucket(saved_s=1, first_s=0)
    bucket.take(1_000, RATE, 0)
    assert bucket.throttle_ms(10 * RATE, 0) == 1_000


def test_no_wait_is_longer_than_an_answer_can_say() -> None:
    bucket = TokenBucket(saved_s=1, first_s=0)
    bucket.take(1e12, 1, 0)
    assert bucket.throttle_ms(1, 0) == MAX_THROTTLE_MS
    assert bucket.throttle_ms(5e-324, 0) == MAX_THROTTLE_MS, "a wait past what a number can hold"


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 3_000)), min_size=1, max_size=60))
def test_who_waits_as_told_gets_the_rate_and_what_was_saved_and_no_more(requests: list[tuple[int, int]]) -> None:
    bucket, now_ms, passed = TokenBucket(saved_s=1, first_s=0.25), 0.0, 0
    for size, pause_ms in requests:
        bucket.take(size, RATE, now_ms)
        passed += size
        assert passed <= RATE * now_ms / 1_000 + RATE + size
        now_ms += bucket.throttle_ms(RATE, now_ms) + 1 + pause_ms
