"""Deadlines of statements: they are called in their order, and those that were called off cost nothing."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

from barnabas.sql.running import LEAST_TICKETS, Deadlines

FAR_S = 3_600.0


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    made = Deadlines()
    yield made
    made.close()


def test_a_nearer_deadline_comes_first(deadlines: Deadlines) -> None:
    called: queue.Queue[str] = queue.Queue()
    deadlines.add(FAR_S, lambda: called.put("far"))
    deadlines.add(0.02, lambda: called.put("later"))
    deadlines.add(0.01, lambda: called.put("near"))
    assert [called.get(timeout=60), called.get(timeout=60)] == ["near", "later"]
    deadlines.add(0.0, lambda: called.put("again"))
    assert called.get(timeout=60) == "again"
    assert called.empty()


def test_a_deadline_that_was_called_off_is_not_called(deadlines: Deadlines) -> None:
    called: queue.Queue[str] = queue.Queue()
    deadlines.add(0.01, lambda: called.put("off")).clear()
    deadlines.add(0.02, lambda: called.put("on"))
    assert called.get(timeout=60) == "on"
    assert called.empty()


def test_deadlines_that_were_called_off_take_no_memory(deadlines: Deadlines) -> None:
    deadlines.add(FAR_S, lambda: None)
    for _ in range(20 * LEAST_TICKETS):
        deadlines.add(FAR_S, lambda: None).clear()
    assert len(deadlines._heap) <= LEAST_TICKETS
