"""INSERT, UPDATE, DELETE and MERGE: all rows or none, and what becomes of keys."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from confluent_kafka import Consumer

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking


@pytest.fixture
def ask(ask: Asking) -> Asking:
    ask("drop table if exists t")
    ask("create table t (id bigint primary key, name text not null default 'x', v numeric(10,2))")
    ask("drop table if exists log")
    ask("create table log (a int, b text) append only with (partitions = 3)")
    return ask


def records(broker: Broker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[tuple[bytes | None, bytes | None]] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        found.append((message.key(), message.value()))
    consumer.close()
    return found


def test_a_row_is_a_record(ask: Asking, broker: Broker) -> None:
    assert ask.tag("insert into t values (1, 'a', 1.5), (2, default, null)") == "INSERT 0 2"
    assert ask.tag("delete from t where id = 1") == "DELETE 1"
    assert records(broker, "t", 3) == [
        (b"1", b'{"name":"a","v":1.50}'),
        (b"2", b'{"name":"x","v":null}'),
        (b"1", None),
    ]


def test_insert(ask: Asking) -> None:
    assert ask.tag("insert into t (v, id) values (2, 1)") == "INSERT 0 1"
    assert ask.tag("insert into t select range, 'n' || range, null from range(5, 8)") == "INSERT 0 3"
    assert ask.tag("with x as (select 9 as i) insert into t (id) select i from x") == "INSERT 0 1"
    assert ask.rows("select id, name, v from t order by id") == [
        (1, "x", Decimal("2.00")), (5, "n5", None), (6, "n6", None), (7, "n7", None), (9, "x", None),
    ]  # fmt: skip
    answer = ask("insert into t (id) values (20) returning id, name || '!' as n")
    assert (answer.names, answer.rows, answer.tag) == (["id", "n"], [(20, "x!")], "INSERT 0 1")
    assert ask.tag("insert into log default values") == "INSERT 0 1"
    assert ask.rows("select * from log") == [(None, None)]


@pytest.mark.parametrize("value", [3, "3", None])
def test_insert_with_parameters(ask: Asking, value: object) -> None:
    assert ask.tag("insert into t values ($1, $2, $3)", "10", "it's", value) == "INSERT 0 1"
    assert ask.rows("select name, v from t where id = $1", 10) == [("it's", None if value is None else Decimal("3.00"))]
    assert ask.error("insert into t values ($1, $2, $3)", "y", "a", 1).sqlstate == "22P02"
    types = ask.session.prepare("insert into t values ($1, $2, $3)").parameters
    assert [str(each) for each in types] == ["int64", "string", "decimal128(10, 2)"]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("insert into t values (1, null)", "23502"),
        ("insert into t (name) values ('a')", "23502"),
        ("insert into t (id, nope) values (1, 2)", "42703"),
        ("insert into t (id, id) values (1, 2)", "42701"),
        ("insert into t (id) values (1, 2)", "42601"),
        ("insert into t values (1), (2, 'a')", "42601"),
        ("insert into t (id) values ('x')", "22P02"),
        ("insert into t values (1, 'a', 1e20)", "22003"),
        ("insert into nope values (1)", "42P01"),
        ("insert into pg_class values (1)", "42809"),
        ("update log set a = 1", "55000"),
        ("delete from log", "55000"),
        ("update t set nope = 1", "42703"),
        ("update t set id = null", "23502"),
        ("update t set name = null where id = 0", "23502"),
        ("insert into log values (1, 'a') on conflict (a) do nothing", "42P10"),
        ("insert into t values (1) on conflict (name) do nothing", "42P10"),
        ("insert overwrite table t select 1", "0A000"),
        ("insert into t select 1 / 0", "22012"),
    ],
)
def test_rows_that_are_refused(ask: Asking, text: str, state: str) -> None:
    ask("insert into t values (0, 'zero', 0)")
    error = ask.error(text)
    assert error.sqlstate == state, error.message
    assert ask.rows("select id, name from t") == [(0, "zero")]


def test_a_key_is_there_once(ask: Asking, engine: SqlEngine) -> None:
    ask("insert into t values (1, 'a')")
    error = ask.error("insert into t values (2, 'b'), (1, 'c')")
    assert (error.sqlstate, error.detail) == ("23505", "Key (id)=(1) already exists.")
    assert ask.error("insert into t (id) values (3), (3)").sqlstate == "23505"
    assert asking(engine).error("insert into t (id) values (1)").sqlstate == "23505"
    assert ask.rows("select id from t") == [(1,)]
    ask("delete from t where id = 1")
    assert ask.tag("insert into t values (1, 'again')") == "INSERT 0 1"


def test_keys_of_tables_that_are_not_kept_in_memory(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_BYTES", 0)
    ask("insert into t (id) select range from range(10)")
    assert ask.error("insert into t (id) values (7)").sqlstate == "23505"
    assert ask.tag("insert into t (id) values (70)") == "INSERT 0 1"


def test_on_conflict(ask: Asking) -> None:
    ask("insert into t values (1, 'a', 1), (2, 'b', 2)")
    assert ask("insert into t values (1, 'z'), (3, 'c'), (3, 'd') on conflict do nothing returning id").rows == [(3,)]
    whole = "insert into t values (1, 'A', 10) on conflict (id) do update set name = excluded.name, v = excluded.v"
    assert ask.tag(whole) == "INSERT 0 1"
    ask(
        "insert into t values (2, 'B', 5), (9, 'n', 5) on conflict (id) do update set v = t.v + excluded.v, name = t.name || $1",
        "!",
    )
    assert ask.rows("select * from t order by id") == [
        (1, "A", Decimal(10)), (2, "b!", Decimal(7)), (3, "c", None), (9, "n", Decimal(5)),
    ]  # fmt: skip
    assert ask.tag("insert into t values (1, 'q', 0) on conflict (id) do update set name = 'q' where t.v > 100") == "INSERT 0 0"
    assert ask.error("insert into t values (5), (5) on conflict (id) do update set v = 1").sqlstate == "21000"


def test_update_and_delete(ask: Asking) -> None:
    ask("insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    assert ask("update t set name = upper(name), v = v * 2 where id >= 2 returning id, name, v").tag == "UPDATE 2"
    assert ask.tag("update t as x set name = s.b from (values (1, 'one'), (7, 'no')) s(a, b) where x.id = s.a") == "UPDATE 1"
    assert ask.rows("select * from t order by id") == [(1, "one", Decimal(1)), (2, "B", Decimal(4)), (3, "C", Decimal(6))]
    assert ask.tag("update t set (name, v) = ('p', $1) where id = $2", 9, 3) == "UPDATE 1"
    assert ask.tag("update t set name = default where id = 3") == "UPDATE 1"
    assert ask.rows("select name, v from t where id = 3") == [("x", Decimal(9))]
    assert ask.tag("delete from t using (values (1)) s(i) where id = s.i") == "DELETE 1"
    assert ask.tag("delete from t where id in (select 99)") == "DELETE 0"
    assert ask("delete from t returning id").tag == "DELETE 2"


def test_merge(ask: Asking) -> None:
    ask("insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    tag = ask.tag(
        "merge into t using (values (1, 'A'), (2, 'B'), (3, 'C'), (4, 'D')) s(i, n) on t.id = s.i"
        " when matched and s.i = 2 then delete when matched and s.i = 3 then do nothing"
        " when matched then update set name = s.n when not matched then insert (id, name) values (s.i, s.n)"
    )
    assert tag == "MERGE 3"
    assert ask.rows("select id, name from t order by id") == [(1, "A"), (3, "c"), (4, "D")]
    assert ask.error("merge into t using (values (1), (1)) s(i) on t.id = s.i when matched then delete").sqlstate == "21000"
    assert ask.error("merge into log using (values (1)) s(i) on true when matched then delete").sqlstate == "55000"
    twice = "merge into t using (values (5), (5)) s(i) on t.id = s.i when not matched then insert (id) values (s.i)"
    assert ask.error(twice).sqlstate == "23505"


def test_a_key_of_several_columns(ask: Asking) -> None:
    ask("drop table if exists pairs")
    ask("create table pairs (a int, b text, c int, primary key (a, b))")
    ask("insert into pairs values (1, 'x', 1), (1, 'y', 2)")
    assert ask.error("insert into pairs values (1, 'y', 3)").sqlstate == "23505"
    ask("update pairs set c = 9 where b = 'y'")
    ask("delete from pairs where b = 'x'")
    assert ask.rows("select * from pairs") == [(1, "y", 9)]


def test_a_large_statement_is_one_transaction(ask: Asking, engine: SqlEngine) -> None:
    other = asking(engine)
    assert ask.tag("insert into log select range, repeat('x', 200) from range(20000)") == "INSERT 0 20000"
    assert other.rows("select count(*), count(distinct a) from log") == [(20000, 20000)]
    too_large = "case when range = 19999 then repeat('x', 3000000) else 'y' end"
    assert ask.error(f"insert into log select range, {too_large} from range(20000)").sqlstate == "54000"
    assert other.rows("select count(*) from log") == [(20000,)]
    assert ask.tag("insert into log values (1, 'after')") == "INSERT 0 1"


def test_a_session_reads_what_it_wrote(ask: Asking) -> None:
    for number in range(20):
        ask("insert into log values ($1, 'x')", number)
        assert ask.rows("select count(*) from log") == [(number + 1,)]
        ask("insert into t (id) values ($1)", number)
        assert ask.rows("select count(*) from t") == [(number + 1,)]


def test_rows_for_a_topic_without_a_definition(ask: Asking, broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as kafka:
        if "bare" not in kafka.topics_by_name(["bare"]):
            from barnabas.client.results import NewTopic

            kafka.create_topics([NewTopic("bare", 1)])
    assert ask.tag("insert into bare values ('k', 'v')") == "INSERT 0 1"
    assert ask.rows("select * from bare") == [("k", "v")]


def test_the_limit_of_modified_rows(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("insert into t (id) select range from range(5)")
    monkeypatch.setattr(limits, "MAX_SQL_MODIFIED_ROWS", 3)
    assert ask.error("update t set v = 1").sqlstate == "54000"
    assert ask.tag("update t set v = 1 where id < 2") == "UPDATE 2"


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 00:00:00+00",
        "2026-06-01T12:30:00Z",
        "2026-01-01 00:00:00.1+05:30",
        "2026-01-01 00:00:00.123456-08",
        "0001-01-01 00:00:00+00",
        "9999-12-31 23:59:59.999999+00",
        "2026-06-01 24:00:00+00",
        "2026-06-01",
        "2026-06-01 12:30:00",
    ],
)
@pytest.mark.parametrize("kind", ["timestamptz", "timestamp"])
def test_a_time_as_a_text_is_what_a_cast_makes_of_it(ask: Asking, text: str, kind: str) -> None:
    ask(f"create table if not exists moments_{kind} (id int primary key, at {kind})")
    ask(f"delete from moments_{kind}")
    ask("set timezone = 'Europe/Zurich'")
    ask(f"insert into moments_{kind} values ($1, $2)", 1, text, types=[None, pa.string()])
    ask(f"insert into moments_{kind} select 2, cast('{text}' as {kind})")
    found = ask.rows(f"select at from moments_{kind} order by id")
    assert found[0] == found[1]


UPPER, LOWER = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"


def test_a_uuid_has_one_spelling(ask: Asking) -> None:
    ask("create table ids (id uuid primary key, other uuid)")
    for number, given in enumerate((UPPER, LOWER, "{" + LOWER.replace("-", "") + "}")):
        for text in ("insert into ids values ($1, $1)", f"insert into ids select '{given}', '{given}'"):
            assert ask.tag(text, *([given] if "$" in text else [])) == "INSERT 0 1"
            assert ask.rows("select * from ids") == [(LOWER, LOWER)]
            assert ask.rows("select other from ids where id = $1", LOWER) == [(LOWER,)]
            assert ask.error("insert into ids values ($1, null)", given).sqlstate == "23505"
            assert ask.tag("update ids set other = $1", given) == "UPDATE 1"
            assert ask.rows("select * from ids") == [(LOWER, LOWER)]
            ask("delete from ids")
        assert ask.copy_in("copy ids from stdin", f"{given}\t{given}\n".encode()) == "COPY 1"
        assert ask.rows("select * from ids") == [(LOWER, LOWER)], number
        ask("delete from ids")


def test_a_text_that_is_no_uuid_is_refused(ask: Asking) -> None:
    ask("create table few (id bigint primary key, other uuid)")
    ask("insert into few values (1, null)")
    for text in (
        "insert into few values (2, 'nonsense')",
        "insert into few select 2, 'nonsense'",
        "insert into few values (1, 'nonsense') on conflict (id) do update set other = excluded.other",
        "update few set other = 'nonsense'",
        "merge into few using (select 1 as id) s on s.id = few.id when matched then update set other = 'nonsense'",
    ):
        assert ask.error(text).sqlstate == "22P02", text
    assert ask.rows("select * from few") == [(1, None)]


def test_no_number_becomes_infinite(ask: Asking) -> None:
    ask("create table numbers (r real, d double precision)")
    for values in ("(1e300, 1)", "(-1e300, 1)", "(1, 1e400)", "($1, 1)"):
        assert ask.error(f"insert into numbers values {values}", *([1e300] if "$" in values else [])).sqlstate == "22003", values
    ask("insert into numbers values ('Infinity', '-Infinity'), (1.5, 1e300)")
    ask("insert into numbers values ($1, $2)", float("inf"), float("-inf"))
    infinite = (float("inf"), float("-inf"))
    assert ask.rows("select * from numbers") == [infinite, (1.5, 1e300), infinite]


def test_the_limit_of_keys_of_a_statement(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_COPY_KEYS", 5)
    assert ask.error("insert into t (id) select range from range(6)").sqlstate == "54000"
    with pytest.raises(SqlError) as caught:
        ask.copy_in("copy t (id) from stdin", b"".join(b"%d\n" % number for number in range(6)))
    assert caught.value.sqlstate == "54000"
    assert ask.rows("select * from t") == []


def test_all_digits_of_a_number_are_kept(ask: Asking) -> None:
    ask("create table digits (whole numeric(38, 0), parts numeric(38, 10))")
    whole, parts = "9" * 38, "9" * 28 + "." + "9" * 10
    for sign in ("", "-"):
        ask(f"insert into digits values ({sign}{whole}, {sign}{parts})")
        ask(f"insert into digits select {sign}{whole}, {sign}{parts}")
        ask("insert into digits values ($1, $2)", Decimal(sign + whole), Decimal(sign + parts))
    found = [(Decimal(sign + whole), Decimal(sign + parts)) for sign in ("", "", "", "-", "-", "-")]
    assert ask.rows("select * from digits") == found
