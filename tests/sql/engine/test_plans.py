"""Statements that were checked before, by their text: nothing differs but their cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.sql import session
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.sql.plans import Plans
from barnabas.sql.statements.families import ready
from barnabas.sql.statements.ready import Ready, done
from tests.sql.engine.asking import Asking, asking


def test_the_same_text_is_checked_once(ask: Asking) -> None:
    ask("create table once (id bigint primary key, name text)")
    insert, one = "insert into once values ($1, $2)", "select name from once where id = $1"
    for number in range(3):
        assert ask.tag(insert, number, f"name {number}") == "INSERT 0 1"
        assert ask.rows(one, number) == [(f"name {number}",)]
    assert ask.session.prepare(one) is ask.session.prepare(one)
    assert ask.session.prepare(insert) is ask.session.prepare(insert)
    assert ask.session.prepare(one, [pa.int64()]) is not ask.session.prepare(one)
    assert ask.session.statements(one) == [one]
    with pytest.raises(SqlError, match="duplicate key"):
        ask(insert, 1, "again")


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select count(*) from varied",
        "select current_setting('TimeZone') from varied where id = 1",
        "insert into varied values (1000, 'x') on conflict (id) do update set name = varied.name || excluded.name",
        *(
            f"insert into varied values (1000, 'x') on conflict (id) do update set name = {value}"
            for value in ("now()", "current_timestamp", "current_date", "localtime", "localtimestamp", "random()", "(select '1')")
        ),
        "insert into varied select 1001, 'x' where false",
        "insert into varied values (nextval('x'), current_user)",
        "show timezone",
    ],
)
def test_other_statements_are_checked_each_time(ask: Asking, text: str) -> None:
    ask("create table if not exists varied (id bigint primary key, name text)")
    try:
        first = ask.session.prepare(text)
    except SqlError:
        return
    assert ask.session.prepare(text) is not first


def test_an_update_of_a_row_that_is_there_is_checked_once(ask: Asking) -> None:
    ask("create table raised (id bigint primary key, n bigint)")
    text = "insert into raised values ($1, $2) on conflict (id) do update set n = raised.n + excluded.n * $3 where raised.n < $4"
    for _ in range(3):
        assert ask.tag(text, 1, 1, 10, 15) in ("INSERT 0 1", "INSERT 0 0")
    assert ask.rows("select n from raised") == [(21,)]
    assert ask.session.prepare(text) is ask.session.prepare(text)


def test_a_statement_whose_template_is_of_no_use_is_checked_once(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("create table counted (id bigint primary key, n bigint)")
    checked: list[str] = []

    def noted(host: Any, statement: Any, given: Any) -> Any:
        checked.append(statement.text)
        return ready(host, statement, given)

    monkeypatch.setattr(session, "checked", noted)
    for number in range(4):
        ask(f"insert into counted values ({number + 10}, 1) on conflict (id) do update set n = counted.n + 1")
    literal = [each for each in checked if "$" not in each]
    assert (len(literal), len(checked)) == (4, 5)


def changed_by_others(engine: SqlEngine, ask: Asking) -> None:
    other = asking(engine)
    other("alter table changing add column more text")
    other.session.close()


@pytest.mark.parametrize(
    "change",
    [
        changed_by_others,
        lambda engine, ask: ask("set timezone = 'Europe/Zurich'"),
        lambda engine, ask: ask("set sql_dialect = postgres"),
        lambda engine, ask: ask("begin") and ask("insert into changing values (77, 'open')"),
    ],
    ids=["table", "setting", "dialect", "transaction"],
)
def test_a_change_of_anything_that_matters_has_it_checked_again(
    engine: SqlEngine, ask: Asking, change: Callable[[SqlEngine, Asking], object]
) -> None:
    ask("drop table if exists changing")
    ask("create table changing (id bigint primary key, name text)")
    text = "select * from changing where id = 1"
    first = ask.session.prepare(text)
    assert ask.session.prepare(text) is first
    change(engine, ask)
    assert ask.session.prepare(text) is not first


def test_a_table_that_was_made_again_has_its_new_columns(engine: SqlEngine, ask: Asking) -> None:
    ask("create table remade (id bigint primary key, name text)")
    ask("insert into remade values (1, 'old')")
    assert ask.rows("select * from remade where id = 1") == [(1, "old")]
    ask("drop table remade")
    with pytest.raises(SqlError, match="does not exist"):
        ask("select * from remade where id = 1")
    ask("create table remade (id bigint primary key, size double precision)")
    ask("insert into remade values (1, 2.5)")
    assert ask.rows("select * from remade where id = 1") == [(1, 2.5)]


def test_as_many_as_max_sql_plans_are_kept() -> None:
    plans = Plans()
    kept = done("", "X")
    kept.lasts = True
    for number in range(limits.MAX_SQL_PLANS + 1):
        plans.put(f"text {number}", (), 1, kept)
    assert plans.get("text 0", (), 1) is None
    assert "text 0" not in plans
    assert plans.get("text 1", (), 1) is kept
    plans.put("one more", (), 1, kept)
    assert plans.get("text 1", (), 1) is kept, "it was used after the others"
    assert plans.get("text 2", (), 1) is None


def test_no_text_is_kept_beyond_max_sql_plan_characters() -> None:
    plans, kept = Plans(), Ready("", lambda _: done("", "X").run(()), lasts=True)
    text = "x" * limits.MAX_SQL_PLAN_CHARACTERS
    plans.put(text, (), 1, kept)
    plans.put(text + "x", (), 1, kept)
    assert plans.get(text, (), 1) is kept
    assert plans.get(text + "x", (), 1) is None
    assert plans.get(text, (), 2) is None, "in another state"
    assert text not in plans
