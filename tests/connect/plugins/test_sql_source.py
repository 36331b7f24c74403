"""Rows of databases become records, poll by poll."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
import pytest

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.sql_source.times import with_times
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
from tests.connect.plugins.captures import reason_of, with_config
from tests.connect.plugins.targets import Target
from tests.connect.runtime.tasks import JSON, Tasks
from tests.waiting import wait_until


class Reading:
    """A source of one table."""

    def __init__(self, tasks: Tasks, database: Target) -> None:
        self.tasks, self.database = tasks, database
        self.table = f"t{crc32(tasks.topic.encode())}"

    def run(self, statement: str) -> None:
        self.database.run(statement.format(t=self.table))

    def job(self, **config: str) -> Job:
        given = {"topic.prefix": "p-", "poll.interval.ms": "100", "table.whitelist": self.table, "batch.max.rows": "2"}
        given |= {key.replace("_", "."): value for key, value in config.items()} | self.database.config
        given = {key: value for key, value in given.items() if value}
        return self.tasks.job("JdbcSourceConnector", "source", given, JSON)

    def values(self, topic: str | None = None) -> list[Any]:
        found = records_of(self.tasks._client, topic or f"p-{self.table}")
        return [msgspec.json.decode(each.value or b"null") for each in found]

    def take(self, job: Job, count: int, topic: str | None = None) -> list[Any]:
        with self.tasks.running(job) as task:
            self.tasks.until(lambda: len(self.values(topic)) >= count, task, "the rows did not come")
        return self.values(topic)


@pytest.fixture
def reading(tasks: Tasks, database: Target) -> Reading:
    return Reading(tasks, database)


def test_rows_with_greater_numbers_are_read(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, v VARCHAR(10))")
    reading.run("INSERT INTO {t} VALUES (1, 'a'), (2, NULL), (5, 'c')")
    job = reading.job(mode="incrementing", incrementing_column_name="id")
    assert reading.take(job, 3) == [{"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 5, "v": "c"}]
    reading.run("INSERT INTO {t} VALUES (4, 'x'), (6, 'd')")
    assert reading.take(job, 4)[3:] == [{"id": 6, "v": "d"}]


def test_the_schema_has_the_name_of_the_table_and_says_what_is_never_null(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, v VARCHAR(10) NOT NULL, w VARCHAR(10))")
    reading.run("INSERT INTO {t} VALUES (1, 'a', 'b')")
    job = reading.job(mode="incrementing", incrementing_column_name="id")
    job = with_config(job, {"value.converter": JSON["value.converter"], "value.converter.schemas.enable": "true"})
    [record] = reading.take(job, 1)
    schema = record["schema"]
    assert (schema["name"], schema.get("version"), schema["optional"]) == (reading.table, None, False)
    optional = {each["field"]: each["optional"] for each in schema["fields"]}
    assert (optional["v"], optional["w"]) == (False, True)
    assert record["payload"] == {"id": 1, "v": "a", "w": "b"}


def test_changed_rows_are_read_by_their_time(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, moment TIMESTAMP)")
    reading.run("INSERT INTO {t} VALUES (1, '2020-01-01 00:00:00'), (2, '2020-01-01 00:00:00'), (3, '2020-01-01 00:00:00')")
    reading.run("INSERT INTO {t} VALUES (4, '2020-01-01 00:00:01'), (9, '2999-01-01 00:00:00')".replace("2999", "2037"))
    job = reading.job(mode="timestamp", timestamp_column_name="moment")
    assert [each["id"] for each in reading.take(job, 4)] == [1, 2, 3, 4]
    reading.run("UPDATE {t} SET moment = '2020-01-01 00:00:02' WHERE id = 2")
    assert [each["id"] for each in reading.take(job, 5)] == [1, 2, 3, 4, 2]


def test_changes_are_read_by_time_and_number(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, moment TIMESTAMP)")
    reading.run("INSERT INTO {t} VALUES (2, '2020-01-01 00:00:00'), (3, '2020-01-01 00:00:00')")
    job = reading.job(mode="timestamp+incrementing", timestamp_column_name="moment", incrementing_column_name="id")
    reading.take(job, 2)
    reading.run("INSERT INTO {t} VALUES (1, '2020-01-01 00:00:00'), (4, '2020-01-01 00:00:00'), (5, '2020-01-01 00:00:01')")
    assert [each["id"] for each in reading.take(job, 4)] == [2, 3, 4, 5]


def test_all_rows_are_read_in_bulk(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER)")
    reading.run("INSERT INTO {t} VALUES (1), (2), (3)")
    found = reading.take(reading.job(mode="bulk"), 6)
    assert len(found) % 3 == 0
    assert [each["id"] for each in found[:6]] == [1, 2, 3, 1, 2, 3]


def test_a_query_is_read(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER, v DECIMAL(10,2))")
    reading.run("INSERT INTO {t} VALUES (1, 1.5), (2, 2.5)")
    query = f"SELECT id + 10 AS n FROM {reading.table} WHERE v > 2"
    job = reading.job(
        mode="incrementing", incrementing_column_name="n", query=query, table_whitelist="", topic_prefix=reading.table
    )
    assert reading.take(job, 1, reading.table) == [{"n": 12}]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"mode": "incrementing", "incrementing_column_name": "nix"}, "no such column: nix"),
        ({"mode": "bulk", "table_whitelist": "nix"}, "no such table: nix"),
    ],
)
def test_a_config_that_does_not_fit_the_tables_fails_the_task(reading: Reading, config: dict[str, str], error: str) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER)")
    reading.run("INSERT INTO {t} VALUES (1)")
    task = reading.tasks.start(reading.job(**config, quote_sql_identifiers="never"))
    wait_until(task.failure, "it did not fail")
    assert error in str(task.failure())


def test_a_query_may_have_percent_signs_and_a_suffix(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, v VARCHAR(10))")
    reading.run("INSERT INTO {t} VALUES (1, 'ab'), (2, 'b'), (3, 'ac'), (4, 'ad')")
    query = f"SELECT * FROM {reading.table} WHERE v LIKE 'a%'"
    given = reading.job(
        mode="incrementing", incrementing_column_name="id", table_whitelist="", query=query, query_suffix="LIMIT 1",
        topic_prefix=reading.tasks.topic,
    )  # fmt: skip
    assert [each["id"] for each in reading.take(given, 3, reading.tasks.topic)] == [1, 3, 4]


def test_rows_from_a_time_on(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, moment TIMESTAMP)")
    reading.run("INSERT INTO {t} VALUES (1, '2020-01-01 00:00:00'), (2, '2020-01-02 00:00:00'), (3, '2020-01-03 00:00:00')")
    job = reading.job(
        mode="timestamp", timestamp_column_name="moment", timestamp_initial="1577923200000"
    )  # the second of January
    assert [each["id"] for each in reading.take(job, 1)] == [3]


def test_rows_without_a_number_are_left_out(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER, v VARCHAR(10))")
    reading.run("INSERT INTO {t} VALUES (NULL, 'x'), (1, 'a')")
    job = reading.job(mode="incrementing", incrementing_column_name="id", validate_non_null="false")
    assert reading.take(job, 1) == [{"id": 1, "v": "a"}]


def test_a_row_without_a_number_ends_the_task(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (id INTEGER, v VARCHAR(10))")
    reading.run("INSERT INTO {t} VALUES (NULL, 'x')")
    with reading.tasks.running(reading.job(mode="incrementing", incrementing_column_name="id")) as task:
        wait_until(lambda: task.failure() is not None, "a null was read")
        assert task.failure() == "the incrementing column id of a row is null"


def test_exact_numbers_become_plain_ones(reading: Reading) -> None:
    if reading.database.url.startswith("jdbc:sqlite"):
        pytest.skip("SQLite has no exact numbers")
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, n DECIMAL(8,0), d DECIMAL(8,2), large DECIMAL(30,2))")
    reading.run("INSERT INTO {t} VALUES (1, 5, 1.25, 2.5)")
    common = {"mode": "incrementing", "incrementing_column_name": "id"}
    best = reading.job(**common, numeric_mapping="best_fit", topic_prefix="best-")
    [row] = reading.take(best, 1, f"best-{reading.table}")
    assert (row["n"], row["d"]) == (5, 1.25)
    assert isinstance(row["large"], str)  # bytes of a decimal, in base64


def test_every_table_is_read_also_one_that_is_added(reading: Reading) -> None:
    more = {"mode": "incrementing", "incrementing_column_name": "id", "table_whitelist": "", "table_poll_interval_ms": "100"}
    job = reading.job(**more, table_include_list=f".*{reading.table}_.*", table_exclude_list=".*_c")
    reading.run("CREATE TABLE {t}_a (id INTEGER PRIMARY KEY)")
    reading.run("CREATE TABLE {t}_c (id INTEGER PRIMARY KEY)")
    for each in ("a", "c"):
        reading.run(f"INSERT INTO {{t}}_{each} VALUES (1)")
    with reading.tasks.running(job) as task:
        reading.tasks.until(lambda: reading.values(f"p-{reading.table}_a"), task, "the first table is not read")
        reading.run("CREATE TABLE {t}_b (id INTEGER PRIMARY KEY)")
        reading.run("INSERT INTO {t}_b VALUES (1)")
        reading.tasks.until(lambda: reading.values(f"p-{reading.table}_b"), task, "the table that was added is not read")
    assert not reading.values(f"p-{reading.table}_c")


def test_views_are_tables_too(reading: Reading) -> None:
    reading.run("CREATE TABLE {t}_x (id INTEGER PRIMARY KEY)")
    reading.run("INSERT INTO {t}_x VALUES (1)")
    reading.run("CREATE VIEW {t}_v AS SELECT id FROM {t}_x")
    job = reading.job(mode="bulk", table_whitelist="", table_types="VIEW", table_include_list=f".*{reading.table}_.*")
    assert reading.take(job, 1, f"p-{reading.table}_v")[0] == {"id": 1}
    assert not reading.values(f"p-{reading.table}_x")


def test_tables_are_found_in_other_schemas(reading: Reading) -> None:
    if not reading.database.url.startswith("jdbc:postgresql"):
        pytest.skip("schemas as PostgreSQL has them")
    reading.run("CREATE SCHEMA {t}")
    reading.run("CREATE TABLE {t}.orders (id INTEGER PRIMARY KEY)")
    reading.run("INSERT INTO {t}.orders VALUES (7)")
    job = reading.job(
        mode="incrementing", incrementing_column_name="id", table_whitelist="", schema_pattern=f"{reading.table}%",
        transaction_isolation_mode="REPEATABLE_READ", topic_prefix=f"{reading.table}-",
    )  # fmt: skip
    assert reading.take(job, 1, f"{reading.table}-orders") == [{"id": 7}]


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_password_that_changes(tasks: Tasks, request: pytest.FixtureRequest, kind: str) -> None:
    """The task fails, says why, and goes on with the new one."""
    server = request.getfixturevalue(kind)
    reading = Reading(tasks, Target(server.url, server.admin))
    user = f"u{reading.table}"
    server.create_user(user, "one")
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY)")
    reading.run("INSERT INTO {t} VALUES (1)")

    def job(password: str) -> Job:
        made = reading.job(mode="incrementing", incrementing_column_name="id")
        return with_config(made, {"connection.user": user, "connection.password": password})

    with tasks.running(job("one")) as task:
        tasks.until(lambda: len(reading.values()) == 1, task, "the row did not come")
        server.change_password(user, "two")
        server.end_connections(user)
        reason_of(task)
    with tasks.running(job("one")) as task:
        assert user in reason_of(task)
    reading.run("INSERT INTO {t} VALUES (2)")
    assert reading.take(job("two"), 2) == [{"id": 1}, {"id": 2}]


def test_the_number_that_a_database_counts_up_is_found(reading: Reading) -> None:
    kind = {"postgresql": "SERIAL PRIMARY KEY", "mariadb": "INTEGER PRIMARY KEY AUTO_INCREMENT", "sqlite": "INTEGER PRIMARY KEY"}
    word = reading.database.url.split(":")[1]
    if word == "duckdb":
        reading.run("CREATE SEQUENCE {t}_numbers")
    default = f"INTEGER DEFAULT nextval('{reading.table}_numbers')"
    reading.run(f"CREATE TABLE {{t}} (v VARCHAR(10), number {kind.get(word, default)})")
    reading.run("INSERT INTO {t} (v) VALUES ('a'), ('b')")
    assert reading.take(reading.job(mode="incrementing"), 2) == [{"v": "a", "number": 1}, {"v": "b", "number": 2}]


def test_a_table_without_such_a_number_ends_the_task(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (v VARCHAR(10))")
    with reading.tasks.running(reading.job(mode="incrementing")) as task:
        wait_until(lambda: task.failure() is not None, "the task does not fail")
    assert "has no column that counts up by itself" in str(task.failure())


def test_columns_by_tables(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (a INTEGER, b TIMESTAMP, c TIMESTAMP NULL)")
    reading.run("INSERT INTO {t} VALUES (1, '2020-01-01 00:00:00', NULL), (2, '2020-01-01 00:00:00', '2020-01-01 00:00:01')")
    mapped = {
        "incrementing.column.mapping": r"other:x,.*t\p{Digit}+ : a",
        "timestamp.columns.mapping": f"{reading.table}:[c|b],other:[y]",
    }
    job = reading.job(mode="timestamp+incrementing", **mapped)
    assert [each["a"] for each in reading.take(job, 2)] == [1, 2]
    reading.run("INSERT INTO {t} VALUES (3, '2020-01-01 00:00:01', NULL)")
    assert [each["a"] for each in reading.take(job, 3)] == [1, 2, 3]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_zero_date_is_null_and_its_column_keeps_its_type(reading: Reading, zone: str) -> None:
    if not reading.database.url.startswith("jdbc:mariadb"):
        pytest.skip("no other database has zero dates")
    reading.run("CREATE TABLE {t} (id INTEGER PRIMARY KEY, d DATE, t DATETIME(6), v VARCHAR(10))")
    reading.run("SET STATEMENT sql_mode = '' FOR INSERT INTO {t} VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00')")
    reading.run("INSERT INTO {t} VALUES (2, '2020-01-02', '2020-01-02 00:00:01', 'x')")
    job = reading.job(mode="incrementing", incrementing_column_name="id", db_timezone=zone)
    at = 1577923201000 if zone == "UTC" else 1577919601000
    assert reading.take(job, 2) == [
        {"id": 1, "d": None, "t": None, "v": "0000-00-00"},
        {"id": 2, "d": 18263, "t": at, "v": "x"},
    ]


def test_a_table_that_no_mapping_names_ends_the_task(reading: Reading) -> None:
    reading.run("CREATE TABLE {t} (a INTEGER)")
    with reading.tasks.running(reading.job(mode="incrementing", **{"incrementing.column.mapping": "x:a"})) as task:
        wait_until(lambda: task.failure() is not None, "the task does not fail")
    assert "fits to 0 entries of incrementing.column.mapping" in str(task.failure())


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("micros_long", 1_709_168_523_000_004),
        ("nanos_string", "1709168523000004000"),
        ("nanos_iso_datetime_string", "2024-02-29T01:02:03.000004000"),
        ("micros_iso_datetime_string", "2024-02-29T01:02:03.000004"),
    ],
)
def test_times_have_the_wanted_form(granularity: str, expected: str | int) -> None:
    rows = pa.table({"id": [1, 2], "at": pa.array([1_709_168_523_000_004, None], pa.timestamp("us", "UTC"))})
    assert with_times(rows, granularity).to_pylist() == [{"id": 1, "at": expected}, {"id": 2, "at": None}]


def test_a_time_beyond_nanoseconds_is_an_error() -> None:
    with pytest.raises(ConnectError, match="a time in the column at does not fit to nanos_long"):
        with_times(pa.table({"at": pa.array([2**62], pa.timestamp("us", "UTC"))}), "nanos_long")
