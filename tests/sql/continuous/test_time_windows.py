"""Windows of time: the bounds that rows get."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from barnabas.sql.interface import SqlError
from tests.sql.continuous.cases import tables
from tests.sql.continuous.harness import CURSOR, queried

TIMES = [dt.datetime(2024, 1, 5, 10, minute, tzinfo=dt.UTC) for minute in (0, 9, 11)]


def rows(text: str) -> list[tuple[Any, ...]]:
    """The rows of a query over bids at 10:00, 10:09 and 10:11; times as hours and minutes."""
    query = queried(text, tables("views"))
    (made,) = query.inputs
    given = pa.Table.from_pylist([{"price": place, "at": each} for place, each in enumerate(TIMES)], made.schema)
    cursor = CURSOR.cursor()
    cursor.register(made.alias, given)
    found = cursor.sql(query.sql).fetchall()
    cursor.close()
    return [tuple(f"{each.astimezone(dt.UTC):%H:%M}" if isinstance(each, dt.datetime) else each for each in row) for row in found]


def test_tumble() -> None:
    found = rows("SELECT price, window_start, window_end FROM tumble(bids, at, INTERVAL '10 minutes') ORDER BY price")
    assert found == [(0, "10:00", "10:10"), (1, "10:00", "10:10"), (2, "10:10", "10:20")]


def test_hop() -> None:
    windows = "hop(bids, at, INTERVAL '5 minutes', INTERVAL '10 minutes')"
    found = rows(f"SELECT price, window_start, window_end FROM {windows} WHERE price > 0 ORDER BY 1, 2")
    assert found == [(1, "10:00", "10:10"), (1, "10:05", "10:15"), (2, "10:05", "10:15"), (2, "10:10", "10:20")]


def test_window_of_a_group() -> None:
    found = rows("SELECT window.start, window.end, count(*) FROM bids GROUP BY window(at, '10 minutes') ORDER BY 1")
    assert found == [("10:00", "10:10", 2), ("10:10", "10:20", 1)]
    found = rows("SELECT window.start, count(*) FROM bids GROUP BY window(at, '10 minutes', '5 minutes') ORDER BY 1")
    assert found == [("09:55", 1), ("10:00", 2), ("10:05", 2), ("10:10", 1)]


def test_arguments_are_counted() -> None:
    for windows in ("tumble(bids, at)", "hop(bids, at, INTERVAL '1 hour')", "tumble(7, at, '1 hour')"):
        with pytest.raises(SqlError) as caught:
            queried(f"SELECT * FROM {windows}", tables("views"))
        assert caught.value.sqlstate == "42883"
