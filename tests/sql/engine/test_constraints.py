"""UNIQUE and CHECK: what each statement that writes is refused, and how constraints come and go."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.sql.interface import SqlError
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking

T = "create table t (id int primary key, mail text unique, age int check (age >= 0), zone text, nr int, unique (zone, nr))"


@pytest.fixture
def ask(ask: Asking) -> Asking:
    ask("drop table if exists t cascade")
    ask(T)
    ask(
        "insert into t values (1, 'a@x', 30, 'north', 1), (2, null, null, 'north', 2), (3, null, 1, null, 2), (4, null, 1, null, 2)"
    )
    return ask


def told(error: SqlError) -> tuple[Any, ...]:
    """The parts of an error that programs read."""
    return error.sqlstate, error.table, error.constraint, error.detail


MAIL = ("23505", "t", "t_mail_key", "Key (mail)=(a@x) already exists.")
ZONE = ("23505", "t", "t_zone_nr_key", "Key (zone, nr)=(north, 1) already exists.")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("insert into t (id, mail) values (9, 'a@x')", MAIL),
        ("insert into t (id, mail) values (8, 'new'), (9, 'a@x')", MAIL),
        ("insert into t (id, mail) select 9, 'a@' || 'x'", MAIL),
        ("insert into t (id, mail) values (9, 'a@x') on conflict (id) do nothing", MAIL),
        ("insert into t (id, mail) values (2, 'a@x') on conflict (id) do update set mail = excluded.mail", MAIL),
        ("update t set mail = 'a@x' where id = 2", MAIL),
        ("merge into t using (values (2)) s (id) on t.id = s.id when matched then update set mail = 'a@x'", MAIL),
        ("merge into t using (values (9)) s (id) on t.id = s.id when not matched then insert (id, mail) values (9, 'a@x')", MAIL),
        ("update t set nr = 1 where id = 2", ZONE),
        ("insert into t (id, zone, nr) values (9, 'south', 1), (10, 'north', 1)", ZONE),
    ],
)
def test_values_that_are_there_are_refused(ask: Asking, text: str, wanted: tuple[Any, ...]) -> None:
    before = ask.rows("select * from t order by id")
    assert told(ask.error(text)) == wanted
    assert ask.rows("select * from t order by id") == before


def test_values_twice_in_one_statement_are_refused(ask: Asking) -> None:
    assert told(ask.error("insert into t (id, mail) values (8, 'b'), (9, 'b')"))[2] == "t_mail_key"
    assert told(ask.error("update t set mail = 'same'"))[3] == "Key (mail)=(same) already exists."
    with pytest.raises(SqlError, match="t_mail_key"):
        ask.copy_in("copy t (id, mail) from stdin", b"8\tb\n9\tb\n")
    with pytest.raises(SqlError, match="t_mail_key"):
        ask.copy_in("copy t (id, mail) from stdin", b"8\tb\n9\ta@x\n")
    assert ask.copy_in("copy t (id, mail) from stdin", b"8\tb\n9\t\\N\n10\t\\N\n") == "COPY 3"


def test_a_statement_can_move_values(ask: Asking) -> None:
    assert ask.tag("update t set nr = nr + 1") == "UPDATE 4"  # north 1 becomes north 2, which was there
    assert ask.tag("update t set mail = 'a@x', nr = 7 where id = 1") == "UPDATE 1"
    merged = "merge into t using (values (1), (9)) s (id) on t.id = s.id"
    assert ask.tag(f"{merged} when matched then delete when not matched then insert (id, mail) values (9, 'a@x')") == "MERGE 2"
    assert ask.rows("select id from t where mail = 'a@x'") == [(9,)]


def test_values_follow_the_rows_that_have_them(ask: Asking) -> None:
    ask("update t set mail = 'b@x' where id = 1")
    assert ask.tag("insert into t (id, mail) values (9, 'a@x')") == "INSERT 0 1"
    assert told(ask.error("insert into t (id, mail) values (10, 'b@x')"))[2] == "t_mail_key"
    ask("delete from t where id = 1")
    assert ask.tag("insert into t (id, mail) values (10, 'b@x')") == "INSERT 0 1"
    ask("alter table t rename column mail to address")
    assert told(ask.error("insert into t (id, address) values (11, 'b@x')"))[3] == "Key (address)=(b@x) already exists."


def test_rows_before_a_column_have_its_default_for_unique(ask: Asking) -> None:
    ask("drop table if exists later")
    ask("create table later (id int primary key)")
    ask("insert into later values (1)")
    ask("alter table later add column code text not null default 'none'")
    ask("alter table later add unique (code)")
    assert ask.error("insert into later values (2, 'none')").constraint == "later_code_key"


def test_on_conflict_with_a_query_of_the_same_table_sees_all_rows(ask: Asking) -> None:
    ask("insert into t (id, mail) values (1, 'c@x') on conflict (id) do update set nr = (select count(*) from t)")
    ask("insert into t (id, mail) values (7, 'a@x') on conflict (mail) do update set age = (select sum(id) from t)")
    assert ask.rows("select id, nr, age from t where mail = 'a@x'") == [(1, 4, 10)]


def test_a_transaction_sees_its_own_values(ask: Asking) -> None:
    ask("begin")
    ask("insert into t (id, mail) values (9, 'b')")
    assert told(ask.error("insert into t (id, mail) values (10, 'b')"))[2] == "t_mail_key"
    ask("rollback")
    ask("begin")
    ask("delete from t where id = 1")
    assert ask.tag("insert into t (id, mail) values (10, 'a@x')") == "INSERT 0 1"
    ask("commit")
    assert ask.rows("select id from t where mail = 'a@x'") == [(10,)]


@pytest.mark.parametrize(
    "text",
    [
        "insert into t (id, age) values (9, -1)",
        "insert into t (id, age) select 9, -1",
        "insert into t (id, age) values (1, -1) on conflict (id) do nothing",
        "insert into t (id, age) values (1, 5) on conflict (id) do update set age = -excluded.age",
        "update t set age = age - 100 where id = 1",
        "merge into t using (values (1)) s (id) on t.id = s.id when matched then update set age = -1",
    ],
)
def test_a_row_that_makes_a_condition_false_is_refused(ask: Asking, text: str) -> None:
    assert told(ask.error(text))[:3] == ("23514", "t", "t_age_check")
    assert ask.rows("select age from t where id = 1") == [(30,)]


def test_a_condition_over_several_columns(ask: Asking) -> None:
    ask("drop table if exists spans")
    ask(
        "create table spans (a int, b int, w int as (b - a), constraint forward check (a < b), check (w < 10), check (spans.b < 99))"
    )
    error = ask.error("insert into spans values (2, 1)")
    assert (str(error), error.detail) == (
        'new row for relation "spans" violates check constraint "forward"', "Failing row contains (2, 1, -1).",
    )  # fmt: skip
    assert ask.error("insert into spans values (1, 20)").constraint == "spans_w_check"
    assert ask.error("insert into spans values (98, 99)").constraint == "spans_b_check"
    assert ask.tag("insert into spans values (1, null), (1, 2)") == "INSERT 0 2"
    with pytest.raises(SqlError, match="forward"):
        ask.copy_in("copy spans (a, b) from stdin", b"5\t4\n")


def test_on_conflict_by_values(ask: Asking) -> None:
    assert ask.tag("insert into t (id, mail) values (9, 'a@x'), (10, 'b'), (11, 'b') on conflict do nothing") == "INSERT 0 1"
    assert ask.tag("insert into t (id, mail) values (12, 'a@x') on conflict (mail) do nothing") == "INSERT 0 0"
    update = "on conflict (mail) do update set age = excluded.age + coalesce(t.age, 0)"
    assert ask.rows(f"insert into t (id, mail, age) values (13, 'a@x', 5), (14, 'c', 6) {update} returning id, age") == [
        (14, 6), (1, 35),
    ]  # fmt: skip
    named = "on conflict on constraint t_zone_nr_key do update set age = 99 where t.age > 1000"
    assert ask.tag(f"insert into t (id, zone, nr) values (15, 'north', 1) {named}") == "INSERT 0 0"
    assert ask.error(f"insert into t (id, mail) values (16, 'd'), (17, 'd') {update}").sqlstate == "21000"
    assert ask.error(f"insert into t (id, mail) values (1, 'd') {update}").constraint == "t_pkey"
    assert ask.error("insert into t (id, mail) values (1, 'd') on conflict (mail) do nothing").constraint == "t_pkey"
    assert ask.error("insert into t (id) values (1) on conflict (age) do nothing").sqlstate == "42P10"


def test_unique_without_a_primary_key(ask: Asking) -> None:
    ask("drop table if exists counted")
    ask("create table counted (word text unique, n int)")
    for _ in range(3):
        ask("insert into counted values ('a', 1), ('b', 1) on conflict (word) do update set n = counted.n + excluded.n")
    assert ask.rows("select * from counted order by word") == [("a", 3), ("b", 3)]
    assert ask.error("update counted set word = 'a'").constraint == "counted_word_key"
    ask("drop table if exists seen_once")
    ask("create table seen_once (word text unique) append only")
    ask("insert into seen_once values ('a')")
    assert ask.error("insert into seen_once values ('a')").constraint == "seen_once_word_key"
    assert ask.tag("insert into seen_once values ('a') on conflict do nothing") == "INSERT 0 0"
    assert ask.error("insert into seen_once values ('a') on conflict (word) do update set word = 'b'").sqlstate == "55000"


def test_nulls_can_be_equal(ask: Asking) -> None:
    ask("drop table if exists one_null")
    ask("create table one_null (a int unique nulls not distinct)")
    ask("insert into one_null values (null)")
    assert ask.error("insert into one_null values (null)").detail == "Key (a)=(null) already exists."


def test_constraints_are_added_and_dropped(ask: Asking) -> None:
    ask("insert into t (id, age, zone, nr) values (5, 5, 'x', 5), (6, 5, 'x', 6)")
    error = ask.error("alter table t add constraint ages unique (age)")
    assert (error.sqlstate, str(error)) == ("23505", 'could not create unique index "ages"')
    assert error.detail in ("Key (age)=(1) is duplicated.", "Key (age)=(5) is duplicated.")
    assert ask.error("alter table t add check (nr < 6)").sqlstate == "23514"
    assert ask.tag("alter table t add constraint few check (nr < 6) not valid") == "ALTER TABLE"
    assert ask.error("insert into t (id, nr) values (7, 6)").constraint == "few"
    assert (
        ask.tag("alter table t drop constraint few, drop constraint t_mail_key, drop constraint if exists none") == "ALTER TABLE"
    )
    assert ask.tag("insert into t (id, nr, mail) values (7, 6, 'a@x')") == "INSERT 0 1"
    assert ask.error("alter table t drop constraint none").sqlstate == "42704"
    assert ask.error("alter table t drop constraint t_pkey").sqlstate == "0A000"
    ask("alter table t add column k int unique check (k > 0)")
    assert ask.error("insert into t (id, k) values (8, 0)").constraint == "t_k_check"
    ask("insert into t (id, k) values (8, 1)")
    assert ask.error("insert into t (id, k) values (9, 1)").constraint == "t_k_key"
    ask("alter table t drop column k")
    assert ask.rows("select conname from pg_constraint where conrelid = 't'::regclass order by 1") == [
        ("t_age_check",), ("t_pkey",), ("t_zone_nr_key",),
    ]  # fmt: skip


def test_nulls_are_refused_from_then_on(ask: Asking) -> None:
    assert ask.error("alter table t alter column age set not null").sqlstate == "23502"
    ask("update t set age = 0 where age is null")
    ask("alter table t alter column age set not null")
    assert ask.error("insert into t (id) values (9)").column == "age"
    ask("alter table t alter age drop not null")
    assert ask.tag("insert into t (id) values (9)") == "INSERT 0 1"
    assert ask.error("alter table t alter id drop not null").sqlstate == "42P16"


def test_a_column_gets_another_name(ask: Asking) -> None:
    ask("create view old_ones as select id from t where age > 20")
    assert ask.error("alter table t rename age to years").sqlstate == "2BP01"
    ask("drop view old_ones")
    ask("alter table t rename age to years")
    ask("alter table t rename column mail to address")
    ask("alter table t rename column id to key")
    assert ask.rows("select key, address, years from t where key = 1") == [(1, "a@x", 30)]
    assert ask.error("insert into t (key, years) values (9, -1)").constraint == "t_age_check"
    assert ask.error("insert into t (key, address) values (9, 'a@x')").detail == "Key (address)=(a@x) already exists."
    ask("insert into t values (9, 'b', 5, 'z', 9)")
    assert ask.error("alter table t rename years to nr").sqlstate == "42701"
    ask("alter table t add column age int")
    ask("update t set age = 7 where key = 9")
    assert ask.rows("select years, age from t where key in (1, 9) order by key") == [(30, None), (5, 7)]
    ask("alter table t rename years to old_years")
    ask("alter table t rename age to years")
    assert ask.rows("select old_years, years from t where key = 9") == [(5, 7)]


def test_columns_of_a_key_get_other_names(ask: Asking) -> None:
    ask("drop table if exists pairs")
    ask("create table pairs (a int, b int, c int, d int as (c + b), primary key (a, b))")
    ask("insert into pairs values (1, 2, 3)")
    ask("alter table pairs rename a to x")
    ask("alter table pairs rename c to z")
    ask("insert into pairs values (1, 2, 4) on conflict (x, b) do update set z = excluded.z + 10")
    assert ask.rows("select * from pairs where x = 1 and b = 2") == [(1, 2, 14, 16)]
    assert ask.error("insert into pairs values (1, 2, 4)").constraint == "pairs_pkey"


def test_a_unique_index_is_kept_as_unique_is(ask: Asking) -> None:
    ask("create unique index zones on t (zone desc, age)")
    ask("insert into t (id, zone, age) values (9, 'x', 1)")
    assert ask.error("insert into t (id, zone, age) values (10, 'x', 1)").constraint == "zones"
    assert ask.error("create unique index ages on t (age)").sqlstate == "23505"
    assert ask.error("create unique index zones on t (id)").sqlstate == "42P07"
    assert ask.error("create unique index on t (lower(zone))").sqlstate == "0A000"
    assert ask.error("create unique index on t (zone) where age > 1").sqlstate == "0A000"
    assert ask.error("alter table t drop constraint zones").sqlstate == "42704"
    text = "select indexdef from pg_indexes where indexname = 'zones'"
    assert ask.rows(text) == [("CREATE UNIQUE INDEX zones ON public.t USING btree (zone, age)",)]
    ask("drop index zones")
    assert ask.tag("insert into t (id, zone, age) values (10, 'x', 1)") == "INSERT 0 1"


def test_rows_of_other_producers_are_not_checked(ask: Asking, broker: Broker) -> None:
    ask("drop table if exists shared")
    ask("create table shared (id int primary key, a int unique check (a > 0)) with (topic = 'shared')")
    ask("insert into shared values (1, 1)")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("shared", key=b"2", value=b'{"a": 1}')
    producer.produce("shared", key=b"3", value=b'{"a": -1}')
    assert producer.flush(30) == 0
    assert ask.rows("select * from shared order by id") == [(1, 1), (2, 1), (3, -1)]
    assert ask.error("update shared set a = a where id = 3").sqlstate == "23514"


def test_a_job_does_not_write_to_a_table_with_constraints(ask: Asking) -> None:
    ask("drop table if exists incoming cascade")
    ask("create table incoming (id int, mail text) append only")
    error = ask.error("insert into t (id, mail) select id, mail from stream incoming")
    assert (error.sqlstate, str(error)) == ("42809", 'a job cannot keep the constraint "t_mail_key"')
