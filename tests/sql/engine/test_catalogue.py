"""Questions of Postgres' clients about tables: psql's commands, SQLAlchemy's reflection, JDBC's metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.sql.catalog.postgres.shapes import shapes
from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import Asking, asking

QUERIES = Path(__file__).with_name("client_queries.sql").read_text().split("-----\n")


@pytest.fixture(scope="module")
def shown(engine: SqlEngine) -> Iterator[Asking]:
    ask = asking(engine)
    ask("create table t (id bigint primary key, name text not null default 'x', v numeric(10,2), tags text[], j json)")
    ask("create table log (a int, b text)")
    ask("comment on table t is 'a table'")
    ask("comment on column t.name is 'a column'")
    yield ask
    ask.session.close()


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_queries_of_clients_run(shown: Asking, number: int) -> None:
    oid = shown.rows("select 't'::regclass::oid")[0][0]
    assert shown(QUERIES[number].replace("16385", str(oid))).names


@pytest.mark.parametrize("name", [f"{schema}.{name}" for schema, name in shapes()])
def test_every_table_of_the_catalogue_can_be_read(shown: Asking, name: str) -> None:
    schema, _, table = name.partition(".")
    answer = shown(f"select * from {name}")
    assert answer.names == shapes()[schema, table].names


def test_classes_and_attributes(shown: Asking) -> None:
    text = "select relname, relkind from pg_class where relnamespace = 'public'::regnamespace order by 1"
    assert shown.rows(text) == [("log", "r"), ("t", "r"), ("t_pkey", "i")]
    columns = "attname, format_type(atttypid, atttypmod), attnotnull"
    text = f"select {columns} from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum"
    assert shown.rows(text) == [
        ("id", "bigint", True), ("name", "text", True), ("v", "numeric(10,2)", False), ("tags", "text[]", False), ("j", "json", False),
    ]  # fmt: skip
    assert shown.rows("select pg_get_expr(adbin, adrelid) from pg_attrdef") == [("'x'::text",)]


def test_keys_and_comments(shown: Asking) -> None:
    text = "select conrelid::regclass, conname, contype, pg_get_constraintdef(oid), conkey from pg_constraint"
    assert shown.rows(text) == [("t", "t_pkey", "p", "PRIMARY KEY (id)", [1])]
    text = "select pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 1, true) from pg_index where indisprimary"
    assert shown.rows(text) == [("CREATE UNIQUE INDEX t_pkey ON public.t USING btree (id)", "id")]
    text = (
        "select obj_description('t'::regclass, 'pg_class'), col_description('t'::regclass, 2), col_description('t'::regclass, 1)"
    )
    assert shown.rows(text) == [("a table", "a column", None)]


def test_types_and_names(shown: Asking) -> None:
    assert shown.rows("select 23::regtype::text, 'int4'::regtype::oid, to_regclass('public.nope') is null") == [
        ("integer", 23, True)
    ]
    assert shown.rows("select typname, typarray from pg_type where oid = any('{23,25}'::oid[]) order by oid") == [
        ("int4", 1007),
        ("text", 1009),
    ]
    assert shown.rows("select $1::regclass::oid = 't'::regclass::oid", "t") == [(True,)]
    assert shown.error("select 'nope'::regclass").sqlstate == "42P01"
    assert shown.error("select 'nope'::regtype").sqlstate == "42704"
    assert shown.error("select '{1,2'::int[]").sqlstate == "22P02"
    assert shown.rows("select '{a,\"b c\",NULL}'::text[]") == [(["a", "b c", None],)]


def test_the_information_schema(shown: Asking) -> None:
    text = "select table_name, table_type from information_schema.tables where table_schema = 'public' order by 1"
    assert shown.rows(text) == [("log", "BASE TABLE"), ("t", "BASE TABLE")]
    text = (
        "select column_name, data_type, udt_name, is_nullable, column_default, numeric_precision from information_schema.columns"
        " where table_name = 't' order by ordinal_position"
    )
    assert shown.rows(text) == [
        ("id", "bigint", "int8", "NO", None, 64), ("name", "text", "text", "NO", "'x'::text", None),
        ("v", "numeric", "numeric", "YES", None, 10), ("tags", "ARRAY", "_text", "YES", None, None),
        ("j", "json", "json", "YES", None, None),
    ]  # fmt: skip
    text = "select constraint_name, column_name from information_schema.key_column_usage"
    assert shown.rows(text) == [("t_pkey", "id")]


def test_answers_about_the_session(shown: Asking) -> None:
    facts = "current_schemas(false), has_table_privilege('t', 'select'), pg_is_in_recovery(), pg_backend_pid() > 0"
    assert shown.rows(f"select {facts}, version() like 'PostgreSQL%'") == [(["public"], True, False, True, True)]
    assert shown.rows("select datname from pg_database") == [("barnabas",)]
    assert shown.rows("select setting from pg_settings where name = 'server_version'") == [("16.4",)]
    assert shown.rows("select usename from pg_user") == [("anonymous",)]
