"""Rows of databases become records, poll by poll."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec
import pytest

from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
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
