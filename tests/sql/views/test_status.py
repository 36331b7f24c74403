"""The state of views and jobs: barnabas.views, barnabas.jobs, SHOW, DESCRIBE, Postgres' catalogue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.engine.asking import Asking


@pytest.fixture
def views(ask: Asking) -> Iterator[Asking]:
    """One view of each kind over a table."""
    ask("create table watched (k text, x int)")
    ask("create view plain_one as select k from watched")
    ask("create materialized view counted as select k, count(*) as n from watched group by k")
    yield ask
    ask("drop table watched cascade")


def test_state_of_views_and_jobs(views: Asking) -> None:
    views("insert into watched values ('a', 1), ('b', 2)")
    views("flush")
    ((name, query, state, error, behind, seconds),) = views.rows(
        "select name, query, state, error, rows_behind, seconds_behind from barnabas.views"
    )
    assert (name, state, error, behind, seconds) == ("counted", "running", None, 0, 0.0)
    assert query == "select k, count(*) as n from watched group by k"
    ((kind, desired, state_rows, batch, took),) = views.rows(
        "select kind, desired, state_rows, last_batch, last_batch_ms from barnabas.jobs where name = 'counted'"
    )
    assert (kind, desired, state_rows >= 2, took) == ("view", "running", True, 1.5)
    assert batch >= 1
    views("pause counted")
    while views.rows("select state from barnabas.views") != [("paused",)]:
        pass
    views("insert into watched values ('c', 3)")
    assert views.rows("select rows_behind, seconds_behind > 0 from barnabas.views") == [(1, True)]
    assert views.rows("show materialized views")[0][:3] == ("counted", "materialized view", "paused")
    assert [row[0] for row in views.rows("show views")] == ["counted", "plain_one"]


def test_a_view_that_fails_says_why(ask: Asking) -> None:
    ask("create table failing_in (x bigint)")
    ask("insert into failing_in values (9223372036854775807), (9223372036854775807)")
    ask("create materialized view failing as select sum(x) as s from failing_in")
    (notice,) = [each for each in ask.session.take_notices() if each.severity == "WARNING"]
    assert 'the view "failing" has no rows yet' in notice.message
    ((state, error),) = ask.rows("select state, error from barnabas.views where name = 'failing'")
    assert (state, bool(error)) == ("failed", True)
    ask("insert into failing_in values (1)")
    ask("flush")
    assert [each.severity for each in ask.session.take_notices()] == ["WARNING"]
    ask("drop table failing_in cascade")


def test_statements_about_a_view(views: Asking) -> None:
    ((_, text),) = views.rows("show create materialized view counted")
    assert text == "CREATE MATERIALIZED VIEW counted (k, n) AS\nselect k, count(*) as n from watched group by k"
    ((_, text),) = views.rows("show create view plain_one")
    assert text == "CREATE VIEW plain_one (k) AS\nselect k from watched"
    assert [row[:2] for row in views.rows("describe counted")] == [("k", "text"), ("n", "bigint")]
    assert [row[:2] for row in views.rows("describe plain_one")] == [("k", "text")]


def test_catalogue(views: Asking) -> None:
    kinds = "select relname, relkind from pg_class where relname in ('watched', 'plain_one', 'counted') order by 1"
    assert views.rows(kinds) == [("counted", "m"), ("plain_one", "v"), ("watched", "r")]
    assert views.rows("select viewname, definition from pg_views where schemaname = 'public'") == [
        ("plain_one", " select k from watched;")
    ]
    assert views.rows("select matviewname, ispopulated from pg_matviews") == [("counted", True)]
    assert views.rows("select table_name from information_schema.views where table_schema = 'public'") == [("plain_one",)]
    types = "select table_name, table_type from information_schema.tables where table_schema = 'public' order by 1"
    assert views.rows(types) == [("counted", "MATERIALIZED VIEW"), ("plain_one", "VIEW"), ("watched", "BASE TABLE")]
    assert views.rows("select pg_get_viewdef('plain_one'::regclass)") == [(" select k from watched;",)]
    assert views.rows("select tablename from pg_tables where schemaname = 'public'") == [("watched",)]


def test_explain(views: Asking) -> None:
    lines = [
        line for (line,) in views.rows("explain create materialized view never as select k, sum(x) as s from watched group by k")
    ]
    assert lines[0].startswith("0: table watched")
    assert lines[-1].startswith("result: ")
    assert views.error("select * from never").sqlstate == "42P01"
    lines = [line for (line,) in views.rows("explain counted")]
    assert [line.partition(":")[0] for line in lines[-3:]] == ["result", "state", "last micro-batch"]
    assert [line for (line,) in views.rows("explain materialized view counted")][:2] == lines[:2]
    assert views.error("explain plain_one").sqlstate == "42809"
    assert views.error("explain drop table watched").sqlstate == "0A000"
