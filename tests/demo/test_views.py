"""The proof of the chapter of SQL. `test_demo.py` runs the chapter itself."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from demo.data import Slice
from demo.progress import Board
from demo.views import Row, expected_rows, is_proved

TWO_DAYS = Slice(2)


def test_the_figures_of_pandas() -> None:
    rows = {row[0]: row[1:] for row in expected_rows(TWO_DAYS)}
    assert sum(row[0] for row in rows.values()) == 1639  # flights of two days in UTC
    assert rows["Hawaiian Airlines Inc."] == (2, 2, 6, 9)


@pytest.mark.parametrize("fault", ["missing", "wrong", "twice", "none"])
def test_a_view_that_differs_is_not_proved(fault: str) -> None:
    rows: list[Row] = expected_rows(TWO_DAYS)
    name, flights, departed, minutes, longest = rows[3]
    changed: dict[str, list[Row]] = {
        "missing": rows[1:],
        "wrong": [*rows[:3], (name, flights + 1, departed, minutes, longest), *rows[4:]],
        "twice": [*rows, rows[0]],
        "none": [],
    }
    output = io.StringIO()
    board = Board(Console(file=output, width=200))
    assert is_proved(list(reversed(rows)), TWO_DAYS, board)
    assert not is_proved(changed[fault], TWO_DAYS, board)
    assert "NOT equal to pandas" in output.getvalue()
