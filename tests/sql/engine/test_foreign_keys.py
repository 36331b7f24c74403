"""Foreign keys: definitions keep them, and the catalogue shows them as Postgres does. Nothing looks whether a row is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.engine.asking import Asking


@pytest.fixture
def family(ask: Asking) -> Iterator[Asking]:
    ask("create table parents (id int primary key, code varchar(5) unique, x int, y int, unique (x, y))")
    ask(
        "create table children (id int primary key, pid int references parents on delete cascade, code varchar(5) constraint by_code"
        " references parents (code) on update set null deferrable initially deferred, a int, b int,"
        " foreign key (a, b) references parents (x, y) match full, up int references children)"
    )
    yield ask
    for name in ("children", "parents", "elders"):
        ask(f"drop table if exists {name} cascade")


def texts(ask: Asking, table: str = "children") -> dict[str, str]:
    """The references of a table, by their names."""
    query = "select conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'f' and conrelid = '%s'::regclass"
    return dict(ask.rows(query % table))


def test_references_in_the_catalogue(family: Asking) -> None:
    assert [each.message for each in family.session.take_notices()] == ["foreign keys are not enforced"]
    assert texts(family) == {
        "children_pid_fkey": "FOREIGN KEY (pid) REFERENCES parents(id) ON DELETE CASCADE",
        "by_code": "FOREIGN KEY (code) REFERENCES parents(code) ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED",
        "children_a_b_fkey": "FOREIGN KEY (a, b) REFERENCES parents(x, y) MATCH FULL",
        "children_up_fkey": "FOREIGN KEY (up) REFERENCES children(id)",
    }
    columns = "conkey, confkey, confupdtype, confdeltype, confmatchtype, condeferrable, condeferred, conindid > 0"
    query = f"select {columns} from pg_constraint where confrelid = 'parents'::regclass order by conname"
    assert family.rows(query) == [
        ([3], [2], "n", "a", "s", True, True, True), ([4, 5], [3, 4], "a", "a", "f", False, False, True),
        ([2], [1], "a", "c", "s", False, False, True),
    ]  # fmt: skip
    names = "constraint_name, unique_constraint_name, match_option, update_rule, delete_rule"
    assert family.rows(f"select {names} from information_schema.referential_constraints order by 1") == [
        ("by_code", "parents_code_key", "NONE", "SET NULL", "NO ACTION"),
        ("children_a_b_fkey", "parents_x_y_key", "FULL", "NO ACTION", "NO ACTION"),
        ("children_pid_fkey", "parents_pkey", "NONE", "NO ACTION", "CASCADE"),
        ("children_up_fkey", "children_pkey", "NONE", "NO ACTION", "NO ACTION"),
    ]
    used = (
        "select table_name, column_name from information_schema.constraint_column_usage where constraint_name = '%s' order by 2"
    )
    assert family.rows(used % "children_a_b_fkey") == [("parents", "x"), ("parents", "y")]
    kinds = "select constraint_type, enforced from information_schema.table_constraints where constraint_name = 'by_code'"
    assert family.rows(kinds) == [("FOREIGN KEY", "NO")]


def test_a_created_table_can_be_created_again(family: Asking) -> None:
    text = family.rows("show create table children")[0][1]
    family("drop table children")
    family(text)
    assert family.rows("show create table children")[0][1] == text


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("a int references nowhere", "42P01"), ("a int references parents (y)", "42830"), ("a int references parents (z)", "42703"),
        ("a text references parents", "42804"), ("a int, foreign key (b) references parents", "42703"),
        ("a int, foreign key (a) references parents (x, y)", "42830"),
        ("a int constraint n references parents, b int constraint n references parents", "42710"),
    ],
)  # fmt: skip
def test_references_that_are_refused(family: Asking, text: str, state: str) -> None:
    assert family.error(f"create table wrong ({text})").sqlstate == state


def test_a_table_that_is_there_stays_as_it_is(family: Asking) -> None:
    family("create table if not exists children (a int references nowhere)")
    assert "children_up_fkey" in texts(family)


def test_references_are_altered(family: Asking) -> None:
    family("alter table children drop constraint children_pid_fkey")
    family("alter table children add foreign key (pid) references parents (id) on delete restrict not valid")
    assert texts(family)["children_pid_fkey"] == "FOREIGN KEY (pid) REFERENCES parents(id) ON DELETE RESTRICT NOT VALID"
    family("alter table children add column extra int references parents (id)")
    assert "children_extra_fkey" in texts(family)
    family("alter table children rename constraint children_extra_fkey to more")
    family("alter table children drop column extra")
    assert texts(family).keys() == {"children_pid_fkey", "by_code", "children_a_b_fkey", "children_up_fkey"}


def test_names_change_with_tables_and_columns(family: Asking) -> None:
    family("alter table parents rename column code to word")
    family("alter table children rename column code to term")
    family("alter table parents rename to elders")
    assert texts(family)["by_code"].startswith("FOREIGN KEY (term) REFERENCES elders(word)")


def test_tables_that_others_refer_to(family: Asking) -> None:
    error = family.error("drop table parents")
    assert (error.sqlstate, error.message) == ("2BP01", "cannot drop table parents because other objects depend on it")
    assert "constraint children_pid_fkey on table children depends on table parents" in (error.detail or "")
    for change in ("drop constraint parents_code_key", "drop column code"):
        assert family.error(f"alter table parents {change}").sqlstate == "2BP01"
    family("drop table parents cascade")
    assert texts(family).keys() == {"children_up_fkey"}
    family("drop table children")


def test_no_statement_looks_for_the_row(family: Asking) -> None:
    family("insert into children (id, pid) values (1, 99)")
    assert family.rows("select pid from children") == [(99,)]


def test_indexes_in_the_catalogue(family: Asking) -> None:
    family("create index by_pid on children (pid desc, b)")
    family("create index of_words on children (lower(code))")
    query = "select indexdef from pg_indexes where indexname in ('by_pid', 'of_words')"
    assert family.rows(query) == [("CREATE INDEX by_pid ON public.children USING btree (pid DESC, b)",)]
    family("alter table children rename column b to c")
    family("alter index by_pid rename to first")
    assert family.rows("select indexdef from pg_indexes where indexname = 'first'")[0][0].endswith("(pid DESC, c)")
    family("drop index first")
    assert family.rows("select indexdef from pg_indexes where indexname = 'first'") == []
    family("drop index of_words")


def test_defaults_in_the_catalogue(family: Asking) -> None:
    family(
        "create table defaulted (a text default 'it''s', b varchar(3) default 'x', c int default -1, d boolean default true, e timestamptz"
        " default now(), f jsonb default '{}', g date default '2020-01-01', h bigint default 3000000000, i int, j int generated always as"
        " (i + 1) stored)"
    )
    query = "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'defaulted'::regclass order by adnum"
    assert [row[0] for row in family.rows(query)] == [
        "'it''s'::text", "'x'::character varying", "'-1'::integer", "true", "now()", "'{}'::jsonb", "'2020-01-01'::date",
        "'3000000000'::bigint", "(i + 1)",
    ]  # fmt: skip
    family("drop table defaulted")
