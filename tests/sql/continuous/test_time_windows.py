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


SESSIONS = "SELECT price, window_start, window_end FROM {} ORDER BY price"


@pytest.mark.parametrize(
    "windows",
    [
        "session(bids, at, INTERVAL '5 minutes')",
        "TABLE(SESSION(TABLE bids, DESCRIPTOR(at), INTERVAL '5' MINUTES))",
        "session(bids, at, '5 minutes') PARTITION BY (price > 1, bidder)",
        "TABLE(SESSION(DATA => TABLE bids PARTITION BY (price > 1, bidder), TIMECOL => DESCRIPTOR(at), GAP => INTERVAL '5' MINUTES)) AS s",
    ],
)
def test_sessions(windows: str) -> None:
    expected = [(0, "10:00", "10:05"), (1, "10:09", "10:16"), (2, "10:09", "10:16")]
    if "PARTITION" in windows:
        expected = [(0, "10:00", "10:05"), (1, "10:09", "10:14"), (2, "10:11", "10:16")]
    assert rows(SESSIONS.format(windows)) == expected


def test_session_of_a_group() -> None:
    found = rows(
        "SELECT session_window.start, session_window.end, count(*) FROM bids GROUP BY session_window(at, '5 minutes') ORDER BY 1"
    )
    assert found == [("10:00", "10:05", 1), ("10:09", "10:16", 2)]
    found = rows(
        "SELECT price > 1 AS p, session_window(at, '5 minutes').end AS e, sum(price) AS s FROM bids "
        "GROUP BY p, session_window(at, '5 minutes') "
        "ORDER BY e, s"
    )
    assert found == [(False, "10:05", 0), (False, "10:14", 1), (True, "10:16", 2)]
    found = rows(
        "SELECT window(at, '10 minutes', '5 minutes').start AS w, count(*) AS n FROM bids "
        "GROUP BY window(at, '10 minutes', '5 minutes') ORDER BY w"
    )
    assert [n for _, n in found] == [1, 2, 2, 1]
    assert len(rows("SELECT window(at, '10 minutes', '5 minutes') AS w, count(*) AS n FROM bids GROUP BY w")) == 4
    assert len(rows("SELECT session_window(at, '5 minutes') AS w, count(*) AS n FROM bids GROUP BY 1")) == 2


def test_windows_that_begin_later() -> None:
    found = rows("SELECT price, window_start FROM tumble(bids, at, INTERVAL '10 minutes', INTERVAL '2 minutes') ORDER BY 1")
    assert found == [(0, "09:52"), (1, "10:02"), (2, "10:02")]
    windows = "hop(bids, at, INTERVAL '5 minutes', INTERVAL '5 minutes', INTERVAL '2 minutes')"
    assert rows(f"SELECT price, window_start, window_end FROM {windows} ORDER BY 1") == [
        (0, "09:57", "10:02"),
        (1, "10:07", "10:12"),
        (2, "10:07", "10:12"),
    ]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT * FROM session(bids, at)", "42883"),
        ("SELECT * FROM tumble(bids, at, INTERVAL '1 hour') PARTITION BY bidder", "42601"),
        ("SELECT * FROM session(bids, at, price * INTERVAL '1 hour')", "0A000"),
        ("SELECT * FROM TABLE(TUMBLE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(at), LENGTH => INTERVAL '1' HOUR))", "42883"),
        ("SELECT count(*) FROM bids GROUP BY ROLLUP (bidder), session_window(at, '5 minutes')", "0A000"),
        ("SELECT (SELECT 1) FROM bids GROUP BY session_window(at, '5 minutes')", "0A000"),
    ],
)
def test_windows_that_are_not_there(text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        queried(text, tables("views"))
    assert caught.value.sqlstate == sqlstate
