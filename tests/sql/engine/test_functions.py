"""Functions of users: their errors, their limits, and their rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import limits
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(broker)
    yield engine
    engine.close()


@pytest.fixture
def ask(engine: SqlEngine) -> Iterator[Asking]:
    made = asking(engine)
    yield made
    made.session.close()


def test_the_error_of_a_function_has_its_line(ask: Asking) -> None:
    ask("create function failing(a int) returns int language python as $$\nb = a\nreturn 1 // b\n$$")
    error = ask.error("select failing(i) from (values (1), (0)) t(i)")
    assert (error.sqlstate, error.detail) == ("38000", "line 3: return 1 // b")
    assert error.message.startswith("the function failing failed: ZeroDivisionError: ")
    assert error.message.endswith("(line 3 of the function)")
    assert ask.rows("select failing(1)") == [(1,)]
    ask("drop function failing")


def test_a_result_of_another_type(ask: Asking) -> None:
    ask("create function texts(a int) returns int language python as $$ return 'x' $$")
    error = ask.error("select texts(1)")
    assert (error.sqlstate, error.message) == ("38000", "the function texts returned 'x', which is no integer")
    ask("drop function texts")


def test_a_function_that_loops_ends_with_its_statement(ask: Asking) -> None:
    ask("create function loops(a int) returns int language python as $$ while True: pass $$")
    ask("set statement_timeout = '300ms'")
    error = ask.error("select loops(1)")
    assert (error.sqlstate, error.message) == ("57014", "canceling statement due to statement timeout")
    ask("reset statement_timeout")
    assert ask.rows("select 1") == [(1,)]
    ask("drop function loops")


def test_a_function_that_ends_its_process(ask: Asking) -> None:
    ask("create function ends(a int) returns int language python as $$ import os; os._exit(1) $$")
    assert ask.error("select ends(1)").sqlstate == "38000"
    ask("drop function ends")


def test_all_servers_have_a_function(ask: Asking, broker: Broker) -> None:
    other = engine_of(broker)
    there = asking(other)
    assert there.error("select shared(1)").sqlstate == "42883"
    ask("create function shared(a int) returns int language python as $$ return a + 1 $$")
    there.session.functions.refresh(there.session.running, max_age_s=0)
    assert there.rows("select shared(1)") == [(2,)]
    ask("create or replace function shared(a int) returns int language python as $$ return a + 2 $$")
    there.session.functions.refresh(there.session.running, max_age_s=0)
    assert there.rows("select shared(1)") == [(3,)]
    ask("drop function shared")
    there.session.close()
    other.close()


def test_a_prepared_statement_takes_another_definition(ask: Asking) -> None:
    ask("create function changing(a int) returns int language python as $$ return a $$")
    prepared = ask.session.prepare("select changing($1)")
    ask.session.execute(prepared, [1]).close()
    ask("create or replace function changing(a int) returns int language python as $$ return a + 1 $$")
    result = ask.session.execute(prepared, [1])
    assert [batch.column(0).to_pylist() for batch in result.batches()] == [[2]]
    result.close()
    ask("drop function changing")


def test_parameters(ask: Asking) -> None:
    ask("create function twice(a int) returns int language python as $$ return a * 2 $$")
    ask("create function plus(a int, b int) returns int language sql as $$ select a + b $$")
    assert ask.rows("select twice($1), plus($1, $2)", 3, 4) == [(6, 7)]
    ask("drop function twice, plus")


def test_names_of_columns(ask: Asking) -> None:
    ask("create function named(a int) returns int language python as $$ return a $$")
    ask("create function of_sql(a int) returns int language sql as $$ select a $$")
    assert ask("select named(1), named(2)::text, of_sql(3), named(4) as x, public.named(5)").names == [
        "named", "named", "of_sql", "x", "named",
    ]  # fmt: skip
    ask("drop function named, of_sql")


def test_a_body_sees_its_arguments_and_no_names_around_it(ask: Asking) -> None:
    ask("create table numbers (n int primary key, v int)")
    ask("insert into numbers values (1, 10), (2, 20), (3, 30)")
    ask("create function at_most(k int) returns bigint language sql as $$ select count(*) from numbers where n <= k $$")
    assert ask.rows("select n, at_most(n) from numbers order by n") == [(1, 1), (2, 2), (3, 3)]
    assert ask.rows("with numbers as (select 2 as m) select at_most(m) from numbers") == [(2,)]
    assert ask.rows("select at_most(max(n)) from numbers") == [(3,)]
    assert ask.rows("select at_most((select 1))") == [(1,)]
    assert ask.error("create function wrong(k int) returns int language sql as $$ select k + outside $$").sqlstate == "42703"
    ask("drop function at_most")
    ask("drop table numbers")


def test_functions_in_sql_call_each_other_up_to_a_depth(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("create function one(a int) returns int language sql as $$ select a + 1 $$")
    ask("create function two(a int) returns int language sql as $$ select one(one(a)) $$")
    assert ask.rows("select two(1)") == [(3,)]
    ask("create or replace function one(a int) returns int language sql as $$ select a $$")
    error = ask.error("create or replace function one(a int) returns int language sql as $$ select two(a) $$")
    assert (error.sqlstate, error.hint) == ("54001", "no function may call itself")
    monkeypatch.setattr(limits, "MAX_FUNCTION_DEPTH", 1)
    assert ask.error("select two(2)").sqlstate == "54001"
    monkeypatch.setattr(limits, "MAX_FUNCTION_DEPTH", 32)
    monkeypatch.setattr(limits, "MAX_FUNCTION_NODES", 5)
    assert ask.error("select two(3)").sqlstate == "54000"
    ask("drop function one, two")


def test_limits_of_a_function(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "#" * limits.MAX_FUNCTION_CHARACTERS
    assert ask.error(f"create function long(a int) returns int language python as $${body}\nreturn a$$").sqlstate == "54000"
    arguments = ", ".join("int" for _ in range(limits.MAX_FUNCTION_ARGUMENTS + 1))
    assert ask.error(f"create function many({arguments}) returns int language python as $$return 1$$").sqlstate == "54023"
    monkeypatch.setattr(limits, "MAX_KNOWN_FUNCTIONS", 0)
    ask("create function known(a int) returns int language python as $$return a$$")
    assert ask.rows("select known(1)") == [(1,)]  # by an instance that is not kept
    ask("create or replace function known(a int) returns int language python as $$return a + 1$$")
    assert ask.rows("select known(1)") == [(2,)]
    ask("drop function known")


def test_records_of_functions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_FUNCTIONS", 1)
    monkeypatch.setattr(limits, "MAX_FUNCTION_BYTES", 1_000)
    with Broker() as broker:
        engine = engine_of(broker)
        ask = asking(engine)
        _check_bounds(ask)
        ask.session.close()
        engine.close()


def _check_bounds(ask: Asking) -> None:
    ask("create function fits(a int) returns int language python as $$return a$$")
    assert ask.error("create function more(a int) returns int language python as $$return a$$").sqlstate == "54000"
    ask("drop function fits")
    long = "#" * 1_000
    assert ask.error(f"create function large(a int) returns int language python as $${long}\nreturn a$$").sqlstate == "54000"


def test_a_server_that_takes_no_python(broker: Broker, ask: Asking) -> None:
    ask("create function elsewhere(a int) returns int language python as $$return a$$")
    engine = engine_of(broker, runs_python=False)
    other = asking(engine)
    error = other.error("create function f(a int) returns int language python as $$return a$$")
    assert (error.sqlstate, error.hint) == ("42501", "its operator turns them on: sql.python.functions=true")
    assert other.error("select elsewhere(1)").sqlstate == "0A000"
    other("create function in_sql(a int) returns int language sql as $$select a$$")
    assert other.rows("select in_sql(1)") == [(1,)]
    other("drop function in_sql")
    ask("drop function elsewhere")
    other.session.close()
    engine.close()


def test_functions_are_in_the_schema_public(ask: Asking) -> None:
    ask("create function public.placed(a int) returns int language sql as $$ select a $$")
    assert ask.rows("select placed(1), public.placed(2)") == [(1, 2)]
    assert ask.error("create function other.placed(a int) returns int language sql as $$ select a $$").sqlstate == "0A000"
    ask("drop function public.placed")


def test_the_built_in_function_gives_way(ask: Asking) -> None:
    ask("create function reverse(s text) returns text language python as $$ return 'mine: ' + s $$")
    assert ask.rows("select reverse('ab'), left('abc', 1)") == [("mine: ab", "a")]
    ask("drop function reverse")
    assert ask.rows("select reverse('ab')") == [("ba",)]
    for name in ("sum", "extract", "cast", "if", "pg_typeof", "__f"):
        assert ask.error(f"create function {name}(a int) returns int language sql as $$select 1$$").sqlstate in ("42723", "42601")


def test_explain_and_errors_have_the_names_of_functions(ask: Asking, broker: Broker) -> None:
    ask("create table explained (id int primary key, v int)")
    ask("create function told(a int) returns int language python immutable as $$ return a $$")
    other = engine_of(broker)  # no instance of it knows the function
    there = asking(other)
    assert any("told" in row[0] for row in there.rows("explain select told(v) from explained where told(id) > 1"))
    text = "\n".join(
        row[0]
        for row in there.rows("explain create materialized view e as select id, told(v) as t from explained where told(v) > 1")
    )
    assert "where told(" in text
    assert "__f_" not in text.lower()
    error = there.error("select told(v) over () from explained")
    assert error.message == "told is not an aggregate function"
    there.session.close()
    other.close()
    ask("drop function told")
    ask("drop table explained")


def test_defaults_of_columns(ask: Asking) -> None:
    ask("create function start_of(a int) returns int language python as $$ return a * 10 $$")
    ask("create table defaulted (id int primary key, v int default start_of(1))")
    ask("insert into defaulted (id) values (1)")
    assert ask.rows("select v from defaulted") == [(10,)]
    for null in ("not null", ""):
        error = ask.error(f"alter table defaulted add column w int {null} default start_of(2)")
        assert error.sqlstate == "0A000"
        assert error.hint == "ADD COLUMN without DEFAULT, ALTER COLUMN … SET DEFAULT, and UPDATE the rows"
    ask("alter table defaulted add column w int, alter column w set default start_of(2)")
    ask("insert into defaulted (id) values (2)")
    assert ask.rows("select w from defaulted order by id") == [(None,), (20,)]
    ask("drop table defaulted")
    ask("drop function start_of")


def test_shown(ask: Asking) -> None:
    statement = (
        "CREATE FUNCTION shown(a integer, b text DEFAULT 'x') RETURNS text LANGUAGE PYTHON IMMUTABLE STRICT AS $$return b$$"
    )
    ask(statement)
    assert ask.rows("show functions") == [("shown", "a integer, b text DEFAULT 'x'", "text", "python", "return b")]
    assert ask.rows("show create function shown") == [("shown(integer, text)", statement)]
    assert ask.error("show create function nothing").sqlstate == "42883"
    ask("drop function shown")
    ask(statement)
    assert ask.rows("select provolatile, proisstrict, pronargs, pronargdefaults from pg_proc") == [("i", True, 2, 1)]
    ask("drop function shown")


def test_words_of_other_systems(ask: Asking) -> None:
    ask(
        "create function addone(i int) returns int language python runtime_version = '3.9' handler = 'addone_py' as $$\n"
        "def addone_py(i):\n    return i + 1\n$$"
    )
    ask("create function pl(a int) returns int as $$ return args[0] $$ language plpython3u immutable parallel safe cost 10")
    ask("create function det(a int) returns int language python not deterministic comment 'c' as $$ return a $$")
    assert ask.rows("select addone(1), pl(2), det(3)") == [(2, 2, 3)]
    assert ask.error("create function f(a int) returns int language python using link 'x' as 'y'").sqlstate == "0A000"
    ask("drop function addone, pl, det")
