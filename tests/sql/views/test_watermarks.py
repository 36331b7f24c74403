"""Watermarks, and views that give rows when they are final."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from tests.docs.pasted import ROOT
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


def test_declaration_is_shown(ask: Asking) -> None:
    ask("create table shown (at timestamptz, x int, watermark for at as at - interval '1 minute 5 seconds')")
    (text,) = (row[1] for row in ask.rows("show create table shown"))
    assert "WATERMARK FOR at AS at - CAST('1 minute 5 seconds' AS INTERVAL)" in text
    found = ask("describe shown")
    assert [dict(zip(found.names, row, strict=True))["watermark"] for row in found.rows] == [
        text.split(" AS ", 1)[1].split("\n")[0],
        None,
    ]
    ask("drop table shown")
    ask(text)
    assert ask.rows("show create table shown") == [("shown", text)]
    ask("alter table shown drop watermark")
    assert "WATERMARK" not in ask.rows("show create table shown")[0][1]
    assert ask.tag("alter table shown add watermark for at as at - interval '3' second") == "ALTER TABLE"
    assert ask.rows("describe shown")[0][-1] == "at - INTERVAL '3' SECOND"
    ask("drop table shown")


@pytest.mark.parametrize(
    ("statement", "sqlstate", "words"),
    [
        ("create table w (at timestamp, id int primary key, watermark for at as at)", "0A000", "primary key"),
        ("create table w (at timestamp, watermark for up as up)", "42703", "up"),
        ("create table w (at int, watermark for at as at)", "42P16", "int"),
        ("create table w (at timestamp, watermark for at as at + interval '1 hour')", "0A000", "WATERMARK FOR"),
        ("create table w (at timestamp, x int, watermark for at as x)", "0A000", "WATERMARK FOR"),
        ("create table w (at timestamp, watermark for at as at, watermark for at as at)", "42P16", "one watermark"),
        ("create table w (at timestamp, watermark for at)", "42601", "at or near"),
        ("create table w (at timestamp primary key) append only", "0A000", "APPEND ONLY"),
        ("alter table bare add watermark for nothing as nothing", "42703", "nothing"),
        ("alter table bare add watermark", "42601", "WATERMARK FOR"),
        (
            "create materialized view w as select at, count(*) from bare group by at emit final",
            "0A000",
            "no table of the query has one",
        ),
        ("create materialized view w as select x, count(*) from marked group by x emit final", "0A000", "watermarks are on at"),
        ("select * from bare emit changes", "0A000", "SUBSCRIBE"),
        ("select * from bare emit final", "0A000", "belongs to a view"),
    ],
)
def test_what_is_refused(ask: Asking, statement: str, sqlstate: str, words: str) -> None:
    ask("create table if not exists bare (at timestamp, x int)")
    ask("create table if not exists marked (at timestamp, x int, watermark for at as at)")
    error = ask.error(statement)
    assert (error.sqlstate, words in f"{error.message} {error.hint}") == (sqlstate, True), f"{error.message} {error.hint}"


def test_columns_may_have_these_names(ask: Asking) -> None:
    ask("create table words (watermark int, emit int, session int, tumble timestamp, watermark for tumble as tumble)")
    ask("insert into words values (1, 2, 3, '2024-01-01')")
    assert ask.rows("select watermark, emit, session from words") == [(1, 2, 3)]
    ask("drop table words")


def test_watermark_on_the_time_of_the_record(ask: Asking) -> None:
    ask("create table stamped (x int, watermark for _timestamp as _timestamp - interval '1 hour')")
    ask(
        "create materialized view by_hour as select window_start, count(*) as n "
        "from tumble(stamped, _timestamp, interval '1 hour') group by 1"
    )
    ask("insert into stamped values (1), (2)")
    assert ask.rows("select sum(n) from by_hour") == [(2,)]
    ask("drop table stamped cascade")


def test_plan_says_what_is_forgotten(ask: Asking) -> None:
    ask("create table told (at timestamp, k text, watermark for at as at - interval '5 minutes')")
    query = "select k, window_end, count(*) from session(told, at, interval '1 minute') partition by k group by 1, 2 emit final"
    lines = "\n".join(row[0] for row in ask.rows(f"explain create materialized view v as {query}"))
    assert "rows of 0 that are not late by at" in lines
    assert 'until "window_end" <' in lines
    assert "that are final" in lines
    ask("drop table told")


def test_the_guide_works_as_pasted(ask: Asking) -> None:
    chapters = (
        (ROOT / "docs/guides/views.md").read_text().partition("\n## Windows\n")[2].partition("\n## Reading what you wrote\n")[0]
    )
    shown = []
    for block in re.findall(r"```sql\n(.*?)```", chapters, re.DOTALL):
        shown += [ask.rows(each) for each in block.split(";\n") if each.strip()]
    times = [
        sorted(tuple(str(value)[11:16] if isinstance(value, datetime) else value for value in row) for row in rows)
        for rows in shown
        if rows
    ]
    assert times == [
        [("ann", 2), ("bob", 1)], [("10:00", 1), ("11:00", 1)], [(1,)], [("10:00", 2)], [("10:00", 2), ("11:00", 1)],
    ]  # fmt: skip
    ask("drop table clicks cascade")
    ask("drop table visits_of_today cascade")
