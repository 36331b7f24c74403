"""`SET engine = spark`: the same rows as DuckDB gives, and clear errors."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from decimal import Decimal

import pytest

from barnabas import limits
from barnabas.engine import spark_queries
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller, SqlError
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, engine_of
from tests.sql.engine.named_rows import Rows
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(400)  # Spark starts, on a machine that may be busy
QUERIES = (
    "select * from orders order by id",
    "select customer, count(*) as n, sum(amount) as total from orders group by customer order by customer",
    "select o.id, c.name from orders o join customers c on o.customer = c.id order by 1",
    "select id, rank() over (partition by customer order by amount desc) as place from orders order by id",
    "with large as (select * from orders where amount > 2.5) select count(*) as n from large",
    "select _partition, count(*) as n from orders group by _partition order by 1",
    "select id, payload from notes where id < 3 order by id",
)


@pytest.fixture(scope="module")
def engine() -> Iterator[SqlEngine]:
    with Broker() as broker:
        made = engine_of(broker, registry=broker.schema_registry_url)
        yield made
        made.close()


@pytest.fixture(scope="module")
def on_spark(engine: SqlEngine) -> Iterator[Asking]:
    session = Asking(engine.session(Caller()))
    session("create table customers (id int primary key, name text)")
    session("create table orders (id int primary key, customer int, amount decimal(10,2), at timestamptz) with (partitions = 2)")
    session("create table notes (id int, payload json)")
    session("insert into customers values (1, 'ann'), (2, 'bob')")
    session(
        "insert into orders values (1, 1, 2.5, '2026-01-01 10:00:00+00'), (2, 1, 3, null), (3, 2, 7.25, null), (4, 9, 1, null)"
    )
    session("update orders set amount = 9 where id = 3")
    session("delete from orders where id = 4")
    session("""insert into notes values (1, '{"a": 1}')""")
    session("set engine = spark")
    yield session
    session.session.close()


@pytest.mark.parametrize("query", QUERIES)
def test_the_rows_are_those_of_duckdb(engine: SqlEngine, on_spark: Asking, query: str) -> None:
    other = Asking(engine.session(Caller()))
    assert on_spark(query) == other(query)
    other.session.close()


def test_a_session_reads_what_it_wrote(on_spark: Asking) -> None:
    on_spark("insert into notes values (3, null)")
    assert on_spark.rows("select count(*) as n from notes where id = 3") == [(1,)]


def test_sparks_error_is_the_statements(on_spark: Asking) -> None:
    assert "nothing" in on_spark.error("select nothing from orders").message
    assert on_spark.error("select * from nowhere").sqlstate == "42P01"
    assert on_spark.rows("select count(*) from customers") == [(2,)]


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("select id from orders where id = $1 or customer = $2 order by id limit $3", (3, 1, 2)),
        ("select id, $1 as given from orders where amount > $2 order by id", ("it's \\ 'quoted' :p1", Decimal("2.6"))),
        ("select id from orders where at = $1", (datetime.datetime(2026, 1, 1, 10, tzinfo=datetime.UTC),)),
        ("select count(*) as n from orders where id = any($1)", ([1, 3],)),
        ("select id from customers where name = $1 or $2", ("bob", False)),
        ("select id, $1::bytea as b from customers where id = $2", (b"\x00z", 1)),
        ("select id, coalesce($1, name) as n from customers order by id", (None,)),
    ],
)  # fmt: skip
def test_parameters(engine: SqlEngine, on_spark: Asking, query: str, values: tuple[object, ...]) -> None:
    other = Asking(engine.session(Caller()))
    assert on_spark.rows(query, *values) == other.rows(query, *values)
    other.session.close()


def test_the_time_zone_of_the_session_counts(engine: SqlEngine, on_spark: Asking) -> None:
    other = Asking(engine.session(Caller()))
    query = "select id, at, cast(at as date) as d, date_trunc('day', at) as t, hour(at) as h from orders where id = 1"
    for zone in ("'Asia/Kolkata'", "-9.5", "'UTC'"):
        on_spark(f"set time zone {zone}")
        other(f"set time zone {zone}")
        assert on_spark.rows(query) == other.rows(query)
    other.session.close()


def test_a_prepared_query_runs_with_other_values(on_spark: Asking) -> None:
    prepared = on_spark.session.prepare("select name from customers where id = $1")
    found = []
    for number in (1, 2, 7):
        result = on_spark.session.execute(prepared, [number])
        found.append([row for batch in result.batches() for row in batch.column(0).to_pylist()])
        result.close()
    assert found == [["ann"], ["bob"], []]
    assert on_spark.error("select name from customers where id = $1").sqlstate == "08P01"


@pytest.mark.parametrize("format_name", ["avro", "json_schema", "protobuf"])
def test_tables_with_registered_schemas(engine: SqlEngine, on_spark: Asking, format_name: str) -> None:
    on_spark(f"create table typed (id int primary key, n bigint, t text) with (format = '{format_name}')")
    on_spark("insert into typed values (1, 10, 'x'), (2, 20, null)")
    on_spark("update typed set n = 11 where id = 1")
    assert on_spark.rows("select id, n, t from typed order by id") == [(1, 11, "x"), (2, 20, None)]
    on_spark("create table of_topic with (topic = 'typed', format = '" + format_name + "')")
    assert on_spark.rows("select sum(n) as s from of_topic") == [(41,)]
    on_spark("drop table of_topic, typed")


def test_rows_with_names(engine: SqlEngine, on_spark: Asking) -> None:
    other = Asking(engine.session(Caller()))
    rows = Rows(other, "named", seed=7)
    for _ in range(30):
        rows.step()
    rows.check(on_spark)
    rows.check_stream(on_spark)
    columns = "select _row, _partition, _offset, _key, n, s from"
    for source in ("named", "stream named"):
        assert on_spark.rows(f"{columns} {source} order by _row, n") == other.rows(f"{columns} {source} order by _row, n")
    other.session.close()


def test_functions_in_sql_run_on_spark(on_spark: Asking) -> None:
    on_spark("create function doubled(a bigint) returns bigint language sql as $$ select a * 2 $$")
    assert on_spark.rows("select id, doubled(customer) as d from orders where doubled(id) > 2 order by id") == [(2, 2), (3, 4)]
    on_spark("create function in_python(a bigint) returns bigint language python as $$ return a $$")
    assert on_spark.error("select in_python(id) from orders").sqlstate == "0A000"
    on_spark("drop function doubled, in_python")


def test_the_catalogue_stays_with_duckdb(on_spark: Asking) -> None:
    assert on_spark.rows("select relname from pg_class where relname = 'orders'") == [("orders",)]


def test_a_query_can_be_cancelled(engine: SqlEngine, on_spark: Asking) -> None:
    caught: list[SqlError] = []

    def run() -> None:
        try:
            on_spark("select count(*) from orders a, orders b, orders c, range(1000000) d, range(1000000) e")
        except SqlError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    assert on_spark.rows("select count(*) from customers") == [(2,)]  # Spark has started
    thread.start()
    wait_until(lambda: on_spark.session.running._interruptions[1:], "it did not begin")
    on_spark.session.cancel()
    thread.join()
    assert [each.sqlstate for each in caught] == ["57014"]
    assert on_spark.rows("select count(*) from customers") == [(2,)]


def test_few_sessions_have_a_spark(engine: SqlEngine, on_spark: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_spark.rows("select count(*) as n from customers") == [(2,)]
    taken = 0
    while engine.shared.spark_places.acquire(blocking=False):
        taken += 1
    assert taken == limits.MAX_SQL_SPARK_SESSIONS - 1
    other = Asking(engine.session(Caller()))
    other("set engine = spark")
    assert other.error("select * from orders").sqlstate == "53300"
    other.session.close()
    for _ in range(taken):
        engine.shared.spark_places.release()


def test_a_process_that_ends_is_an_error_and_the_next_query_starts_another(on_spark: Asking) -> None:
    assert on_spark.rows("select count(*) as n from customers") == [(2,)]
    process = on_spark.session.spark_queries()._process
    assert process is not None
    process.kill()
    process.wait()
    assert on_spark.rows("select count(*) from customers") == [(2,)]
    assert spark_queries.SparkQueryError("it ended").sqlstate is None


def test_the_default_of_an_added_column(engine: SqlEngine) -> None:
    session = Asking(engine.session(Caller()))
    session("create table older (id int primary key, k varchar(3))")
    session("insert into older values (1, 'a')")
    session("alter table older add column n int default 5")
    session("insert into older values (2, 'b', null)")
    session("set engine = spark")
    assert session.rows("select * from older order by id") == [(1, "a", 5), (2, "b", None)]
    session("drop table older")
    session.session.close()
