"""Watermarks, and views that give rows when they are final."""

from __future__ import annotations

from typing import Any

from tests.sql.engine.asking import Asking

TIMES = "to_char(window_start, 'HH24:MI'), n"


def events(ask: Asking, name: str, *times: str) -> None:
    """One micro-batch of rows: each statement is one transaction, and the views have it before the next."""
    rows = ", ".join(f"('2024-01-01 {each}', 'a')" for each in times)
    ask(f"insert into {name} values {rows}")
    ask("flush")


def late(ask: Asking, view: str) -> Any:
    return ask.rows(f"select late_rows from barnabas.views where name = '{view}'")[0][0]


def test_view_that_emits_final(ask: Asking) -> None:
    ask("create table clicks (at timestamp, k text, watermark for at as at - interval '5 minutes') append only")
    query = "select window_start, count(*) as n from tumble(clicks, at, interval '10 minutes') group by window_start"
    ask(f"create materialized view closed as {query} emit on window close")
    ask(f"create materialized view open as {query} emit changes")
    events(ask, "clicks", "10:01", "10:09")
    assert ask.rows(f"select {TIMES} from closed") == []
    assert ask.rows(f"select {TIMES} from open") == [("10:00", 2)]
    events(ask, "clicks", "10:14", "10:05")
    assert ask.rows(f"select {TIMES} from closed") == []
    events(ask, "clicks", "10:15")
    assert ask.rows(f"select {TIMES} from closed") == [("10:00", 3)]
    events(ask, "clicks", "10:08", "10:11", "10:40")  # the first is late
    assert sorted(ask.rows(f"select {TIMES} from closed")) == [("10:00", 3), ("10:10", 3)]
    assert sorted(ask.rows(f"select {TIMES} from open")) == [("10:00", 3), ("10:10", 3), ("10:40", 1)]
    assert (late(ask, "closed"), late(ask, "open")) == (1, 1)
    assert ask.rows(f"select {TIMES} from ({query}) order by 1") == [("10:00", 4), ("10:10", 3), ("10:40", 1)]
    ask("drop table clicks cascade")
