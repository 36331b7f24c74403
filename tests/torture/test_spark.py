"""The short form of `python -m tests.torture.spark`."""

from __future__ import annotations

import pytest

from tests.torture.spark import plan
from tests.torture.spark.rounds import Kind, torture

pytest.importorskip("pyspark")


@pytest.mark.spark
@pytest.mark.timeout(1800)  # Spark starts twice, on a machine that may be busy
def test_a_killed_pipeline_writes_exactly_once() -> None:
    rounds = list(torture(rounds=3, seed=5))
    assert {each.kind for each in rounds} == set(Kind)


def test_the_plain_calculation() -> None:
    rows = plan.expected(2 * plan.WINDOW_MS // plan.STEP_MS)
    assert len(rows) == 2 * plan.KEYS
    assert rows[0] == (0, 0, 63, sum(range(0, 500, 8)), 0, 496)
    assert sum(row[2] for row in rows) == 1000
