"""Views that call functions of users."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.config import ClientConfig
from barnabas.engine.jobs import ViewWork
from barnabas.functions.store import NotThere, check_stored
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import FlowError
from barnabas.incremental.macros import MACROS
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking
from tests.sql.views.test_materialized import both
from tests.waiting import wait_until

SCORE = "create function score(a int, t text) returns int language python immutable as $$ return a * len(t) $$"


def test_view_calls_a_function_in_each_of_its_parts(ask: Asking) -> None:
    ask("create table words (id int primary key, k int, w text)")
    ask("insert into words values (1, 1, 'a'), (2, 2, 'bb'), (3, 1, 'ccc')")
    ask(SCORE)
    queries = {
        "plain": "select id, score(id, w) as s from words where score(id, w) > 1",
        "grouped": "select score(k, 'xx') as g, sum(score(id, w)) as s, count(*) as n from words group by score(k, 'xx')",
        "joined": "select a.id, b.id as other from words a join words b on score(a.k, 'x') = score(b.k, 'x') and a.id < b.id",
        "ranked": "select id, row_number() over (partition by k order by score(id, w) desc, id) as r from words",
    }
    for name, query in queries.items():
        ask(f"create materialized view {name} as {query}")
        assert both(ask, name, query)
    ask("update words set w = 'zzzz' where id = 1")
    ask("insert into words values (4, 2, 'd'), (5, 1, '')")
    ask("delete from words where id = 3")
    for name, query in queries.items():
        assert both(ask, name, query)
    ask("drop table words cascade")
    ask("drop function score")


def test_functions_in_sql_and_those_that_give_rows(ask: Asking) -> None:
    ask("create table texts (id int primary key, t text)")
    ask("insert into texts values (1, 'a b'), (2, 'c')")
    ask("create function shout(t text) returns text language sql as $$ select upper(t) || '!' $$")
    ask(
        "create function words_of(t text) returns table (w text, n int) language python as $$\nreturn [(w, len(w)) for w in t.split()]\n$$"
    )
    ask("create function longest(k int) returns text language sql as $$ select max(t) from texts where id <= k $$")
    queries = {
        "shouted": "select id, shout(t) as s from texts",
        "split_up": "select id, w, n from texts, words_of(texts.t)",
        "longest_of": "select id, longest(id) as l from texts",
    }
    for name, query in queries.items():
        ask(f"create materialized view {name} as {query}")
    ask("insert into texts values (3, 'd e f')")
    ask("update texts set t = 'x y' where id = 1")
    for name, query in queries.items():
        assert both(ask, name, query)
    ask("drop table texts cascade")
    ask("drop function shout, words_of, longest")


def test_view_keeps_the_definition_that_it_was_made_with(ask: Asking) -> None:
    ask("create table rows_of_it (id int primary key, v int)")
    ask("insert into rows_of_it values (1, 10)")
    ask("create function fee(v int) returns int language python immutable as $$ return v + 1 $$")
    ask("create materialized view fees as select id, fee(v) as f from rows_of_it")
    ask("create view fees_now as select id, fee(v) as f from rows_of_it")
    assert ask.rows("select * from fees") == [(1, 11)]
    ask.session.take_notices()
    ask("create or replace function fee(v int) returns int language python immutable as $$ return v + 2 $$")
    (notice,) = ask.session.take_notices()
    assert notice.message == 'the materialized view "fees" keeps the function as it was'
    ask("insert into rows_of_it values (2, 20)")
    ask("flush")
    assert sorted(ask.rows("select * from fees")) == [(1, 11), (2, 21)]
    assert sorted(ask.rows("select * from fees_now")) == [(1, 12), (2, 22)]
    (stored,) = ask.session.functions.stored.values()
    assert [each.body for each in stored.kept] == [" return v + 1 "]
    ask("create or replace materialized view fees as select id, fee(v) as f from rows_of_it")
    assert sorted(ask.rows("select * from fees")) == [(1, 12), (2, 22)]
    error = ask.error("drop function fee")
    assert error.sqlstate == "2BP01"
    assert (
        error.detail == "materialized view fees depends on function fee(integer)\nview fees_now depends on function fee(integer)"
    )
    ask("create or replace function fee(v int) returns int language python immutable as $$ return v + 3 $$")
    (stored,) = ask.session.functions.stored.values()
    assert [each.body for each in stored.kept] == [" return v + 2 "]  # nothing uses the first one any more
    ask("drop function fee cascade")
    assert ask.error("select * from fees").sqlstate == "42P01"
    ask("drop table rows_of_it")


def test_volatile_functions_are_refused(ask: Asking) -> None:
    ask("create table dice (a int)")
    ask("create function roll(a int) returns int language python volatile as $$ import random; return random.randint(1, a) $$")
    error = ask.error("create materialized view rolled as select roll(a) as r from dice")
    assert (error.sqlstate, error.message) == ("0A000", "a view cannot call roll, because it is declared as VOLATILE")
    ask("drop table dice")
    ask("drop function roll")


def test_view_whose_function_fails_says_so(ask: Asking) -> None:
    ask("create table divisors (id int primary key, d int)")
    ask("create function share(d int) returns int language python immutable as $$\nreturn 100 // d\n$$")
    ask("insert into divisors values (1, 4)")
    ask("create materialized view shares as select id, share(d) as s from divisors")
    assert ask.rows("select * from shares") == [(1, 25)]
    ask("insert into divisors values (2, 0)")

    def told() -> str:
        ((error,),) = ask.rows("select error from barnabas.views where name = 'shares'")
        return error or ""

    wait_until(lambda: told().startswith("the function share failed: ZeroDivisionError"), "the view does not tell the error")
    ask("set read_your_writes = off")
    assert ask.rows("select * from shares") == [(1, 25)]
    ask("reset read_your_writes")
    ask("drop table divisors cascade")
    ask("drop function share")


def test_engine_runs_the_code_of_stored_functions_alone(ask: Asking, broker: Broker, tmp_path: Path) -> None:
    ask("create table base (id int primary key, v int)")
    ask("create function held(v int) returns int language python immutable as $$ return v $$")
    ask("create materialized view of_held as select id, held(v) as v from base")
    work = ask.session.view_jobs.jobs()["of_held"].work
    assert isinstance(work, ViewWork)
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    check_stored(config, work.plan.functions)
    flow = open_flow(work.plan, tmp_path / "state", 64 << 20, 1, [MACROS])
    flow.close()
    ask("drop table base cascade")
    ask("drop function held")
    with pytest.raises(NotThere, match=r"does not have the function held\(integer\)"):
        check_stored(config, work.plan.functions)
    with pytest.raises(FlowError):  # the state knows the whole plan
        open_flow(type(work.plan)(work.plan.nodes, work.plan.key, work.plan.hidden), tmp_path / "state", 64 << 20, 1, [MACROS])
