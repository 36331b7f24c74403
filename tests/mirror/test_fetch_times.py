"""The times of a fetcher by what it waited for."""

from __future__ import annotations

import pytest

from barnabas.mirror.fetch_times import WINDOW_S, FetchTimes, Part


def test_a_round_trip_belongs_to_the_line_and_the_rest_of_a_wait_to_the_source() -> None:
    times = FetchTimes(0.0)
    times.waited(0.05, 1.0)
    times.waited(0.25, 2.0)
    times.add(Part.TARGET, 0.1, 2.0)
    times.answered(1000, 2.0)
    found = times.shares(2.5)
    assert found.seconds[Part.LINE] == pytest.approx(0.1)
    assert found.seconds[Part.SOURCE] == pytest.approx(0.2)
    assert found.seconds[Part.TARGET] == pytest.approx(0.1)
    assert (found.answers, found.bytes, found.round_trip_s, found.window_s) == (1, 1000, 0.05, 2.5)
    assert sum(times.counters.seconds.values()) == pytest.approx(0.4)


def test_old_times_are_dropped_and_counters_stay() -> None:
    times = FetchTimes(0.0)
    times.add(Part.LIMIT, 1.0, 1.0)
    times.failed()
    found = times.shares(2 * WINDOW_S + 1)
    assert sum(found.seconds.values()) == 0
    assert (found.answers, found.round_trip_s, found.window_s) == (0, float("inf"), WINDOW_S)
    assert (times.counters.seconds[Part.LIMIT], times.counters.errors) == (1.0, 1)


def test_the_memory_is_bounded() -> None:
    times = FetchTimes(0.0)
    for number in range(10_000):
        times.add(Part.IDLE, 0.01, number / 50)
    assert len(times._buckets) <= WINDOW_S + 2


def test_counters_are_added() -> None:
    first, second = FetchTimes(0.0), FetchTimes(0.0)
    first.answered(10, 1.0)
    first.add(Part.IDLE, 2.0, 1.0)
    second.answered(5, 1.0)
    second.failed()
    first.counters.add_all(second.counters)
    found = first.counters
    assert (found.answers, found.bytes, found.errors, found.seconds[Part.IDLE]) == (2, 15, 1, 2.0)
