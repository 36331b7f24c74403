"""Medians, spreads, and ratios taken pair by pair."""

from __future__ import annotations

from typing import Any

import pytest
from bench.figures import median, number, ratio, spread, values


def _measured(runs: dict[str, list[float]], *, higher_is_better: bool = True) -> dict[str, Any]:
    return {"higher_is_better": higher_is_better, "runs": {key: [{"value": v} for v in each] for key, each in runs.items()}}


def test_a_ratio_is_the_median_of_the_ratios_of_pairs_and_not_the_ratio_of_medians() -> None:
    measured = _measured({"ours": [100.0, 10.0, 60.0], "theirs": [10.0, 2.0, 20.0]})
    assert ratio(measured, "ours", "theirs") == 5.0


def test_a_ratio_says_how_many_times_better_where_less_is_better() -> None:
    measured = _measured({"ours": [1.0, 2.0], "theirs": [4.0, 4.0]}, higher_is_better=False)
    assert ratio(measured, "ours", "theirs") == 3.0


def test_there_is_no_ratio_to_what_was_not_measured_or_to_nothing() -> None:
    assert ratio(_measured({"ours": [1.0]}), "ours", "theirs") is None
    assert ratio(_measured({"ours": [1.0], "theirs": [0.0]}), "ours", "theirs") is None


def test_values_leave_out_repetitions_without_the_figure() -> None:
    assert values({"runs": {"ours": [{"value": 1.0}, {"other": 2.0}]}}, "ours") == [1.0]
    assert median([]) is None


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [([], "-"), ([1234.5], "1,234"), ([3.0, 1.0, 2.0], "2 (1 to 3)"), ([0.12345], "0.123"), ([250.4], "250")],
)
def test_spread(numbers: list[float], shown: str) -> None:
    assert spread(numbers) == shown


def test_numbers_keep_three_digits_where_they_are_small() -> None:
    assert [number(value) for value in (0.00123, 99.99, 1e6)] == ["0.00123", "100", "1,000,000"]
