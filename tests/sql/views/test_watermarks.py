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
        ("create table w (at timestamp primary key) append only", "42P16", "append-only"),
        ("alter table bare add watermark for nothing as nothing", "42703", "nothing"),
        ("alter table bare add watermark", "42601", "WATERMARK FOR"),
        (
            "create materialized view w as select at, count(*) from bare group by at emit final",
            "0A000",
            "no table of the query has one",
        ),
        ("create materialized view w as select x, count(*) from marked group by x emit final", "0A000", "watermarks are on at"),
        ("select * from bare emit final", "0A000", "belongs to a view"),
    ],
)
def test_what_is_refused(ask: Asking, statement: str, sqlstate: str, words: str) -> None:
    ask("create table if not exists bare (at timestamp, x int) append only")
    ask("create table if not exists marked (at timestamp, x int, watermark for at as at)")
    error = ask.error(statement)
    assert (error.sqlstate, words in f"{error.message} {error.hint}") == (sqlstate, True), f"{error.message} {error.hint}"


def test_an_error_behind_emit_has_its_position(ask: Asking) -> None:
    ask("create table placed (x int)")
    statement = "  create materialized view w emit on window close as select nope from placed"
    error = ask.error(statement)
    assert (error.sqlstate, error.position) == ("42703", statement.index("nope") + 1)


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
    assert 'until "window_end" < watermark(1)' in lines
    assert "that are final" in lines
    ask("drop table told")


def test_the_guide_works_as_pasted(ask: Asking) -> None:
    page = (ROOT / "docs/guides/views.md").read_text()
    chapters = page.partition("\n## Which queries\n")[2].partition("\n## Reading what you wrote\n")[0]
    shown = []
    for block in re.findall(r"```sql\n(.*?)```", chapters, re.DOTALL):
        shown += [ask.rows(each) for each in block.split(";\n") if each.strip()]
    times = [
        sorted(tuple(str(value)[11:16] if isinstance(value, datetime) else value for value in row) for row in rows)
        for rows in shown
        if rows
    ]
    assert times == [
        [("ann",)], [("ann", 2), ("bob", 1)], [("10:00", 1), ("11:00", 1)], [(1,)], [("10:00", 2)], [("10:00", 2), ("11:00", 1)],
    ]  # fmt: skip
    ask("drop table clicks cascade")
    for table in ("logins", "visits_of_today", "orders", "prices"):
        ask(f"drop table {table} cascade")


def test_stream_of_final_rows(ask: Asking) -> None:
    ask("create stream taps (at timestamp, k text, watermark for at as at - interval '5 minutes')")
    query = "select window_start, k, count(*) as n from tumble(taps, at, interval '10 minutes') group by window_start, k"
    lines = "\n".join(row[0] for row in ask.rows(f"explain create stream counted as {query} emit final"))
    assert "that are final; keeps the others" in lines
    assert ask.tag(f"create stream counted as {query} emit final") == "CREATE STREAM"
    ask("create table target (n bigint, at timestamp, note text default 'new') append only")
    counted = "select count(*), window_start from tumble(stream taps, at, interval '10 minutes') group by window_start"
    ask(f"insert into target (n, at) with (job = 'tapping') {counted} emit final")
    events(ask, "taps", "10:01", "10:09")
    assert ask.rows("select n from counted") == []
    events(ask, "taps", "10:16", "10:08")
    assert ask.rows(f"select {TIMES} from counted") == [("10:00", 3)]
    assert ask.rows("select n, note from target") == [(3, "new")]
    events(ask, "taps", "10:02", "10:31")  # the first is late
    assert sorted(ask.rows(f"select {TIMES} from counted")) == [("10:00", 3), ("10:10", 1)]
    assert sorted(ask.rows("select n from target")) == [(1,), (3,)]
    jobs = "select late_rows from barnabas.jobs where kind <> 'view' and name in ('counted', 'tapping')"
    assert ask.rows(jobs) == [(1,), (1,)]
    (text,) = (row[-1] for row in ask.rows("show streams") if row[0] == "counted")
    assert text.endswith("EMIT FINAL")
    ask("drop job tapping")
    ask("drop stream counted")
    ask("drop table target")
    ask("drop stream taps")


def test_streams_joined_within_a_time(ask: Asking) -> None:
    for name in ("shown_ads", "clicked"):
        ask(f"create stream {name} (at timestamp, k text, watermark for at as at - interval '1 minute')")
    within = "c.at between s.at and s.at + interval '10 minutes'"
    query = f"select s.at as at, s.k, c.at as clicked from shown_ads s left join clicked c on s.k = c.k and {within}"
    ask(f"create stream ads as {query} emit final")
    events(ask, "shown_ads", "10:00", "10:20")
    events(ask, "clicked", "10:05", "10:07")
    events(ask, "shown_ads", "10:40")
    assert ask.rows("select count(*) from ads") == [(0,)]
    events(ask, "clicked", "10:38")
    clicks = [
        (f"{at:%H:%M}", clicked and f"{clicked:%H:%M}") for at, clicked in ask.rows("select at, clicked from ads order by 1, 2")
    ]
    assert clicks == [("10:00", "10:05"), ("10:00", "10:07"), ("10:20", None)]
    for name in ("ads", "shown_ads", "clicked"):
        ask(f"drop stream {name}")


def test_streams_joined_at_once(ask: Asking) -> None:
    for name in ("asked", "answered"):
        ask(f"create stream {name} (at timestamp, k text, watermark for at as at - interval '1 minute')")
    within = "b.at between a.at and a.at + interval '10 minutes'"
    ask(f"create stream replies as select a.at, b.at as replied from asked a left join answered b on a.k = b.k and {within}")
    events(ask, "asked", "10:00", "10:20")
    events(ask, "answered", "10:05", "10:07")
    shown = "select to_char(at, 'HH24:MI'), to_char(replied, 'HH24:MI') from replies order by 1, 2"
    pairs = [("10:00", "10:05"), ("10:00", "10:07")]
    assert ask.rows(shown) == pairs, "pairs do not wait"
    events(ask, "asked", "10:40")
    events(ask, "answered", "10:38")
    assert ask.rows(shown) == [*pairs, ("10:20", None)], "10:40 waits for a later answer"
    error = ask.error("insert into replies select a.at, b.at from stream asked a join stream answered b on a.k = b.k")
    assert (error.sqlstate, "without a bound of time" in error.message) == ("0A000", True)
    for name in ("replies", "asked", "answered"):
        ask(f"drop stream {name}")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("create stream s as select k, count(*) as n from fed group by k emit final", "no watermark passes"),
        ("create stream s as select window_start, n from (select window_start, count(*) as n from tumble(plain, at, interval '1 hour') "
         "group by 1) emit final", "reads no stream"),
        ("create stream s (a int) emit final", "belongs to a query"),
        ("insert into plain select * from plain emit final", "reads a STREAM"),
    ],
)  # fmt: skip
def test_streams_that_are_refused(ask: Asking, statement: str, words: str) -> None:
    ask("create table if not exists plain (at timestamp, x int, watermark for at as at)")
    ask("create stream if not exists fed (at timestamp, k text, x int, watermark for at as at)")
    error = ask.error(statement)
    assert (error.sqlstate, words in error.message) == ("0A000", True), error.message


def test_stream_that_looks_up(ask: Asking) -> None:
    ask("create stream sold (id int, product text)")
    ask("create table costs (product text primary key, cost int)")
    ask("insert into costs values ('tea', 2)")
    words = "left join costs for system_time as of proctime() using (product)"
    ask(f"create stream paid_for as select id, cost from sold {words}")
    ask("insert into sold values (1, 'tea'), (2, 'cake')")
    ask("flush")
    ask("update costs set cost = 3")
    ask("flush")
    ask("insert into sold values (3, 'tea')")
    ask("flush")
    assert sorted(ask.rows("select * from paid_for")) == [(1, 2), (2, None), (3, 3)]
    ask("drop stream paid_for")
    ask("drop stream sold")
    ask("drop table costs")
