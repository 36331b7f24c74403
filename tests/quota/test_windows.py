"""The rate over the last windows, beside a plain sum over a list of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.quota.windows import WindowedRate


def test_it_is_taken_over_all_windows_but_one_at_first() -> None:
    rate = WindowedRate(11, 1_000)
    assert rate.per_second(0) == 0
    rate.record(100, 0)
    assert rate.per_second(0) == 10
    assert rate.per_second(5_000) == 10
    assert rate.per_second(10_500) == pytest.approx(100 / 10.5)
    assert rate.per_second(11_000) == 0


def test_what_is_taken_back_did_not_happen() -> None:
    rate = WindowedRate(11, 1_000)
    rate.record(100, 0)
    rate.record(-100, 500)
    assert rate.per_second(500) == 0


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 2_500)), min_size=1, max_size=60))
def test_it_is_the_sum_of_the_windows_that_overlap_the_span(events: list[tuple[int, int]]) -> None:
    rate, now_ms = WindowedRate(3, 1_000), 0
    windows: list[list[int]] = []  # start, last event, sum
    for value, pause_ms in events:
        now_ms += pause_ms
        if not windows or now_ms - windows[-1][0] >= 1_000:
            windows.append([now_ms, now_ms, 0])
        windows[-1][1:] = [now_ms, windows[-1][2] + value]
        rate.record(value, now_ms)
        kept = [window for window in windows if now_ms - window[1] < 3_000]
        elapsed = now_ms - kept[0][0]
        over_ms = elapsed + max(2 - elapsed // 1_000, 0) * 1_000
        assert rate.per_second(now_ms) == pytest.approx(sum(window[2] for window in kept) * 1_000 / over_ms)
