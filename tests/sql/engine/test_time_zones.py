"""The time zone of a session counts in all that it computes, and ends there: nothing that is shared depends on it.

`tests/sql/logic/time_zones.slt` has the answers of PostgreSQL.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller, SqlError
from tests.sql.engine.asking import Asking, asking

ZURICH, KOLKATA = "Europe/Zurich", "Asia/Kolkata"
JULY = dt.datetime(2026, 6, 30, 22, 30, tzinfo=dt.UTC)  # 00:30 of 1 July in Zurich


@pytest.fixture
def zurich(engine: SqlEngine) -> Iterator[Asking]:
    made = asking(engine, TimeZone=ZURICH)
    yield made
    made.session.close()


@pytest.fixture(scope="module", autouse=True)
def events(engine: SqlEngine) -> None:
    made = asking(engine)
    made("create table events (id int primary key, t timestamptz, l timestamp, name text)")
    made("insert into events values (1, $1, '2026-07-01 00:30', 'a')", JULY)
    made("create stream news (id int, t timestamptz)")
    made.session.close()


def test_the_zone_of_the_start_counts(engine: SqlEngine, zurich: Asking) -> None:
    assert zurich.rows("show time zone") == [(ZURICH,)]
    assert zurich.rows("select t::date::text, t = l from events") == [("2026-07-01", True)]
    assert asking(engine).rows("select t::date::text, t = l from events") == [("2026-06-30", False)]
    zurich("set time zone 'Asia/Kolkata'")
    zurich("set time zone local")
    assert zurich.rows("show time zone") == [(ZURICH,)]
    with pytest.raises(SqlError, match="invalid value for parameter"):
        engine.session(Caller(parameters={"timezone": "Nowhere"}))


def test_results_are_moments_in_utc(zurich: Asking) -> None:
    result = zurich.session.execute(zurich.session.prepare("select t, [t] as a, {'t': t} as s, map {'k': t} as m from events"))
    batch = next(iter(result.batches()))
    assert batch.schema.types[0] == pa.timestamp("us", "UTC")
    assert str(batch.schema.types[1]).endswith("tz=UTC]>")
    assert batch.to_pylist() == [{"t": JULY, "a": [JULY], "s": {"t": JULY}, "m": {"k": JULY}}]
    result.close()


def test_parameters(zurich: Asking) -> None:
    local = dt.datetime(2026, 7, 1, 0, 30)  # noqa: DTZ001 - a time of the session's zone
    for value in (JULY, local, "2026-07-01 00:30", "2026-07-01 04:00+05:30"):
        assert zurich.rows("select id from events where t = $1", value) == [(1,)]
        zurich("insert into events values (20, $1, $2)", value, JULY)
        assert zurich.rows("select t, l from events where id = 20") == [(JULY, local)]
        zurich("delete from events where id = 20")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("t::text", ["2026-07-01 00:30:00+02", "2026-06-30 22:30:00+00", "2026-07-01 04:00:00+05:30"]),
        ("(t - timestamptz '2026-03-28 12:00')::text", ["94 days 11:30:00", "94 days 10:30:00", "94 days 16:00:00"]),
    ],
)
def test_a_statement_that_was_prepared_runs_in_the_zone_of_the_moment(
    zurich: Asking, expression: str, expected: list[str]
) -> None:
    text = f"select {expression} from events where id = $1"
    prepared = zurich.session.prepare(text)
    for zone, shown in zip((ZURICH, "UTC", KOLKATA), expected, strict=True):
        zurich(f"set time zone '{zone}'")
        result = zurich.session.execute(prepared, (1,))
        assert [row for batch in result.batches() for row in batch.column(0).to_pylist()] == [shown]
        assert zurich.rows(text.replace("$1", "1")) == [(shown,)]


def test_copy(zurich: Asking) -> None:
    zurich("create table copied (id int, t timestamptz)")
    zurich.copy_in("copy copied from stdin", b"1\t2026-10-25 02:30\n2\t2026-07-01\n3\t2026-07-01 00:00+00\n")
    assert (
        zurich.copy_out("copy copied to stdout")
        == b"1\t2026-10-25 02:30:00+01\n2\t2026-07-01 00:00:00+02\n3\t2026-07-01 02:00:00+02\n"
    )
    zurich("set time zone 5.5")
    assert zurich.copy_out("copy copied to stdout").startswith(b"1\t2026-10-25 07:00:00+05:30\n")
    zurich("drop table copied")


def test_a_default_keeps_its_moment_and_a_generated_column_is_computed_in_utc(engine: SqlEngine, zurich: Asking) -> None:
    zurich(
        "create table kept (id int primary key, a timestamptz default '2026-03-29 02:30', b timestamptz default timestamptz '2026-07-01',"
        " day date generated always as (a::date) stored)"
    )
    zurich("alter table kept alter column b set default '2026-10-25 02:30'")
    zurich("insert into kept (id) values (1)")
    other = asking(engine, TimeZone=KOLKATA)
    other("insert into kept (id) values (2)")
    other("insert into kept (id, a) values (3, '2026-07-02 00:30')")
    moments = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC), dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC)
    assert zurich.rows("select * from kept where id < 3") == [(each, *moments, dt.date(2026, 3, 29)) for each in (1, 2)]
    assert zurich.rows("select day from kept where id = 3") == [(dt.date(2026, 7, 1),)]
    zurich("drop table kept")
    other.session.close()


def test_a_function_in_python_gets_times_in_utc(zurich: Asking) -> None:
    zurich("create function clock(t timestamptz) returns text language python immutable as $$ return str(t) $$")
    assert zurich.rows("select clock(t) from events where id = 1") == [("2026-06-30 22:30:00+00:00",)]
    zurich("drop function clock")


def test_windows_of_time_begin_at_the_epoch_in_every_zone(engine: SqlEngine, zurich: Asking) -> None:
    utc = asking(engine)
    utc("create table ticks (t timestamptz)")
    utc(
        "insert into ticks select * from generate_series(timestamptz '2026-10-24 00:00+00', '2026-10-26 23:00+00', interval '7 hours')"
    )
    for query in (
        "select window_start, window_end, count(*) as n from tumble(ticks, t, interval '1 day') group by all",
        "select window_start, window_end, count(*) as n from hop(ticks, t, interval '12 hours', interval '1 day') group by all",
        "select window_start, window_end, count(*) as n from session(ticks, t, interval '1 day') group by all",
        "select window(t, '1 day') as w, count(*) as n from ticks group by all",
        "select window_start, window_end, count(*) as n from tumble(ticks, t, interval '2 days', interval '1 day') group by all",
    ):
        rows = sorted(map(repr, utc.rows(query)))
        assert sorted(map(repr, zurich.rows(query))) == rows
        assert rows
    utc("drop table ticks")
    utc.session.close()


KEPT = (
    "select * from events", "select name, max(t) as m, min(t) as n from events group by name",
    "select id from events where t > timestamptz '2026-01-01 00:00Z'", "select extract(epoch from t) as e from events",
    "select t at time zone 'Asia/Tokyo' as x from events", "select date_trunc('day', l) as d, count(*) as n from events group by 1",
    "select a.id from events a join events b on b.t between a.t and a.t + interval '10 minutes' and a.id < b.id",
    "select id from events where t > now() - interval '1 hour'", "select id, t from events union all select id, t from events",
    "select window_start, count(*) as n from tumble(events, t, interval '1 hour') group by 1", "select id from events where t is not null",
)  # fmt: skip
REFUSED = (
    "select t::date as d from events", "select date_trunc('day', t) as d, count(*) as n from events group by 1",
    "select to_char(t, 'YYYY') as y from events", "select t + interval '1 day' as x from events",
    "select id from events where t > '2026-01-01'", "select id from events where t = l", "select id, coalesce(t, l) as c from events",
    "select name || t as x from events", "select x::text as y from (select t as x from events) s", "select l::timestamptz as z from events",
    "select id from events where t > now() - interval '1 day'", "select id from events where l > current_date",
    "select id, l from events union all select id, t from events", "with x(a, b) as (select id, t from events) select b::date as d from x",
    "select to_timestamp(id)::date as d from events", "select age(t, t) as a from events", "select year(t) as y from events",
    "select a.id from events a join (select id, l as t from events) b using (t)", "select timestamptz '2026-01-01' as t",
)  # fmt: skip


@pytest.mark.parametrize("query", KEPT)
def test_a_view_that_is_the_same_in_every_zone_is_taken(zurich: Asking, query: str) -> None:
    assert zurich.rows(f"explain create materialized view v as {query}")


@pytest.mark.parametrize("query", REFUSED)
def test_a_view_that_depends_on_the_zone_is_refused(zurich: Asking, query: str) -> None:
    error = zurich.error(f"explain create materialized view v as {query}")
    assert error.sqlstate == "0A000"
    assert "depends on the time zone of the session, Europe/Zurich" in error.message
    assert "AT TIME ZONE 'Europe/Zurich'" in (error.hint or "")
    zurich("set time zone 'UTC'")
    assert zurich.rows(f"explain create materialized view v as {query}")


def test_a_job_that_depends_on_the_zone_is_refused(zurich: Asking) -> None:
    for text in (
        "insert into events (id, l) select id, t from stream news",
        "create stream days as select id, t::date as d from stream news",
    ):
        assert "a job computes in UTC" in zurich.error(text).message


def test_the_zone_of_the_machine_does_not_count() -> None:
    code = (
        "from pathlib import Path\n"
        "from barnabas.incremental.database import Database\n"
        "from barnabas.sql.duck.pool import Instances, QueryLimits\n"
        "text = \"select (timestamptz '2026-07-01 00:00' at time zone 'UTC')::varchar\"\n"
        "instances = Instances(QueryLimits())\n"
        "lease = instances.borrow(lambda: False)\n"
        "database = Database(None, 1 << 28, 1, ())\n"
        "print(lease.cursor.sql(text).fetchall(), database.one(text))\n"
        "lease.close(); instances.close(); database.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TZ": KOLKATA}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[('2026-07-01 00:00:00',)] ('2026-07-01 00:00:00',)\n"
