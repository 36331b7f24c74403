"""SELECT … EMIT CHANGES: the rows of a query that come from now on."""

from __future__ import annotations

import pytest

from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import Asking
from tests.sql.views.test_subscribe import Subscriber


def test_the_rows_that_come_go_through_the_query(ask: Asking, engine: SqlEngine) -> None:
    ask("create stream pushed (id int, v text)")
    ask("insert into pushed values (1, 'old')")
    found = Subscriber(engine, "select id * 10 as ten, upper(v) as v from pushed p where p.v <> 'z' emit changes limit 3")
    assert found.names == ["ten", "v"]
    assert found.has_begun()
    ask("insert into pushed values (2, 'x'), (3, 'z'), (4, 'y')")
    ask("insert into pushed values (5, 'w'), (6, 'w')")
    assert found.take(3) == [(20, "X"), (40, "Y"), (50, "W")]
    assert found.rest() == []
    found.close()


def test_the_rows_that_are_there_come_first_on_request(ask: Asking) -> None:
    ask("create table kept (id int primary key, v text)")
    ask("insert into kept values (1, 'a'), (2, 'b')")
    ask("delete from kept where id = 2")
    for name in ("auto.offset.reset", "'auto.offset.reset'"):
        ask(f"set {name} = 'earliest'")
        assert ask.rows("select * from kept emit changes limit 1") == [(1, "a")]
        ask(f"reset {name}")


def test_a_limit_that_is_no_number_of_rows(ask: Asking) -> None:
    ask("create table few (id int)")
    assert ask.rows("select id from few emit changes limit 0") == []
    assert ask.error(f"select id from few emit changes limit {'9' * 5000}").sqlstate == "22003"


def test_a_view_is_followed_too(ask: Asking, engine: SqlEngine) -> None:
    ask("create table sums_of (k text, n int)")
    ask("create materialized view summed as select k, sum(n) as n from sums_of group by k")
    found = Subscriber(engine, "select k, n from summed emit changes")
    assert found.has_begun()
    ask("insert into sums_of values ('a', 1)")
    assert found.take(1) == [("a", 1)]
    ask("insert into sums_of values ('a', 2)")
    assert found.take(1) == [("a", 3)]
    found.cancel()
    assert found.error().sqlstate == "57014"
    found.close()


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from narrow",
        "select sum(id) over () from narrow",
        "select distinct id from narrow",
        "select id from narrow order by id",
        "select id from narrow limit 1",
        "select n.id from narrow n join narrow m on n.id = m.id",
        "select id from narrow where id in (select 1)",
        "select id, unnest(array[1, 2]) as u from narrow",
        "select id from narrow union all select 1",
        "with q as (select id from narrow) select id from q",
        "select 1",
        "select product(id) from narrow",
        "select 1 + histogram(id)[1] from narrow",
        "select id from narrow where sum(id) > 1",
    ],
)
def test_what_needs_a_view_is_refused(ask: Asking, query: str) -> None:
    ask("create table if not exists narrow (id int)")
    error = ask.error(f"{query} emit changes")
    assert error.sqlstate == "0A000"
    assert error.hint is not None
    assert "CREATE MATERIALIZED VIEW" in error.hint


def test_names_that_are_not_there(ask: Asking) -> None:
    assert ask.error("select * from nobody_here emit changes").sqlstate == "42P01"
    ask("create table some_rows (id int)")
    ask("create view named_rows as select id from some_rows")
    assert ask.error("select other from some_rows emit changes").sqlstate == "42703"
    assert ask.error("select id from named_rows emit changes").sqlstate == "42809"
