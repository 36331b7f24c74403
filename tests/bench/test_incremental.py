"""The bench of the incremental flow: each case fills its state and takes its steps."""

from __future__ import annotations

from bench.incremental import __main__ as bench
from bench.incremental.plans import CASES


def test_all_of_it_is_measured() -> None:
    results = bench.measure(CASES, (300,), (10, 200), 1)
    assert [result.case for result in results] == [f"{name}-300" for name in CASES]
    assert all(value > 0 for result in results for values in result.figures.values() for value in values)
    assert {result.case: result.remark for result in results}["join-300"].startswith("The state has 901 rows")
