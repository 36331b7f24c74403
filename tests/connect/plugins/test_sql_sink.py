"""Records into tables of databases."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
import pytest

from barnabas.connect.api import Identity
from barnabas.connect.converters.json_schema import LOGICAL
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.databases.address import address_of
from barnabas.connect.plugins.databases.kinds import connected
from barnabas.connect.plugins.databases.table_name import table_name
from barnabas.connect.plugins.sql_sink.offsets_table import OffsetsTable
from barnabas.connect.plugins.sql_sink.sink import SqlSink
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import ConnectorWork, Job
from tests.connect.plugins.captures import reason_of, with_config
from tests.connect.plugins.targets import Target
from tests.connect.runtime.tasks import JSON, Tasks
from tests.connect.runtime.test_kills import Died
from tests.waiting import wait_until

UPSERT = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id", "delete.enabled": "true", "auto.create": "true"}


class Sinking:
    """A sink of one topic into one table."""

    def __init__(self, tasks: Tasks, database: Target) -> None:
        self.tasks, self.database = tasks, database
        self.table = f"rows_{crc32(tasks.topic.encode())}"
        tasks.create_topic()

    def job(self, **config: str) -> Job:
        given = {key.replace("_", "."): value for key, value in config.items()}
        return self.tasks.job(
            "JdbcSinkConnector", "sink",
            {"topics": self.tasks.topic, "table.name.format": self.table, **self.database.config, **given}, JSON,
        )  # fmt: skip

    def put(self, value: Any, key: Any = None) -> None:
        text = None if key is None else msgspec.json.encode(key).decode()
        self.tasks.produce(None if value is None else msgspec.json.encode(value), key=text)

    def rows(self, columns: str = "*", order: str = "1") -> list[tuple[Any, ...]]:
        quote = "`" if "mysql" in self.database.url or "mariadb" in self.database.url else '"'
        return self.database.run(f"SELECT {columns} FROM {quote}{self.table}{quote} ORDER BY {order}")

    def run_statement(self, statement: str) -> None:
        self.database.run(statement.format(t=self.table))

    def drain(self, job: Job, count: int) -> None:
        """Run the task until it has committed so many records."""
        with self.tasks.running(job) as task:
            self.tasks.until(lambda: self.tasks.committed() == {0: (count, "")}, task, "not all records were taken")


def parsed(job: Job) -> dict[str, Any]:
    """The config as the sink gets it."""
    assert isinstance(job.work, ConnectorWork)
    return {**job.work.config, **SqlSink.config.parse(job.work.config)}


@pytest.fixture
def sinking(tasks: Tasks, database: Target) -> Sinking:
    return Sinking(tasks, database)


def given(config: Mapping[str, str]) -> dict[str, str]:
    return {key.replace(".", "_"): value for key, value in config.items()}


def test_records_become_rows_of_a_table_that_is_created(sinking: Sinking) -> None:
    sinking.put({"id": 1, "name": "a'\"\\,\n", "price": 1.5, "ok": True})
    sinking.put({"id": 2, "name": "", "price": None, "ok": False})
    sinking.put({"id": 3, "name": None, "price": 2.0, "ok": None})
    sinking.drain(sinking.job(auto_create="true"), 3)
    assert sinking.rows("id, name, price, ok") == [(1, "a'\"\\,\n", 1.5, True), (2, "", None, False), (3, None, 2.0, None)]


def test_upserts_and_tombstones_leave_the_last_value_of_each_key(sinking: Sinking) -> None:
    for key, value in [(1, "a"), (2, "b"), (1, "c"), (3, "d"), (2, None), (4, "e"), (4, None), (4, "f")]:
        sinking.put(None if value is None else {"v": value}, key)
    sinking.drain(sinking.job(**given(UPSERT)), 8)
    assert sinking.rows() == [(1, "c"), (3, "d"), (4, "f")]
    sinking.put({"v": "g"}, 1)
    sinking.put(None, 3)
    sinking.drain(sinking.job(**given(UPSERT)), 10)
    assert sinking.rows() == [(1, "g"), (4, "f")]


def test_columns_are_added(sinking: Sinking) -> None:
    sinking.put({"id": 1})
    job = sinking.job(auto_create="true", auto_evolve="true", pk_mode="record_value", pk_fields="id", insert_mode="upsert")
    sinking.drain(job, 1)
    sinking.put({"id": 2, "more": "x"})
    sinking.drain(job, 2)
    assert sinking.rows("id, more") == [(1, None), (2, "x")]


def test_updates_change_the_rows_that_are_there(sinking: Sinking) -> None:
    sinking.put({"id": 1, "v": "a"})
    sinking.drain(sinking.job(auto_create="true", pk_mode="record_value", pk_fields="id"), 1)
    sinking.put({"id": 1, "v": "b"})
    sinking.put({"id": 2, "v": "c"})
    sinking.drain(sinking.job(pk_mode="record_value", pk_fields="id", insert_mode="update"), 3)
    assert sinking.rows("id, v") == [(1, "b")]


def test_the_place_of_a_record_can_be_its_key(sinking: Sinking) -> None:
    sinking.put({"v": "a"})
    sinking.put({"v": "b"})
    sinking.drain(sinking.job(auto_create="true", pk_mode="kafka", fields_whitelist="v", insert_mode="upsert"), 2)
    topic = sinking.tasks.topic
    assert sinking.rows(order="3") == [(topic, 0, 0, "a"), (topic, 0, 1, "b")]


def test_nested_values_become_json(sinking: Sinking) -> None:
    sinking.put({"id": 1, "tags": ["a", "b"], "place": {"x": 1}})
    sinking.drain(sinking.job(auto_create="true"), 1)
    [(tags, place)] = sinking.rows("tags, place")
    found = [each if not isinstance(each, str) else msgspec.json.decode(each) for each in (tags, place)]
    assert found == [["a", "b"], {"x": 1}]


@pytest.mark.parametrize(
    ("config", "value", "key", "error"),
    [
        ({}, {"id": 1}, None, "is missing and auto-creation is disabled"),
        ({"auto.create": "true"}, 5, None, "the sink needs values that are structs"),
        ({"auto.create": "true"}, None, 1, "offset 0 cannot be written: it has no value"),
        ({**UPSERT}, {"v": 1}, None, "offset 0 cannot be written: it has no key"),
        ({**UPSERT, "pk.fields": ""}, {"v": 1}, 1, "needs exactly one name"),
        ({**UPSERT, "pk.mode": "record_value", "delete.enabled": "false"}, {"v": 1}, 1, "pk.fields names id, which the value"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_record_that_does_not_fit_fails_the_task(
    sinking: Sinking, config: dict[str, str], value: Any, key: Any, error: str
) -> None:
    sinking.put(value, key)
    task = sinking.tasks.start(sinking.job(**given(config)))
    wait_until(task.failure, "it did not fail")
    assert error in str(task.failure())


@pytest.mark.parametrize("database", ["postgres", "sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_rows_that_the_database_refuses_become_dead_letters(sinking: Sinking, mode: str) -> None:
    """A number that is too small, a missing text, and a key that is there, in a batch with others."""
    sinking.database.run(f"CREATE TABLE {sinking.table} (id int PRIMARY KEY, v varchar(9) NOT NULL, n int CHECK (n > 0))")
    given_rows: list[tuple[int, str | None, int]] = [(each, "x", 1) for each in range(100)]
    given_rows[17], given_rows[64], given_rows[65] = (17, "x", -1), (3, "again", 1), (65, None, 1)
    for at, (each, text, number) in enumerate(given_rows):
        sinking.put({"id": each, "v": text, "n": number}, key=at)
    sinking.tasks.produce(None, key="5")
    letters = f"dlq-{sinking.table}"
    job = sinking.job(
        insert_mode=mode, pk_mode="record_value", pk_fields="id", errors_tolerance="all",
        **{"errors.deadletterqueue.topic.name": letters},
    )  # fmt: skip
    sinking.drain(job, 101)
    refused = [5, 17, 64, 65] if mode == "insert" else [5, 17, 65]
    rows = {each: text for each, text, _ in given_rows}
    if mode == "insert":
        rows[3] = "x"
    assert dict(sinking.rows("id, v")) == {each: text for each, text in rows.items() if each not in {17, 65}}
    assert sorted(int(each.key or b"") for each in records_of(sinking.tasks._client, letters)) == refused


@pytest.mark.parametrize("database", ["postgres", "sqlite", "mariadb"], indirect=True)
def test_the_first_row_that_the_database_refuses_is_named(sinking: Sinking) -> None:
    sinking.database.run(f"CREATE TABLE {sinking.table} (id int PRIMARY KEY)")
    for each in (1, 2, 1, None, 3):
        sinking.put({"id": each})
    task = sinking.tasks.start(sinking.job())
    wait_until(task.failure, "it did not fail")
    assert f"{sinking.tasks.topic}-0 offset 2 cannot be written" in str(task.failure())
    assert sinking.rows("id") == []


def test_a_database_that_is_not_there_fails_the_start(tasks: Tasks) -> None:
    tasks.create_topic()
    job = tasks.job(
        "JdbcSinkConnector", "sink", {"topics": tasks.topic, "connection.url": "jdbc:postgresql://127.0.0.1:1/x?password=geheim"}
    )  # fmt: skip
    with pytest.raises(ConnectError, match=r"postgresql://127\.0\.0\.1:1/x cannot be reached") as caught:
        tasks.start(job)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("place", ["before the commit", "after the commit"])
def test_a_record_is_written_once_whenever_the_sink_dies(sinking: Sinking, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    job = sinking.job(auto_create="true")
    sinking.put({"id": 0})
    sinking.drain(job, 1)
    for each in range(1, 5):
        sinking.put({"id": each})
    real, calls = OffsetsTable.write, list[int]()

    def write(self: OffsetsTable, ends: Any) -> None:
        real(self, ends)
        calls.append(1)
        if place == "after the commit":
            self._database.commit()
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(OffsetsTable, "write", write)
        task = sinking.tasks.start(job)
        wait_until(lambda: calls and task.failure() is not None, "it did not die")
        sinking.tasks.stop(task)
    sinking.drain(job, 5)
    assert sinking.rows("id") == [(each,) for each in range(5)]


@pytest.mark.parametrize("database", ["postgres", "sqlite"], indirect=True)
def test_two_of_one_task_write_each_record_once(sinking: Sinking) -> None:
    job = sinking.job(auto_create="true")
    sinking.put({"id": 0})
    first, second = SqlSink(), SqlSink()
    config = parsed(job)
    for each in (first, second):
        each.open(config)
    topic = sinking.tasks.topic

    def batch(begin: int, end: int) -> tuple[pa.Table, Identity]:
        numbers = pa.array(range(begin, end), pa.int64())
        rows = pa.table(
            {
                "value": pa.StructArray.from_arrays([numbers], names=["id"]), "topic": pa.repeat(topic, end - begin),
                "partition": pa.repeat(0, end - begin), "offset": numbers, "key": pa.nulls(end - begin),
            }
        )  # fmt: skip
        return rows, Identity("x", {(topic, 0): (begin, end)})

    first.write(*batch(0, 3))
    second.write(*batch(0, 5))
    first.write(*batch(3, 4))  # it was overtaken, and does not take the offset back
    third = SqlSink()
    assert third.open(config) == {(topic, 0): 5}
    for each in (first, second, third):
        each.close()
    assert sinking.rows("id") == [(each,) for each in range(5)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_records_that_go_to_another_table_are_known_by_their_own_topic(sinking: Sinking) -> None:
    sink, topic = SqlSink(), sinking.tasks.topic
    sink.open(parsed(sinking.job(auto_create="true", table_name_format="${topic}")))
    numbers = pa.array([0, 1], pa.int64())
    rows = pa.table(
        {
            "value": pa.StructArray.from_arrays([numbers], names=["id"]), "topic": pa.repeat(sinking.table, 2),
            "original_topic": pa.repeat(topic, 2), "partition": pa.repeat(0, 2), "offset": numbers, "key": pa.nulls(2),
        }
    )  # fmt: skip
    for _ in range(2):
        sink.write(rows, Identity("x", {(topic, 0): (0, 2)}))
    sink.close()
    assert sinking.rows("id") == [(0,), (1,)]


@pytest.mark.parametrize("database", ["postgres", "sqlite"], indirect=True)
def test_two_tasks_that_run_at_once_write_each_record_once(sinking: Sinking) -> None:
    job = sinking.job(auto_create="true", max_retries="1000", retry_backoff_ms="20")
    tasks, count = sinking.tasks, 0

    def put(more: int) -> None:
        nonlocal count
        for _ in range(more):
            sinking.put({"id": count})
            count += 1

    put(1)
    sinking.drain(job, 1)
    running = [tasks.start(job), tasks.start(job)]
    for _ in range(10):
        put(20)
    for each in running:
        tasks.until(lambda: len(sinking.rows("id")) >= count, each, "not all records were taken")
        tasks.stop(each)
        put(20)
        running.append(tasks.start(job)) if len(running) < 4 else None
    sinking.drain(job, count)
    assert sinking.rows("id") == [(each,) for each in range(count)]


def test_offsets_in_the_target_can_be_altered(sinking: Sinking) -> None:
    sinking.put({"id": 0})
    job = sinking.job(auto_create="true")
    sinking.drain(job, 1)
    config = parsed(job)
    SqlSink.alter_offsets(config, {(sinking.tasks.topic, 0): 7, (sinking.tasks.topic, 1): None})
    sink = SqlSink()
    found = sink.open(config)
    sink.close()
    assert found == {(sinking.tasks.topic, 0): 7}
    SqlSink.alter_offsets(config, {(sinking.tasks.topic, 0): None})
    sink = SqlSink()
    assert sink.open(config) == {}
    sink.close()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Zurich"])
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_columns_with_a_zone_get_the_moment_whatever_the_zone_of_the_server(sinking: Sinking, zone: str) -> None:
    sinking.run_statement("ALTER ROLE postgres SET TimeZone = 'Asia/Tokyo'")
    try:
        sinking.run_statement("CREATE TABLE {t} (id INT, moment TIMESTAMPTZ)")
        sinking.put({"id": 1, "moment": 1577836800000000})
        sinking.drain(sinking.job(timestamp_fields_list="moment", db_timezone=zone), 1)
        assert sinking.rows("extract(epoch from moment)::int") == [(1577836800,)]
    finally:
        sinking.run_statement("ALTER ROLE postgres RESET TimeZone")


def test_numbers_become_timestamps(sinking: Sinking) -> None:
    sinking.put({"id": 1, "moment": 1577836800000000})
    sinking.put({"id": 2, "moment": None})
    sinking.drain(sinking.job(auto_create="true", timestamp_fields_list="moment", dialect_name=""), 2)
    assert [str(at)[:19] if at else None for _, at in sinking.rows("id, moment")] == ["2020-01-01 00:00:00", None]


YEAR_10000_MS = 253402300800000
POISON = [{"id": 1}, "poison", {"id": 2, "more": "x"}, {"id": 3}]  # a text, and a field that the table lacks


def test_records_that_do_not_fit_to_the_table_become_dead_letters(sinking: Sinking) -> None:
    sinking.run_statement("CREATE TABLE {t} (id INTEGER)")
    for each in POISON:
        sinking.put(each)
    letters = f"dead-{sinking.table}"
    job = sinking.job(errors_tolerance="all", errors_deadletterqueue_topic_name=letters)
    sinking.drain(job, 4)
    assert sinking.rows() == [(1,), (3,)]
    found = [msgspec.json.decode(each.value or b"") for each in records_of(sinking.tasks._client, letters)]
    assert sorted(map(str, found)) == sorted(map(str, POISON[1:3]))


def test_a_record_that_does_not_fit_is_named(sinking: Sinking) -> None:
    sinking.run_statement("CREATE TABLE {t} (id INTEGER)")
    for each in ({"id": 1}, {"id": 2, "more": "x"}):
        sinking.put(each)
    with sinking.tasks.running(sinking.job()) as task:
        wait_until(lambda: task.failure() is not None, "the task did not fail")
        assert "is missing fields (more) and auto-evolution is disabled" in (task.failure() or "")
    sinking.run_statement("ALTER TABLE {t} ADD COLUMN more VARCHAR(9)")
    sinking.drain(sinking.job(), 2)
    assert sinking.rows() == [(1, None), (2, "x")]


def test_a_value_of_another_type_is_one_dead_letter(sinking: Sinking) -> None:
    if sinking.database.url.startswith(("jdbc:duckdb", "jdbc:sqlite")):
        pytest.skip("SQLite keeps any value; DuckDB has no savepoints")
    sinking.run_statement("CREATE TABLE {t} (id INTEGER)")
    for each in ({"id": 1}, {"id": "x"}, {"id": 3}):
        sinking.put(each)
    sinking.drain(sinking.job(errors_tolerance="all"), 3)
    assert sinking.rows() == [(1,), (3,)]


def test_a_time_that_python_lacks_is_one_dead_letter(sinking: Sinking) -> None:
    """SQLite's library takes values of Python, and MariaDB has no such times; the others have them."""
    fields = [{"field": "id", "type": "int32"}, {"field": "at", "type": "int64", "name": f"{LOGICAL}Timestamp", "version": 1}]
    for number, at in ((1, 0), (2, YEAR_10000_MS), (3, 1000)):
        sinking.put({"schema": {"type": "struct", "fields": fields}, "payload": {"id": number, "at": at}})
    sinking.drain(sinking.job(value_converter=JSON["value.converter"], auto_create="true", errors_tolerance="all"), 3)
    has_it = sinking.database.url.startswith(("jdbc:postgresql", "jdbc:duckdb"))
    assert sinking.rows("id") == [(number,) for number in (1, 2, 3) if has_it or number != 2]


def test_what_is_rolled_back_is_gone(sinking: Sinking) -> None:
    sinking.run_statement("CREATE TABLE {t} (id INTEGER)")
    with closing(connected(address_of(sinking.database.url, sinking.database.user))) as database:
        table = table_name(sinking.table)
        database.begin()
        database.insert(table, pa.table({"id": [1]}))
        database.run(f"INSERT INTO {database.table(table)} VALUES (2)")
        database.rollback()
    assert sinking.rows() == []


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_password_that_changes(tasks: Tasks, request: pytest.FixtureRequest, kind: str) -> None:
    """The task fails, says why, and goes on with the new one."""
    server = request.getfixturevalue(kind)
    sinking = Sinking(tasks, Target(server.url, server.admin))
    user = f"u{sinking.table}"
    server.create_user(user, "one")

    def job(password: str) -> Job:
        made = sinking.job(auto_create="true", max_retries="1", retry_backoff_ms="50")
        return with_config(made, {"connection.user": user, "connection.password": password})

    sinking.put({"id": 1})
    with tasks.running(job("one")) as task:
        tasks.until(lambda: tasks.committed() == {0: (1, "")}, task, "the record was not taken")
        server.change_password(user, "two")
        server.end_connections(user)
        sinking.put({"id": 2})
        assert user in reason_of(task)
    sinking.drain(job("two"), 2)
    assert sinking.rows() == [(1,), (2,)]
