"""SELECT over topics and without them: names, columns, parameters, errors."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from barnabas.sql.dialect import parse, statement_of
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.query import plan_query
from barnabas.sql.statements.select import HINTED_COLUMNS
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking


@pytest.fixture(scope="module", autouse=True)
def topics(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        producer.produce("orders", f"v{number}".encode(), key=f"k{number % 3}".encode(), partition=0)
        producer.produce("my.bytes", b"\xff" + bytes([number]), key=b"\xfe", partition=0)
    assert producer.flush(60) == 0


def test_a_topic_without_a_definition_shows_its_key_and_value(ask: Asking) -> None:
    answer = ask("select * from orders order by _offset")
    assert answer.names == ["key", "value"]
    assert answer.rows[0] == ("k0", "v0")
    assert answer.tag == "SELECT"
    assert ask.rows('select key, value from "my.bytes" order by _offset limit 1') == [(b"\xfe", b"\xff\x00")]
    assert ask.rows("select count(*) from my.bytes") == [(5,)]


def test_hidden_columns_are_there_for_those_who_name_them(ask: Asking) -> None:
    answer = ask("select *, _offset, _partition from orders where _offset > 2 order by _offset")
    assert answer.names == ["key", "value", "_offset", "_partition"]
    assert answer.rows == [("k0", "v3", 3, 0), ("k1", "v4", 4, 0)]
    assert ask("select o.*, p._offset from orders o join orders p using (key) limit 1").names == ["key", "value", "_offset"]
    assert ask.rows("select _key, _value from orders where _offset = 1") == [("k1", b"v1")]
    assert ask("select * from (select _offset, value from orders) x").names == ["_offset", "value"]


def test_arrays_that_a_value_is_compared_with(ask: Asking) -> None:
    assert ask.rows("select _offset from orders where _offset = any($1) order by 1", [1, 3]) == [(1,), (3,)]
    assert ask.rows("select _offset from orders where value <> all($1) order by 1", ["v0", "v1", "v2"]) == [(3,), (4,)]
    assert ask.rows("select _offset from orders where _offset = any('{1,7}')") == [(1,)]
    assert ask.session.prepare("select 1 from orders where _offset = some($1)").parameters == [pa.list_(pa.int64())]
    assert ask.rows("select 1 from orders where reverse(value) = any($1)", "{0v,x}") == [(1,)]
    assert ask.error("select 1 from orders where _offset = any('{1')").sqlstate == "22P02"


def test_names_are_found_as_in_postgres(ask: Asking) -> None:
    for name in ("orders", "public.orders", "barnabas.public.orders", '"orders"', "`orders`", "ORDERS"):
        assert ask.rows(f"select count(*) from {name}") == [(5,)]
    assert ask.rows("with orders as (select 1 as a) select * from orders") == [(1,)]
    assert ask.rows("with orders as (select * from orders) select count(*) from orders") == [(5,)]
    assert ask.rows("select count(*) from orders a join orders b on a._offset = b._offset") == [(5,)]
    assert ask.rows("select (select count(*) from orders)") == [(5,)]


def test_outputs_have_postgres_names(ask: Asking) -> None:
    outputs = "1, count(*), a::bigint, coalesce(a, 1), (select 2 as two), upper('x'), case when true then 1 end, now() is null"
    assert ask(f"select {outputs} from (select 1 as a) t group by a").names == [
        "?column?",
        "count",
        "a",
        "coalesce",
        "two",
        "upper",
        "case",
        "?column?",
    ]
    assert ask("values (1, 'a'), (2, 'b')").names == ["column1", "column2"]
    assert ask("select 1 as a, 2 as a").names == ["a", "a"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select 1 + 1", [(2,)]),
        ("select 7 / 2, 7 div 2, 7 % 2", [(3.5, 3, 1)]),
        ("select sum(x), count(*) filter (where x > 1) from (values (1), (2)) t(x)", [(3, 1)]),
        ("select (date '2020-01-31' + interval '1 month')::date", [(datetime.date(2020, 2, 29),)]),
        ("select '2020-01-01'::date", [(datetime.date(2020, 1, 1),)]),
        ("select E'a\\nb', $$it's$$, 'back\\slash'", [("a\nb", "it's", "back\\slash")]),
        ("select 1.5::numeric(10,2)", [(Decimal("1.50"),)]),
        ("select array[1, 2], (array[5, 6])[1]", [([1, 2], 5)]),
        ("select 'a' ilike 'A', 'abc' ~ 'b', 'abc' rlike 'x'", [(True, True, False)]),
        ("select nvl(null, 3), collect_list(x) from (values (1)) t(x)", [(3, [1])]),
        ("select * from generate_series(1, 3)", [(1,), (2,), (3,)]),
        ("select x from (values (1), (null)) t(x) order by x", [(None,), (1,)]),
        ("select x from (values (1), (null)) t(x) order by x desc", [(1,), (None,)]),
        ("table orders limit 0", []),
        ("select 1 union all select 2 order by 1", [(1,), (2,)]),
        ("select interval '1 day 02:00:00' = interval '26 hours'", [(True,)]),
        ("select a from (select 1 as a) t where a <=> 1", [(1,)]),
        ("select json_build_object('a', 1)", [('{"a":1}',)]),
        ("select current_user, current_database(), current_schema()", [("anonymous", "barnabas", "public")]),
        ("", []),
    ],
)
def test_expressions(ask: Asking, text: str, rows: list[object]) -> None:
    assert ask.rows(text) == rows


def test_postgres_rules_on_request(engine: SqlEngine) -> None:
    ask = asking(engine, sql_dialect="postgres")
    assert ask.rows("select 7 / 2, 7 / 2.0, -7 / 2, 7.5::float8 / 2") == [(3, 3.5, -3, 3.75)]
    assert ask.rows("select sum(x) / count(*) from (values (1), (2)) t(x)") == [(1,)]
    assert ask.rows("select x from (values (1), (null)) t(x) order by x") == [(1,), (None,)]
    assert ask.error("select 1 / 0").sqlstate == "22012"


@pytest.mark.parametrize(
    ("text", "state", "position", "hint"),
    [
        ("select * from order", "42P01", 15, "orders"),
        ("select nope from orders", "42703", 8, None),
        ("select a+ from orders", "42601", 11, None),
        ("selec 1", "42601", 1, "SELECT"),
        ("select * from orders where", "42601", 27, None),
        ("select 'abc", "42601", None, None),
        ("select 1 / 0", "22012", None, None),
        ("select 5 % 0", "22012", None, None),
        ("select 'x'::int", "22P02", None, None),
        ("select 'x'::date", "22007", None, None),
        ("select 3000000000::int", "22003", None, None),
        ("select nofn(1)", "42883", 8, None),
        ("select key from orders group by value", "42803", None, None),
        ("select key from orders a, orders b", "42702", None, None),
        ("select 'x'::nope", "42704", None, None),
        ("select (select * from (values (1), (2)) t(x))", "21000", None, None),
        ("revoke select on orders from x", "0A000", 1, "access control"),
        ("listen x", "0A000", 1, None),
        ("select 1 into t", "0A000", 15, "CREATE TABLE"),
        ("select * from '/etc/passwd'", "42P01", 15, None),
        ("select * from read_csv('/etc/passwd')", "42501", None, None),
        ("select * from read_text('/etc/passwd')", "42501", None, None),
        ("select * from read_blob('/etc/passwd')", "42501", None, None),
        ("select * from duckdb_settings()", "42883", None, None),
        ("select * from pragma_version()", "42883", None, None),
        ("select * from query('select 1')", "42883", None, None),
        ("attach '/tmp/x'", "0A000", 1, None),
        ("install httpfs", "0A000", 1, None),
        ("copy orders to '/tmp/x'", "0A000", 16, "STDOUT"),
        ("select 1; select 2", "42601", 11, None),
        ("execute nothing", "26000", 9, None),
    ],
)
def test_errors_have_a_state_and_a_place(ask: Asking, text: str, state: str, position: int | None, hint: str | None) -> None:
    error = ask.error(text)
    assert (error.sqlstate, error.position) == (state, position), error.message
    assert hint is None or hint in (error.hint or "")
    assert ask.rows("select 1") == [(1,)]


def test_parameters_get_the_types_of_their_places(ask: Asking) -> None:
    def types(text: str) -> list[str]:
        return [str(each) for each in ask.session.prepare(text).parameters]

    assert types("select * from orders where key = $1 and _offset >= $2 and _partition in ($3, 4) limit $4") == [
        "string", "int64", "int32", "int64",
    ]  # fmt: skip
    assert types("select $1::date, $2 + 1, $3") == ["date32[day]", "int32", "null"]
    assert types("select key like $1, $2 between _offset and 5, case when $3 then 1 end from orders") == [
        "string",
        "int64",
        "bool",
    ]
    assert [str(each) for each in ask.session.prepare("select $1", [pa.int64()]).parameters] == ["int64"]


def test_values_of_parameters(ask: Asking) -> None:
    assert ask.rows("select value from orders where key = $1 and _offset > $2", "k1", 1) == [("v4",)]
    assert ask.rows("select $1, $2::int + 1, $1", "it's", "41") == [("it's", 42, "it's")]
    assert ask.rows("select * from generate_series(1, $1)", 2) == [(1,), (2,)]
    assert ask.rows("select $2, $1", "a", None) == [(None, "a")]
    assert ask("select $1 + $2", 1, 2, types=[pa.int64(), pa.int64()]).rows == [(3,)]
    assert ask.error("select $1").sqlstate == "08P01"
    assert ask.error("select $1::int", "x").sqlstate == "22P02"
    assert ask.error("select $1", "a\x00").sqlstate == "22023"


def test_a_text_is_split_into_statements(ask: Asking) -> None:
    found = ask.session.statements("select 1; -- one; two\n/* ; */ select ';' , $$;$$ ;; ")
    assert found == ["select 1", "select ';' , $$;$$"]
    with pytest.raises(SqlError):
        ask.session.statements("select 'open")


def test_types_of_results(ask: Asking) -> None:
    schema = ask.session.prepare("select 1, 1::bigint, sum(1), 1.5, 'x', null, true, now(), '{}'::json, gen_random_uuid()").schema
    assert schema is not None
    assert [str(each) for each in schema.types] == [
        "int32", "int64", "int64", "decimal128(2, 1)", "string", "string", "bool", "timestamp[us, tz=UTC]", "string", "string",
    ]  # fmt: skip
    marks = [(each.metadata or {}).get(b"barnabas.type") for each in schema]
    assert marks[-2:] == [b"json", b"uuid"]
    assert ask.error("select sum(x) from (values (9223372036854775807), (1)) t(x)").sqlstate == "22003"


@pytest.mark.parametrize("options", ["", " with (mode = 'drop')"])
def test_a_count_of_all_rows_decodes_none(engine: SqlEngine, ask: Asking, options: str) -> None:
    ask("drop table if exists counted")
    ask(f"create table counted (a bigint, b text, _hidden int){options}")
    assert ask.rows("select count(*) from counted") == [(0,)]
    ask("insert into counted select range, 'x' from range(700)")
    assert ask.rows("select count(*) from counted") == [(700,)]
    assert ask.rows("select count(*) as n, 1 as one from counted c") == [(700, 1)]
    assert ask.rows("select count(*) from (select * from counted) s") == [(700,)]
    assert ask.rows("select count(*) from counted x, counted y where x.a = y.a") == [(700,)]
    assert ask.rows("select count(*) from counted natural join counted y") == [(0,)], "_hidden is null"
    assert ask.rows("select count(*) filter (where a < 10), count(b) from counted") == [(10, 700)]
    assert ask.rows("select exists (select 1 from counted)") == [(True,)]
    assert len(ask.rows("select 1 from counted")) == 700
    ask("begin")
    ask("insert into counted (a) values (1)")
    assert ask.rows("select count(*) from counted") == [(701,)]
    ask("rollback")
    plan = plan_query(parse(statement_of("select count(*) from counted")), ask.session.find, {}, lambda _: None)
    assert plan.inputs[0].schema.names == ["_offset"]


def test_hints_about_columns(ask: Asking) -> None:
    ask("create table hinted (id int, price double, at timestamptz)")
    assert ask.error("select prise from hinted").hint == 'perhaps you mean "price"'
    assert ask.error("select * from hinted where price > 1 and id = nothing").hint == "there are id, price, at"
    assert (
        ask.error('select * from hinted where id = "some text"').hint == "double quotes are for names; a text has single quotes"
    )
    assert ask.error('select "text"').hint == "double quotes are for names; a text has single quotes"
    wide = ", ".join(f"c{number} int" for number in range(HINTED_COLUMNS + 1))
    ask(f"create table hinted_wide ({wide})")
    hint = ask.error("select nothing from hinted_wide").hint or ""
    assert hint.startswith("there are c0, c1, ")
    assert hint.endswith("c11, …")


@pytest.mark.parametrize(("text", "state", "hint"), [
    ("set", "42601", "SHOW ALL"),
    ("cache table a", "0A000", "in memory"),
    ("uncache table a", "0A000", "leave it out"),
    ("refresh table a", "0A000", "newest"),
])  # fmt: skip
def test_what_spark_has_beside_queries_gets_a_hint(ask: Asking, text: str, state: str, hint: str) -> None:
    error = ask.error(text)
    assert error.sqlstate == state
    assert error.hint is not None
    assert hint in error.hint


def test_faults_have_words_that_users_of_postgres_know(ask: Asking) -> None:
    ask("create table worded (id int, document json)")
    ask("insert into worded values (1, '{}')")
    for text, state, message in (
        ("select * from worded where id = 'abc'", "22P02", 'invalid input syntax for type integer: "abc"'),
        ("select 'x'::boolean", "22P02", 'invalid input syntax for type boolean: "x"'),
        ("select 'x'::double precision", "22P02", 'invalid input syntax for type double precision: "x"'),
        ("insert into worded values ('b')", "22P02", 'invalid input syntax for type integer: "b"'),
        ("select other.id from worded w", "42P01", 'missing FROM-clause entry for table "other"'),
    ):
        error = ask.error(text)
        assert (error.sqlstate, error.message) == (state, message)
    error = ask.error("select document.a from worded")
    assert (error.position, error.hint) == (8, "a part of JSON is document->>'name'")
    assert ask.error("set nothing = 1").hint == "SHOW ALL lists them"


def test_a_topic_without_a_definition_is_not_dropped(ask: Asking) -> None:
    assert ask.error("drop table orders").hint == "`barnabas topic delete orders` deletes the topic"
    assert ask.rows("select count(*) from orders") == [(5,)]


def test_literals_beside_small_integers_are_integers_as_in_postgres(ask: Asking) -> None:
    ask("create temp table small (a smallint, b smallint, c bigint)")
    ask("insert into small values (2, 3, 5)")
    assert ask.rows("select a * 20000, 30000 * (a + b), -a * 20000, c * 20000, a - 32769 from small") == [
        (40_000, 150_000, -40_000, 100_000, -32_767)
    ]
    assert ask.rows("select x.a * 20000 from small x where x.a * 20000 = 40000") == [(40_000,)]
    assert ask("select $1 * 20000", 2, types=[pa.int16()]).rows == [(40_000,)]
    assert ask("select a * 2 as n from small").names == ["n"]
    assert ask.error("select (a * 1000)::smallint * b * 30::smallint from small").sqlstate == "22003"
