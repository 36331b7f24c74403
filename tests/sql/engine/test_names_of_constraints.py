"""Names of primary keys and comments on constraints and indexes, as PostgreSQL keeps and shows them."""

from __future__ import annotations

import pytest

from tests.sql.engine.asking import Asking

NAMES = (
    "select conname from pg_constraint where conrelid = '{0}'::regclass and contype = 'p' "
    "union all select indexname from pg_indexes where tablename = '{0}'"
)
COMMENT = (
    "select obj_description(oid, 'pg_constraint') from pg_constraint where conname = '{0}' "
    "union all select obj_description(oid, 'pg_class') from pg_class where relname = '{0}' and relkind = 'i'"
)


@pytest.mark.parametrize("keys", ["a int constraint own primary key", "a int, constraint own primary key (a)"])
def test_a_key_has_the_name_that_the_statement_gives(ask: Asking, keys: str) -> None:
    ask(f"create table named ({keys}, b int)")
    assert ask.rows(NAMES.format("named")) == [("own",), ("own",)]
    ask("insert into named values (1, 1)")
    assert ask.error("insert into named values (1, 1)").message == 'duplicate key value violates unique constraint "own"'
    assert ask.error("insert into named values (1, 1)").constraint == "own"
    assert ask.tag("insert into named values (1, 2) on conflict on constraint own do update set b = 2") == "INSERT 0 1"
    assert ask.error("insert into named values (1, 2) on conflict on constraint named_pkey do nothing").sqlstate == "42704"
    assert "CONSTRAINT own PRIMARY KEY (a)" in ask.rows("show create table named")[0][1]
    ask("alter table named rename constraint own to other")
    assert ask.rows(NAMES.format("named")) == [("other",), ("other",)]
    assert ask.error("alter table named drop constraint other").sqlstate == "0A000"
    ask("alter table named rename to renamed")
    assert ask.rows(NAMES.format("renamed")) == [("other",), ("other",)]
    ask("create table alike (like renamed including all)")
    assert ask.rows(NAMES.format("alike")) == [("alike_pkey",), ("alike_pkey",)]
    ask("drop table renamed, alike")


def test_a_key_without_a_name_keeps_its_own_as_the_table_gets_another(ask: Asking) -> None:
    ask("create schema many")
    ask("create table many.first (a int primary key)")
    ask("insert into many.first values (1)")
    assert ask.error("insert into many.first values (1)").constraint == "first_pkey"
    ask("alter table many.first rename to second")
    assert ask.rows(NAMES.format("second").replace("'second'::regclass", "'many.second'::regclass")) == [("first_pkey",)] * 2
    ask("drop schema many cascade")


def test_schemas_have_indexes_of_the_same_name(ask: Asking) -> None:
    ask("create schema apart")
    for table in ("beside", "apart.beside"):
        ask(f"create table {table} (a int unique, b int)")
        ask(f"create index both on {table} (b)")
        assert ask.error(f"create index both on {table} (b)").sqlstate == "42P07"
    of_both = "select schemaname from pg_indexes where indexname = 'both' order by 1"
    assert ask.rows(of_both) == [("apart",), ("public",)]
    ask("drop index apart.both")
    assert ask.rows(of_both) == [("public",)]
    assert ask.error("drop index apart.both").sqlstate == "42704"
    ask("alter index public.both rename to other")
    assert ask.rows(of_both) == []
    ask("drop schema apart cascade")
    ask("drop table beside")


def test_schemas_have_relations_of_the_same_name(ask: Asking) -> None:
    """Functions that look for a name take the schema that it has, and the public one without."""
    ask("create schema apart")
    for schema, start in (("public", 1), ("apart", 20)):
        ask(f"create table {schema}.twins (id int generated always as identity (start with {start}), b int)")
        ask(f"create index twins_b on {schema}.twins (b{' desc' if start > 1 else ''})")
        ask(f"create view {schema}.seen as select {start} as a")
        found = f"select seqstart from pg_sequence where seqrelid = pg_get_serial_sequence('{schema}.twins', 'id')::regclass"
        assert ask.rows(found) == [(start,)]
        assert ask.rows(f"select pg_get_viewdef('{schema}.seen'::regclass)")[0][0].strip(" ;") == f"select {start} as a"
        [(text,)] = ask.rows(f"select pg_get_indexdef(to_regclass('{schema}.twins_b'))")
        assert (f"ON {schema}.twins" in text, "DESC" in text) == (True, start > 1)
    assert ask.rows("select pg_get_serial_sequence('twins', 'id'), to_regclass('nowhere.twins')") == [
        ("public.twins_id_seq", None)
    ]
    ask("drop schema apart cascade")
    ask("drop view seen")
    ask("drop table twins")


def test_comments(ask: Asking) -> None:
    ask("create table noted (a int primary key, b int constraint positive check (b > 0), c int unique)")
    ask("create index noted_b on noted (b)")
    for name, text in (("noted_pkey", "of the key"), ("positive", "it's so"), ("noted_c_key", "once")):
        assert ask.tag(f"comment on constraint {name} on noted is '{text.replace(chr(39), chr(39) * 2)}'") == "COMMENT"
        assert (text,) in ask.rows(COMMENT.format(name))
    assert ask.tag("comment on index noted_b is 'found fast'") == "COMMENT"
    assert ask.rows(COMMENT.format("noted_b")) == [("found fast",)]
    ask("alter table noted rename constraint positive to more")
    assert ask.rows(COMMENT.format("more")) == [("it's so",)]
    ask("comment on constraint more on public.noted is null")
    assert ask.rows(COMMENT.format("more")) == [(None,)]
    ask("drop table noted")


@pytest.mark.parametrize("kind", ["extension plpgsql", "schema public", "database postgres", "sequence counted"])
def test_comments_that_are_not_kept(ask: Asking, kind: str) -> None:
    """Dumps contain them."""
    assert ask.tag(f"comment on {kind} is 'text'") == "COMMENT"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("comment on constraint none on bare is 'a'", "42704"), ("comment on constraint a on nowhere is 'a'", "42P01"),
        ("comment on constraint a is 'a'", "42601"), ("comment on constraint a on bare is 5", "42601"),
        ("comment on constraint a on bare", "42601"), ("comment on index nowhere is 'a'", "42P01"),
        ("comment on index a", "42601"), ("comment on trigger a on bare is 'a'", "42601"),
    ],
)  # fmt: skip
def test_comments_on_what_is_not_there(ask: Asking, text: str, state: str) -> None:
    ask("create table if not exists bare (a int)")
    assert ask.error(text).sqlstate == state
