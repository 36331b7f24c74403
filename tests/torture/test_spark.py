"""The short form of `python -m tests.torture.spark`."""

from __future__ import annotations

import pytest

from tests.torture.spark import plan
from tests.torture.spark.plan import Sink
from tests.torture.spark.rounds import Kind, torture

pytest.importorskip("pyspark")


@pytest.mark.spark
@pytest.mark.timeout(1800)  # Spark starts twice, slowly on a busy machine
def test_a_killed_pipeline_writes_exactly_once() -> None:
    rounds = list(torture(rounds=3, seed=5))
    assert {each.kind for each in rounds} == set(Kind)


def test_the_plain_calculation() -> None:
    rows = plan.expected(2 * plan.WINDOW_MS // plan.STEP_MS)
    assert len(rows) == 2 * plan.KEYS
    assert rows[0] == (0, 0, 63, sum(range(0, 500, 8)), 0, 496)
    assert sum(row[2] for row in rows) == 1000


def test_rows_of_updates_are_judged() -> None:
    wanted = [(1, 0, 3, 6, 1, 3)]
    states = [(1, 0, 1, 1, 1, 1), (1, 0, 2, 3, 1, 2), *wanted]
    assert plan.wrong(wanted, states, Sink.UPDATES) == plan.missing(wanted, states) == []
    assert plan.wrong(wanted, [*wanted, (-1, 0, 1, 0, 0, 0)], Sink.STREAM) == []
    assert plan.wrong(wanted, states, Sink.STREAM) == states[:2]
    assert plan.wrong(wanted, [states[0], states[0], *wanted], Sink.UPDATES) == [states[0]]
    assert plan.wrong(wanted, [*wanted, *wanted], Sink.STREAM) == wanted
    assert plan.wrong(wanted, [*states, (1, 0, 4, 9, 1, 3)], Sink.UPDATES) == [(1, 0, 4, 9, 1, 3)]
    assert plan.missing(wanted, states[:2]) == wanted
