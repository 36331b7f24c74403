"""Tables of PostgreSQL and MariaDB through the JDBC drivers of Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.connect.plugins.servers import MariadbServer, PostgresServer
from tests.connect.runtime.tasks import JSON, Tasks

pytestmark = [pytest.mark.spark, pytest.mark.interop]
SOURCE = "barnabas.SparkSource"


def rows(tasks: Tasks) -> list[Any]:
    return sorted((json.loads(value or b"") for value in tasks.values()), key=lambda each: each["id"])


def config_of(server: PostgresServer | MariadbServer, tasks: Tasks, table: str, **more: str) -> dict[str, str]:
    user = "postgres" if isinstance(server, PostgresServer) else "root"
    return {
        "format": "jdbc", "spark.option.url": server.url, "spark.option.user": user, "spark.option.dbtable": table,
        "topic": tasks.topic, "poll.interval.ms": "100", **{key.replace("_", "."): value for key, value in more.items()},
    }  # fmt: skip


def test_a_table_in_ranges(spark_tasks: Tasks, postgres: PostgresServer) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    postgres.query("CREATE TABLE large AS SELECT n AS id, 'text ' || n AS name FROM generate_series(1, 5000) AS n")
    config = config_of(postgres, tasks, "large", partition_column="id", poll_interval_ms="-1", key_fields="id")
    with tasks.running(tasks.job(SOURCE, "source", config, JSON)) as task:
        tasks.until(lambda: len(tasks.values()) >= 5000, task, "the rows did not come")
    assert rows(tasks) == [{"id": n, "name": f"text {n}"} for n in range(1, 5001)]


def test_rows_with_a_greater_number(spark_tasks: Tasks, mariadb: MariadbServer) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    mariadb.query("CREATE TABLE shop.numbers (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20))")
    config = config_of(mariadb, tasks, "numbers", mode="incrementing", incrementing_column_name="id")
    job = tasks.job(SOURCE, "source", config, JSON)
    with tasks.running(job) as task:
        mariadb.query("INSERT INTO shop.numbers (name) VALUES ('a'), ('b')")
        tasks.until(lambda: len(tasks.values()) == 2, task, "the rows did not come")
    mariadb.query("INSERT INTO shop.numbers (name) VALUES ('c')")
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == 3, task, "the row did not come")
    assert rows(tasks) == [{"id": n, "name": name} for n, name in ((1, "a"), (2, "b"), (3, "c"))]


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_rows_with_a_later_time(spark_tasks: Tasks, postgres: PostgresServer, mode: str) -> None:
    tasks, table = spark_tasks, f"changed_{len(mode)}"
    tasks.create_topic()
    postgres.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, at TIMESTAMPTZ, n INT)")
    postgres.query(f"INSERT INTO {table} VALUES (1, '2025-01-01 10:00:00.123456+02', 0), (2, '2025-01-01 10:00:00.123456+02', 0)")
    config = config_of(
        postgres, tasks, table, mode=mode, incrementing_column_name="id", timestamp_column_name="at", partition_column="id",
        partition_count="2",
    )  # fmt: skip
    job = tasks.job(SOURCE, "source", config, JSON)
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == 2, task, "the rows did not come")
    postgres.query(f"UPDATE {table} SET n = 1, at = at + interval '1 microsecond' WHERE id = 1")
    count = 3
    if mode != "timestamp":
        postgres.query(f"INSERT INTO {table} VALUES (3, '2025-01-01 10:00:00.123456+02', 0)")
        count = 4
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == count, task, "the changed rows did not come")
        tasks.until(task.has_settled, task, "it does not rest")
    assert [(each["id"], each["n"]) for each in rows(tasks)] == [(1, 0), (1, 1), (2, 0), (3, 0)][:count]


def test_rows_of_a_query_in_ranges(spark_tasks: Tasks, postgres: PostgresServer) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    postgres.query("CREATE TABLE asked AS SELECT n AS id, n % 2 AS odd FROM generate_series(1, 100) AS n")
    config = config_of(postgres, tasks, "", partition_column="id", partition_lower_bound="1", partition_upper_bound="100")
    del config["spark.option.dbtable"]
    config |= {"spark.option.query": "SELECT id FROM asked WHERE odd = 1", "poll.interval.ms": "-1"}
    with tasks.running(tasks.job(SOURCE, "source", config, JSON)) as task:
        tasks.until(lambda: len(tasks.values()) == 50, task, "the rows did not come")
    assert [each["id"] for each in rows(tasks)] == list(range(1, 101, 2))


def test_a_table_that_is_written(spark_tasks: Tasks, mariadb: MariadbServer) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    tasks.produce('{"id": 1, "name": "a"}', '{"id": 2, "name": null}')
    config = {
        "format": "jdbc", "spark.option.url": mariadb.url, "spark.option.user": "root", "spark.option.dbtable": "written",
        "topics": tasks.topic, "record.fields": "offset",
    }  # fmt: skip

    def there() -> Any:
        found = mariadb.query("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'written'")
        return found[0][0] and mariadb.query("SELECT id, name, `offset` FROM shop.written ORDER BY id")

    with tasks.running(tasks.job("barnabas.SparkSink", "sink", config, JSON)) as task:
        tasks.until(lambda: len(there() or ()) == 2, task, "the rows are not in the table")
    assert there() == ((1, "a", 0), (2, None, 1))
