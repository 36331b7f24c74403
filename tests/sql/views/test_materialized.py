"""Materialized views: created, read, refreshed, altered, dropped."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import Asking, asking
from tests.sql.views.fake_engine import FakeEngine
from tests.waiting import wait_until


def both(ask: Asking, view: str, query: str) -> list[tuple[Any, ...]]:
    """The rows of a view, which are those of its query."""
    ask("flush")
    found = sorted(ask.rows(f"select * from {view}"), key=repr)
    assert found == sorted(ask.rows(query), key=repr)
    return found


def test_view_follows_its_table(ask: Asking) -> None:
    ask("create table sales (k text, x bigint)")
    ask("insert into sales values ('a', 1), ('b', 2), ('a', 3), (null, 4)")
    query = "select k, count(*) as n, sum(x) as s from sales group by k"
    assert ask.tag(f"create materialized view totals as {query}") == "CREATE MATERIALIZED VIEW"
    assert both(ask, "totals", query) == [("a", 2, 4), ("b", 1, 2), (None, 1, 4)]
    ask("insert into sales values ('b', 10), ('c', 1)")
    assert both(ask, "totals", query) == [("a", 2, 4), ("b", 2, 12), ("c", 1, 1), (None, 1, 4)]
    assert ask.rows("select s from totals where k = 'b'") == [(12,)]
    assert ask.rows("select s from totals where k is null") == [(4,)]
    assert ask.tag("drop materialized view totals") == "DROP MATERIALIZED VIEW"
    assert ask.error("select * from totals").sqlstate == "42P01"
    ask("drop table sales")


def test_view_of_a_table_with_a_primary_key(ask: Asking) -> None:
    ask("create table people (id int primary key, city text, age int)")
    ask("insert into people values (1, 'Rome', 30), (2, 'Oslo', 40), (3, 'Rome', 50)")
    query = "select city, max(age) as oldest from people group by city"
    ask(f"create materialized view oldest as {query}")
    ask("update people set city = 'Oslo' where id = 3")
    assert both(ask, "oldest", query) == [("Oslo", 50), ("Rome", 30)]
    ask("delete from people where id = 1")
    assert both(ask, "oldest", query) == [("Oslo", 50)]
    ask("drop table people cascade")
    assert ask.error("select * from oldest").sqlstate == "42P01"


def test_equal_rows_and_column_names(ask: Asking) -> None:
    ask("create table pairs (a int, b text)")
    ask("insert into pairs values (1, 'x'), (1, 'x'), (2, null)")
    ask("create materialized view renamed (one, two) as select a, b from pairs")
    assert sorted(ask.rows("select * from renamed"), key=repr) == [(1, "x"), (1, "x"), (2, None)]
    assert ask("select * from renamed").names == ["one", "two"]
    assert ask.error("create materialized view bad (one, two, three) as select a, b from pairs").sqlstate == "42601"
    assert ask.error("create materialized view bad as select a as _offset from pairs").sqlstate == "42939"
    ask("drop table pairs cascade")


def test_view_of_topics_without_definition_and_of_text(ask: Asking) -> None:
    ask("create table plain (line text) with (format = 'text', topic = 'lines')")
    ask("insert into plain values ('one'), ('two'), ('one')")
    ask("create materialized view counted as select line, count(*) as n from plain group by line")
    assert both(ask, "counted", "select line, count(*) from plain group by line") == [("one", 2), ("two", 1)]
    ask("drop table plain cascade")
    ask("create table source (k text, v text) with (key = 'k', format = 'text', topic = 'bare')")
    ask("insert into source values ('x', 'hello')")
    ask("create materialized view of_topic as select key, value from bare")
    assert ask.rows("select * from of_topic") == [("x", "hello")]
    ask("drop materialized view of_topic")
    ask("drop table source")


def test_views_on_views(ask: Asking) -> None:
    ask("create table events (k text, x int)")
    ask("create materialized view by_key as select k, sum(x) as s from events group by k")
    ask("create materialized view large as select k from by_key where s > 10")
    ask("insert into events values ('a', 5), ('b', 20)")
    assert ask.rows("select * from large") == [("b",)]  # through both views
    ask("insert into events values ('a', 6), ('b', -15)")
    assert ask.rows("select * from large") == [("a",)]
    error = ask.error("drop materialized view by_key")
    assert (error.sqlstate, error.detail) == ("2BP01", "materialized view large depends on materialized view by_key")
    error = ask.error("drop table events")
    assert error.sqlstate == "2BP01"
    assert "by_key, large" in error.message
    ask("drop table events cascade")
    assert ask.error("select * from large").sqlstate == "42P01"


def test_names_that_are_taken(ask: Asking) -> None:
    ask("create table base (a int)")
    ask("create materialized view taken as select a from base")
    assert ask.error("create materialized view taken as select a from base").sqlstate == "42P07"
    assert ask.error("create materialized view base as select a from taken").sqlstate == "42P07"
    assert ask.error("create table taken (a int)").sqlstate == "42P07"
    ask("create materialized view if not exists taken as select a + 1 as b from base")
    assert ask("select * from taken").names == ["a"]
    assert ask.error("create materialized view other with (topic = 'base') as select a from base").sqlstate == "42P07"
    assert ask.error("create materialized view other with (format = 'text') as select a from base").sqlstate == "22023"
    ask("create materialized view other with (topic = 'other.topic', partitions = 2) as select a from base")
    ask("insert into base values (1)")
    assert ask.rows("select * from other") == [(1,)]
    ask("drop materialized view if exists other, taken, unknown")
    ask("create materialized view taken as select a * 2 as a from base")
    assert ask.rows("select * from taken") == [(2,)]
    ask("drop table base cascade")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into fixed values (1)", "update fixed set a = 1", "delete from fixed", "copy fixed from stdin", "truncate fixed",
        "merge into fixed using fed on false when not matched then insert values (1)", "alter table fixed add column b int",
        "drop table fixed", "drop view fixed", "drop materialized view fed",
    ],
)  # fmt: skip
def test_views_are_not_tables(ask: Asking, statement: str) -> None:
    ask("create table if not exists fed (a int)")
    ask("create materialized view if not exists fixed as select a from fed")
    assert ask.error(statement).sqlstate == "42809"


def test_pause_and_resume(ask: Asking, engine: SqlEngine) -> None:
    ask("create table paused_in (a int)")
    ask("create materialized view paused as select a from paused_in")
    assert ask.tag("pause materialized view paused") == "PAUSE MATERIALIZED VIEW"
    state = "select state from barnabas.views where name = 'paused'"
    wait_until(lambda: ask.rows(state) == [("paused",)])
    ask("wait for paused_in")
    other = asking(engine)
    other("insert into paused_in values (1)")
    error = other.error("refresh materialized view paused")
    assert error.sqlstate == "55000"
    assert ask.tag("resume paused") == "RESUME MATERIALIZED VIEW"
    ask("refresh materialized view paused")
    assert ask.rows(state) == [("running",)]
    assert ask.rows("select * from paused") == [(1,)]
    other.session.close()
    ask("drop table paused_in cascade")


def test_session_reads_its_writes(ask: Asking, running: FakeEngine, engine: SqlEngine) -> None:
    ask("create table written (a int)")
    ask("create materialized view seen as select count(*) as n from written")
    for number in range(1, 4):
        ask("insert into written values (1)")
        assert ask.rows("select n from seen") == [(number,)]
    off = asking(engine, read_your_writes="off")
    running.is_held.set()
    off("insert into written values (1)")
    assert off.rows("select n from seen") == [(3,)]
    running.is_held.clear()
    off("flush")
    assert off.rows("select n from seen") == [(4,)]
    off.session.close()
    ask("drop table written cascade")


def test_another_query(ask: Asking) -> None:
    ask("create table replaced_in (k text, x int)")
    ask("insert into replaced_in values ('a', 1), ('b', 2)")
    ask("create materialized view replaced as select k, x from replaced_in where x > 1")
    assert ask.rows("select * from replaced") == [("b", 2)]
    ask("alter materialized view replaced as select k, x from replaced_in where x < 2")
    assert ask.rows("select * from replaced") == [("a", 1)]
    ask("create or replace materialized view replaced as select k, x + 1 as x from replaced_in")
    assert sorted(ask.rows("select * from replaced")) == [("a", 2), ("b", 3)]
    error = ask.error("alter materialized view replaced as select x from replaced_in")
    assert error.sqlstate == "0A000"
    assert ask.error("create or replace materialized view replaced as select k, k as x from replaced_in").sqlstate == "0A000"
    ask("create materialized view above as select k, x from replaced")
    assert ask.error("create or replace materialized view replaced as select k, x from above").sqlstate == "42P17"
    ask("alter materialized view replaced rename to again")
    assert sorted(ask.rows("select * from again")) == [("a", 2), ("b", 3)]
    assert ask.error("select * from replaced").sqlstate == "42P01"
    assert ask.error("drop materialized view again").sqlstate == "2BP01"
    ask("drop table replaced_in cascade")


def test_functions_of_the_dialect(ask: Asking) -> None:
    ask("create table divided (a int, b int)")
    ask("insert into divided values (7, 2), (9, 3)")
    for dialect in ("postgres", "spark"):
        ask(f"set sql_dialect = '{dialect}'")
        query = "select a / b as q, a % b as r from divided"
        ask(f"create materialized view quotients as {query}")
        both(ask, "quotients", query)
        assert (dialect == "spark") == (ask.rows("select max(q) from quotients") == [(3.5,)])
        ask("drop materialized view quotients")
    ask("drop table divided cascade")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("create source s as select 1", "CREATE TABLE"),
        ("create source s from kafka connection k (topic 't')", "CREATE TABLE"),
        ("create sink s from v", "topic of a materialized view"),
        ("terminate q", "DROP JOB"),
        ("print 'sales'", "SUBSCRIBE"),
    ],
)
def test_words_of_other_systems_get_a_hint(ask: Asking, statement: str, words: str) -> None:
    error = ask.error(statement)
    assert error.sqlstate == "0A000"
    assert words in str(error.hint)
