"""Continuous INSERT and CREATE STREAM: jobs that append rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import Asking, asking
from tests.sql.views.fake_engine import FakeEngine
from tests.waiting import wait_until

TABLES = """
create table clicks (id int, k text, n bigint);
create table names (k text primary key, name text);
create table target (id int, name text, note text default 'none');
insert into names values ('a', 'Ada'), ('b', 'Ben')
"""


@pytest.fixture
def topics(ask: Asking) -> Iterator[Asking]:
    """The tables; they are dropped with all that depends on them."""
    for statement in TABLES.split(";"):
        ask(statement)
    yield ask
    ask("rollback")
    for statement in ("drop table if exists clicks cascade", "drop table if exists names cascade"):
        ask(statement)
    ask("drop table if exists target cascade")
    assert ask.rows("show jobs") == []


def both(ask: Asking, table: str, query: str) -> list[tuple[object, ...]]:
    """The rows that jobs wrote, which are those of the query in batch."""
    ask("flush")
    found = sorted(ask.rows(f"select * from {table}"), key=repr)
    assert found == sorted(ask.rows(query), key=repr)
    return found


def test_an_insert_from_a_stream_goes_on(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 5), (2, 'b', 0)")
    statement = "insert into target (id, name) select id, k || '!' from stream clicks where n > 1"
    assert topics.tag(statement) == "INSERT 0 0"
    told = [each.message for each in topics.session.take_notices()]
    assert told[0] == 'the job "target_from_clicks" inserts the rows from now on'
    assert topics.rows("select * from target") == [(1, "a!", "none")]
    topics("insert into clicks values (3, 'c', 7), (4, 'd', 1)")
    query = "select id, k || '!', 'none' from clicks where n > 1"
    assert both(topics, "target", query) == [(1, "a!", "none"), (3, "c!", "none")]
    (row,) = topics.rows("show jobs")
    assert row[:6] == ("target_from_clicks", "insert", "running", "0", None, "target")
    assert topics.rows("select kind, desired from barnabas.jobs") == [("insert", "running")]
    assert topics.tag("drop job target_from_clicks") == "DROP JOB"
    topics("insert into clicks values (5, 'e', 9)")
    topics("flush")
    assert topics.rows("select count(*) from target") == [(2,)]


def test_rows_that_a_job_inserts_can_be_changed(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 1), (2, 'b', 2), (3, 'b', 2)")
    topics("insert into target (id, name) select n, k from stream clicks")
    topics("flush")
    assert topics.tag("update target set note = 'seen' where id = 2") == "UPDATE 2"
    assert topics.tag("delete from target where id = 1") == "DELETE 1"
    assert topics.rows("select * from target") == [(2, "b", "seen"), (2, "b", "seen")]
    for statement in ("alter table clicks drop column n", "alter table target drop column name"):
        assert topics.error(statement).sqlstate == "2BP01"
    topics("alter table clicks drop column id")  # the job does not read it


def test_what_jobs_and_streams_cannot_have(topics: Asking) -> None:
    topics("create table once (id int unique)")
    assert topics.error("insert into once (id) select id from stream clicks").sqlstate == "42809"
    topics("drop table once")
    topics("create stream fixed (a int)")
    assert topics.error("alter table fixed rename to moved").sqlstate == "0A000"
    topics("drop stream fixed")


def test_without_stream_it_is_one_statement(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 5)")
    assert topics.tag("insert into target (id) select id from clicks") == "INSERT 0 1"
    assert topics.rows("show jobs") == []
    error = topics.error("insert into target (id) with (start = 'latest') select id from clicks")
    assert error.sqlstate == "0A000"


def test_a_later_change_of_a_table_does_not_change_rows(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 1), (2, 'x', 1)")
    topics("insert into target select c.id, names.name from stream clicks as c left join names using (k)")
    topics("update names set name = 'Anna' where k = 'a'")
    topics("flush")
    topics("insert into clicks values (3, 'a', 1)")
    topics("flush")
    assert topics.rows("select id, name from target order by id") == [(1, "Ada"), (2, None), (3, "Anna")]


def test_a_table_with_a_key_gets_upserts(topics: Asking) -> None:
    topics("create table latest (k text primary key, n bigint not null, at timestamptz default now())")
    topics("insert into latest (k, n) with few as (select * from stream(clicks) where n > 0) select k, n from few")
    topics("insert into clicks values (1, 'a', 1), (2, 'b', 2), (3, 'a', 3)")
    topics("insert into clicks values (4, 'b', 4), (5, 'b', 0)")
    topics("flush")
    assert topics.rows("select k, n, at > '2024-01-01' from latest order by k") == [("a", 3, True), ("b", 4, True)]
    topics("drop table latest cascade")


def test_jobs_have_names_and_begin_where_they_are_told(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 1)")
    topics("insert into target (id) with (start = 'latest') select id from stream clicks")
    topics("insert into target (id) with (start = 'earliest', job = 'Second') select id * 10 from stream clicks emit changes")
    topics("insert into target (id) select id * 100 from stream clicks")
    assert [row[0] for row in topics.rows("show jobs")] == ["Second", "target_from_clicks", "target_from_clicks_2"]
    topics("insert into clicks values (2, 'a', 1)")
    topics("flush")
    assert topics.rows("select id from target order by id") == [(2,), (10,), (20,), (100,), (200,)]
    error = topics.error("insert into target (id) with (job = 'Second') select id from stream clicks")
    assert error.sqlstate == "42P07"


def test_jobs_rest_and_go_on(topics: Asking) -> None:
    topics("insert into target (id) select id from stream clicks")
    assert topics.tag("pause job target_from_clicks") == "PAUSE JOB"
    topics("insert into clicks values (1, 'a', 1)")
    assert topics.rows("select count(*) from target") == [(0,)]
    topics.session.take_notices()
    topics("flush")
    (notice,) = topics.session.take_notices()
    assert (notice.severity, notice.message) == (
        "WARNING",
        'the job "target_from_clicks" does not have yet what this session wrote',
    )
    assert topics.tag("resume job target_from_clicks") == "RESUME JOB"
    topics("flush")
    assert topics.rows("select count(*) from target") == [(1,)]
    error = topics.error("pause job target_from_click")
    assert (error.sqlstate, error.hint) == ("42704", 'perhaps you mean "target_from_clicks"')
    assert topics.error("drop job other").sqlstate == "42704"
    topics("drop job if exists other")
    topics("drop job other if exists")
    assert "skipping" in topics.session.take_notices()[-1].message


def test_a_stream_of_a_query(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 1), (2, 'b', 20)")
    query = "select c.id, names.name, c.n * 2 as twice from stream clicks as c join names on c.k = names.k where n > 5"
    assert topics.tag(f"create stream large with (partitions = 2) as {query} emit changes") == "CREATE STREAM"
    assert topics.rows("select * from large") == [(2, "Ben", 40)]
    topics("insert into clicks values (3, 'a', 30)")
    assert sorted(topics.rows("select * from large")) == [(2, "Ben", 40), (3, "Ada", 60)]  # it waits for what this session wrote
    assert topics.rows("show streams") == [("large", "large", "json", "running", None, query)]
    topics("create stream larger (id, twice) as select id, twice from large where twice > 50")
    topics("create materialized view counted as select count(*) as n from large")
    topics("insert into clicks values (4, 'b', 100)")
    topics("wait for larger")
    assert topics.rows("select * from larger order by id") == [(3, 60), (4, 200)]
    assert topics.rows("select n from counted") == [(3,)]
    assert "CREATE STREAM large (id, name, twice)" in topics.rows("show create stream large")[0][1]
    assert topics.error("drop stream large").sqlstate == "2BP01"
    assert topics.tag("drop stream large cascade") == "DROP STREAM"
    assert topics.error("select * from larger").sqlstate == "42P01"
    assert topics.error("select * from counted").sqlstate == "42P01"
    assert "large" not in topics.session.client.topics()


def test_a_stream_of_a_query_has_the_options_of_tables(topics: Asking) -> None:
    topics("insert into clicks values (1, 'a', 1)")
    topics("create stream by_k with (topic = 'by.k', key = 'k', start = 'latest') as select id, k from stream clicks")
    topics("create stream only_new with (start = 'latest') as select id from stream clicks")
    topics("create stream lines (line) with (start = 'earliest', format = 'text') as select id || k from stream clicks")
    topics("insert into clicks values (2, 'b', 1)")
    assert topics.rows("select id, k from by_k") == [(2, "b")]
    assert topics.rows("select id from only_new") == [(2,)]
    assert sorted(topics.rows("select * from lines")) == [("1a",), ("2b",)]
    assert topics.error("create stream s (a int) with (start = 'latest')").sqlstate == "0A000"
    assert topics.error("create stream s with (start = 'now') as select id from stream clicks").sqlstate == "22023"
    assert topics.rows('select key, value from "by.k"') == [("b", '{"id":2}')]
    topics("drop stream by_k, lines, only_new")
    assert {"by.k", "lines"} & set(topics.session.client.topics()) == set()


def test_streams_over_topics_take_rows_and_keep_them(topics: Asking) -> None:
    topics("create stream events (id int, note text default 'x') with (topic = 'event.log')")
    topics("insert into events (id) values (1), (1)")
    assert topics.rows("select * from events") == [(1, "x"), (1, "x")]
    for statement in ("update events set id = 2", "delete from events"):
        error = topics.error(statement)
        assert (error.sqlstate, "its rows never change" in error.message) == ("55000", True)
    assert topics.error("create stream events (id int)").sqlstate == "42P07"
    topics("create stream if not exists events (id int)")
    assert topics.error("create stream keyed (id int primary key)").sqlstate == "42P16"
    assert topics.rows("show streams") == [("events", "event.log", "json", None, None, None)]
    topics("alter stream events add column more int")
    assert topics.error("drop table events").hint == "Use DROP STREAM."
    assert topics.error("pause stream events").sqlstate == "55000"
    assert topics.error("create or replace stream events (id int)").sqlstate == "0A000"
    topics("insert into target (id) select e.id from stream events as e")
    error = topics.error("drop stream events")
    assert (error.sqlstate, error.detail) == ("2BP01", "job target_from_events depends on stream events")
    topics("drop stream events cascade")
    topics("drop stream if exists events")


def test_a_stream_with_a_job_can_rest(topics: Asking) -> None:
    topics("create stream copied as select id from stream clicks")
    assert topics.tag("pause stream copied") == "PAUSE STREAM"
    assert topics.rows("select state from barnabas.jobs") == [("paused",)]
    assert topics.tag("resume stream copied") == "RESUME STREAM"
    error = topics.error("drop job copied")
    assert (error.sqlstate, "DROP STREAM" in error.message) == ("42809", True)
    assert topics.error("pause stream clicks").sqlstate == "42809"
    topics("drop stream copied")


def test_tables_of_jobs_are_not_dropped_under_them(topics: Asking) -> None:
    topics("insert into target (id) select c.id from stream clicks as c join names using (k)")
    for name in ("clicks", "names", "target"):
        error = topics.error(f"drop table {name}")
        assert (error.sqlstate, error.detail) == ("2BP01", f"job target_from_clicks depends on table {name}")
    topics("create stream copied as select id from stream clicks")
    assert topics.error("drop table clicks").message.endswith("stream copied, job target_from_clicks")
    topics("drop table clicks cascade")
    assert topics.error("select * from copied").sqlstate == "42P01"
    assert topics.rows("show jobs") == []


def test_no_job_reads_what_it_writes(topics: Asking) -> None:
    assert topics.error("insert into clicks select id + 1, k, n from stream clicks").sqlstate == "42P17"
    topics("insert into target (id) select id from stream clicks")
    assert "through other jobs" in topics.error("insert into clicks (id) select id from stream target").message
    topics("create materialized view counted as select id, count(*) as n from target group by id")
    assert topics.error("insert into clicks (id) select id from stream counted").sqlstate == "42P17"
    topics("create materialized view other as select k as id, count(*) as n from names group by k")
    topics("insert into clicks (k) select id from stream other")
    topics("create table rows (id int primary key, n bigint)")
    topics("insert into rows select c.id, coalesce(r.n, 0) from stream clicks as c left join rows as r on r.id = c.id")
    error = topics.error("alter materialized view other as select name as id, count(*) as n from target group by name")
    assert error.sqlstate == "42P17"
    topics("drop table rows cascade")


@pytest.mark.parametrize(
    ("statement", "state", "word"),
    [
        ("insert into target select id, count(*) from stream clicks group by id", "0A000", "aggregate"),
        ("insert into target select id from stream clicks limit 3", "0A000", "limit"),
        ("insert into target select a.id from stream clicks as a join stream clicks as b on a.id = b.id", "0A000", "two streams"),
        ("insert into target select id, now() from stream clicks", "0A000", "now"),
        ("insert into target select id from stream clicks returning id", "0A000", "RETURNING"),
        ("insert into names select k, k from stream clicks on conflict do nothing", "0A000", "ON CONFLICT"),
        ("insert into target select 1, 2, 3, 4 from stream clicks", "42601", "more expressions"),
        ("insert into target (nothing) select 1 from stream clicks", "42703", "nothing"),
        ("insert into target with (start = 'soon') select 1 from stream clicks", "22023", "soon"),
        ("insert into target with (begin = 'soon') select 1 from stream clicks", "22023", "begin"),
        ("insert into counted select id from stream clicks", "42809", "counted"),
        ("insert into numbered (k) select k from stream clicks", "0A000", "sequence"),
        ("insert into unknown select id from stream clicks", "42P01", "unknown"),
        ("create stream s as select id from clicks", "0A000", "it reads no stream"),
        ("create stream s as select id from stream clicks union all select 1", "0A000", "combined"),
        ("create stream s with (topik = 'x') as select id from stream clicks", "22023", "topik"),
        ("create stream s as select id as _offset from stream clicks", "42939", "_offset"),
        ("create temporary stream s (a int)", "0A000", "TEMPORARY"),
        ("drop job", "42601", "name is missing"),
        ("pause job if exists x", "42601", "IF EXISTS"),
    ],
)  # fmt: skip
def test_what_is_refused(topics: Asking, statement: str, state: str, word: str) -> None:
    topics("create materialized view counted as select id, count(*) as n from clicks group by id")
    topics("create table numbered (id serial, k text)")
    error = topics.error(statement)
    assert (error.sqlstate, word in error.message) == (state, True), error.message
    topics("drop materialized view counted")
    topics("drop table numbered")


def test_values_that_do_not_fit_end_a_job_with_the_reason(topics: Asking, engine: SqlEngine, running: FakeEngine) -> None:
    topics("create table strict (id int not null)")
    topics("insert into strict select n from stream clicks")
    topics("insert into clicks values (1, 'a', null)")
    topics("flush")
    ((state, error),) = topics.rows("select state, error from barnabas.jobs")
    assert (state, error) == ("failed", 'null value in column "id" of "strict" violates not-null constraint')
    topics("drop table strict cascade")


def explained(ask: Asking, statement: str) -> list[str]:
    return [row[0] for row in ask.rows(f"explain {statement}")]


COLUMNS = """b boolean, i smallint, n int, l bigint, r real, d double precision, m numeric(12, 3), s text, y bytea, day date, t time,
at timestamp, tz timestamptz, u uuid, j json, a int[], st struct<x int, y text>, "Odd Name" text"""
VALUES = """(true, 1, 2, 3, 0.5, 0.25, 12.345, 'it''s', '\\x00ff', '2026-01-02', '03:04:05', '2026-01-02 03:04:05.123456',
'2026-01-02 03:04:05+02', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"k": [1, null]}', array[1, null], row(1, 'y'), 'q')"""


def test_all_types_come_through(topics: Asking) -> None:
    topics(f"create table every ({COLUMNS}) with (partitions = 3)")
    topics(f"create table again ({COLUMNS})")
    topics(f"create table keyed ({COLUMNS}, primary key (u, day))")
    for target in ("again", "keyed"):
        topics(f"insert into {target} select * from stream every")
    topics("create stream copied as select *, _partition as place from stream every")
    for _ in range(3):
        topics(f"insert into every values {VALUES}")
    topics("insert into every (u, day, \"Odd Name\") values ('b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-01-03', null)")
    assert len(both(topics, "again", "select * from every")) == 4
    assert len(both(topics, "keyed", "select distinct on (u) * from every")) == 2
    assert len(both(topics, "copied", "select *, _partition from every")) == 4
    assert topics.rows("describe copied")[:-1] == [(*row[:3], None, *row[4:]) for row in topics.rows("describe every")]
    topics("drop table every cascade")
    topics("drop table again")
    topics("drop table keyed")


def test_explain_tells_how_rows_are_appended(topics: Asking) -> None:
    joined = "select c.id, names.name from stream clicks as c join names on c.k = names.k"
    lines = explained(topics, f"create stream joined as {joined} emit changes")
    assert [line.partition("; ")[2] for line in lines[:-1]] == [
        "keeps nothing; each record is read once", "keeps the newest row of each key; a change costs the rows that it touches",
        "keeps nothing; each record is read once",
    ]  # fmt: skip
    assert explained(topics, f"insert into target (id, name) with (start = 'latest') {joined}")[-1] == lines[-1]
    assert topics.rows("show jobs") == []
    topics(f"create stream joined as {joined}")
    topics("insert into clicks values (1, 'a', 1)")
    topics("flush")
    assert explained(topics, "joined")[-1].startswith("last micro-batch: 1 rows in, 1 changes")
    topics("create streaming table other as select id from stream(clicks)")
    assert [row[0] for row in topics.rows("show streams")] == ["joined", "other"]
    assert topics.rows("describe stream other")[0][:2] == ("id", "int")
    assert topics.error("explain create stream s (a int)").sqlstate == "0A000"


def test_other_sessions_and_prepared_statements(topics: Asking, engine: SqlEngine) -> None:
    assert topics.error("insert into target (id) select id from stream clicks where n > $1", 3).sqlstate == "0A000"
    other = asking(engine)
    other("set create_view_waits = off")
    other("insert into target (id) select id from stream clicks")
    other.session.close()
    topics("insert into clicks values (1, 'a', 1)")
    topics("flush")
    assert topics.rows("select id from target") == [(1,)]


def test_values_of_a_job_fit_the_sizes_of_columns(topics: Asking) -> None:
    topics("create table short_ones (id int, k varchar(3), c char(4), at timestamp(0))")
    topics("create table long_ones (id int, k text, at timestamp)")
    topics("insert into long_ones values (1, 'ab    ', '2020-01-01 00:00:00.5'), (2, null, null)")
    topics("insert into short_ones select id, k, k, at from stream long_ones")
    topics("flush")
    assert topics.rows("select id, k, c, at::text from short_ones order by id") == [
        (1, "ab ", "ab", "2020-01-01 00:00:01"), (2, None, None, None),
    ]  # fmt: skip
    topics("set create_view_waits = off")
    topics("insert into long_ones values (3, 'abcd', null)")
    job = "select state, error from barnabas.jobs where name = 'short_ones_from_long_ones'"
    wait_until(lambda: topics.rows(job)[0][0] == "failed")
    assert "value too long for type character varying(3)" in topics.rows(job)[0][1]
    topics("drop table short_ones, long_ones cascade")


def test_a_view_shows_the_default_of_an_added_column(topics: Asking) -> None:
    topics("create table older (id int, k text)")
    topics("insert into older values (1, 'a')")
    topics("alter table older add column n int default 5")
    topics("insert into older values (2, 'b', null), (3, 'c', 7)")
    topics("create materialized view over_older as select id, n from older")
    topics("flush")
    assert topics.rows("select * from over_older order by id") == [(1, 5), (2, None), (3, 7)]
    topics("drop table older cascade")


def test_a_job_fills_columns(topics: Asking) -> None:
    topics("create function marked(t text) returns text language python as 'return t + \"!\"'")
    topics("create function doubled(n bigint) returns bigint language sql as 'select n * 2'")
    topics(
        "create table full_ones (id int, note text default marked('n'), twice bigint as (doubled(id)), big boolean as (id > 2), "
        "at timestamptz default now(), check (id < 100), constraint known check (note like '%!' or note is null))"
    )
    topics("insert into clicks values (1, 'a', 5), (3, 'b', 0)")
    topics("insert into full_ones (id) select id from stream clicks")
    assert topics.rows("select id, note, twice, big, at is not null from full_ones order by id") == [
        (1, "n!", 2, False, True), (3, "n!", 6, True, True),
    ]  # fmt: skip
    error = topics.error("insert into full_ones (id, twice) select id, n from stream clicks")
    assert error.sqlstate == "428C9"
    topics("set create_view_waits = off")
    topics("insert into clicks values (100, 'c', 1)")
    job = "select state, error from barnabas.jobs where name = 'full_ones_from_clicks'"
    wait_until(lambda: topics.rows(job)[0][0] == "failed")
    assert 'violates check constraint "full_ones_id_check"' in topics.rows(job)[0][1]
    topics("drop table full_ones cascade")
    topics("drop function marked, doubled")
