"""Which windows are the worst, beside a naive model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from demo.watch import FEWEST_DEPARTURES, KEPT, LATE_MINUTES, Window, Worst, mean_delay

windows = st.lists(
    st.fixed_dictionaries({"departed": st.integers(0, 30), "dep_delay_sum": st.integers(-100, 5_000)}), max_size=40
)


@given(windows)
def test_the_worst_are_those_that_sorting_would_find(offered: list[Window]) -> None:
    worst = Worst()
    for window in offered:
        worst.offer(window)
    bad = [mean_delay(w) for w in offered if w["departed"] >= FEWEST_DEPARTURES and mean_delay(w) >= LATE_MINUTES]
    assert [mean_delay(w) for w in worst.windows] == sorted(bad, reverse=True)[:KEPT]
    assert worst.seen == len(offered)
