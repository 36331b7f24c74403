"""Temporary tables: only their session has them, and they go with it."""

from __future__ import annotations

import pytest

from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import asking


def test_only_its_session_has_a_temporary_table(engine: SqlEngine) -> None:
    one, other = asking(engine), asking(engine)
    for asked, value in ((one, 1), (other, 2)):
        asked("create temp table own (a int primary key, b int)")
        asked("insert into own (a) values ($1)", value)
    assert one.rows("select a from own") == [(1,)]
    assert other.rows("select own.a from pg_temp.own") == [(2,)]
    other("update own set b = 1 where a = 2")
    for asked in (one, other):
        seen = "select table_type, table_schema like 'pg_temp_%' from information_schema.tables where table_name = 'own'"
        assert asked.rows(seen) == [("LOCAL TEMPORARY", True)]
        persistence = "select relpersistence, pg_table_is_visible(oid) from pg_class where relname in ('own', 'own_pkey')"
        assert asked.rows(persistence) == [("t", True)] * 2
        columns = "select attname from pg_attribute where attrelid = 'own'::regclass order by attnum"
        assert asked.rows(columns) == [("a",), ("b",)]
        assert (
            asked.rows(
                "select table_name from information_schema.tables where table_schema = 'public' and table_name like '%own'"
            )
            == []
        )
    one.session.close()
    assert not any(name.endswith(".own") for name in other.session.client.topics() if name != other.session.temporary["own"])
    other.session.close()


@pytest.mark.parametrize("word", ["all", "temp", "temporary"])
def test_discard_drops_temporary_tables(engine: SqlEngine, word: str) -> None:
    asked = asking(engine)
    asked("create temporary table gone (a int)")
    asked(f"discard {word}")
    assert asked.error("select * from gone").sqlstate == "42P01"
    asked("create temporary table gone (b int)")
    assert asked.rows("select * from gone") == []
    asked.session.close()
