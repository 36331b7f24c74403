"""The proof must fail when it should."""

from __future__ import annotations

from typing import Any

import pytest

from demo import data, verify
from demo.data import Slice
from demo.verify import Windows, compare, expected_windows

PART = Slice(2)


@pytest.fixture(scope="module")
def expected() -> Windows:
    return expected_windows(PART)


def as_results(windows: Windows) -> list[dict[str, Any]]:
    """The results that a pipeline without fault writes."""
    return [{"carrier": carrier, "window_start": start, **figures} for (carrier, start), figures in windows.items()]


def test_the_figures_add_up_to_the_package(expected: Windows) -> None:
    flights = PART.cut(data.table("flights"))
    total = {
        name: sum(figures[name] for figures in expected.values()) for name in ("flights", "departed", "dep_delay_sum", "arrived")
    }
    assert total == {
        "flights": len(flights),
        "departed": flights["dep_delay"].count(),
        "dep_delay_sum": flights["dep_delay"].sum(),
        "arrived": flights["arr_delay"].count(),
    }


def test_equal_windows_pass(expected: Windows) -> None:
    verdict = compare(expected, as_results(expected))
    assert verdict.passed
    assert verdict.equal == len(expected)


def test_the_same_window_twice_is_a_difference(expected: Windows) -> None:
    results = as_results(expected)
    verdict = compare(expected, [*results, results[0]])
    assert not verdict.passed
    assert verdict.differences[0].endswith("came twice")


@pytest.mark.parametrize("name", verify.FIGURES)
def test_a_wrong_figure_is_a_difference(expected: Windows, name: str) -> None:
    results = as_results(expected)
    results[0] = {**results[0], name: -1}
    verdict = compare(expected, results)
    assert not verdict.passed
    assert verdict.equal == len(expected) - 1
    assert name in verdict.differences[0]


def test_a_missing_window_is_a_difference(expected: Windows) -> None:
    verdict = compare(expected, as_results(expected)[1:])
    assert not verdict.passed
    assert verdict.differences[0].endswith("missing")


def test_a_window_too_many_is_a_difference(expected: Windows) -> None:
    results = as_results(expected)
    assert not compare(expected, [*results, {**results[0], "carrier": data.MARKER_CODE}]).passed


def test_a_window_that_comes_twice_and_differs_is_a_difference(expected: Windows) -> None:
    results = as_results(expected)
    assert not compare(expected, [*results, {**results[0], "flights": 0}]).passed


def test_no_windows_at_all_do_not_pass() -> None:
    assert not compare({}, []).passed
