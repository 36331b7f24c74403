"""Files and streams of Spark as sources."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.plugins.spark.source import SparkSource
from tests.connect.runtime.tasks import JSON, Tasks
from tests.waiting import wait_until

pytestmark = pytest.mark.spark
SOURCE = "barnabas.SparkSource"


def rows(tasks: Tasks) -> list[Any]:
    return sorted((json.loads(value or b"") for value in tasks.values()), key=lambda each: each["id"])


def test_all_rows_of_a_folder_come_once(spark_tasks: Tasks) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    assert tasks.spark is not None
    tasks.spark.range(500).selectExpr("id", "array(id, id + 1) AS next").write.parquet(str(tasks.folder / "in"))
    config = {
        "format": "parquet", "path": str(tasks.folder / "in"), "topic": tasks.topic, "key.fields": "id", "poll.interval.ms": "-1",
    }  # fmt: skip
    job = tasks.job(SOURCE, "source", config, JSON)
    for _ in range(2):
        with tasks.running(job) as task:
            tasks.until(lambda: len(tasks.values()) == 500, task, "the rows did not come")
            tasks.until(task.has_settled, task, "it does not rest")
    assert rows(tasks) == [{"id": n, "next": [n, n + 1]} for n in range(500)]


def test_options_schema_and_polls(spark_tasks: Tasks) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    (tasks.folder / "in.csv").write_text("1;one\n2;two\n")
    config = {
        "format": "csv", "path": str(tasks.folder / "in.csv"), "spark.option.sep": ";", "schema": "id BIGINT, name STRING",
        "topic": tasks.topic, "poll.interval.ms": "100",
    }  # fmt: skip
    with tasks.running(tasks.job(SOURCE, "source", config, JSON)) as task:
        tasks.until(lambda: len(tasks.values()) >= 4, task, "no second poll came")
    assert rows(tasks)[0] == {"id": 1, "name": "one"}


def stream_config(tasks: Tasks, checkpoint: str = "checkpoint") -> dict[str, str]:
    return {
        "format": "json", "path": str(tasks.folder / "in"), "schema": "id BIGINT", "mode": "streaming", "poll.interval.ms": "100",
        "checkpoint.location": str(tasks.folder / checkpoint), "topic": tasks.topic, "spark.option.maxFilesPerTrigger": "1",
    }  # fmt: skip


def add_file(folder: Path, name: str, *ids: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    unfinished = folder / name
    unfinished.write_text("".join(f'{{"id": {each}}}\n' for each in ids))
    unfinished.rename(folder / "in" / f"{name}.json")


def test_a_stream_goes_on_where_it_was(spark_tasks: Tasks) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    add_file(tasks.folder, "a", 1, 2)
    job = tasks.job(SOURCE, "source", stream_config(tasks), JSON)
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == 2, task, "the first file did not come")
    add_file(tasks.folder, "b", 3)
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == 3, task, "the second file did not come")
    assert [each["id"] for each in rows(tasks)] == [1, 2, 3]


def test_a_micro_batch_that_is_in_the_log_is_not_written_again(spark_tasks: Tasks) -> None:
    """Spark was killed between the commit of the transaction and that of its checkpoint."""
    tasks = spark_tasks
    tasks.create_topic()
    add_file(tasks.folder, "a", 1, 2)
    job = tasks.job(SOURCE, "source", stream_config(tasks), JSON)
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == 2, task, "the first file did not come")
        commits = tasks.folder / "checkpoint" / "commits"
        tasks.until(lambda: (commits / "0").exists(), task, "Spark has not marked the micro-batch as done")
    shutil.rmtree(commits)
    add_file(tasks.folder, "b", 3)
    with tasks.running(job) as task:
        tasks.until(lambda: len(tasks.values()) == 3, task, "the second file did not come")
    assert [each["id"] for each in rows(tasks)] == [1, 2, 3]


def test_another_checkpoint_is_refused(spark_tasks: Tasks) -> None:
    tasks = spark_tasks
    tasks.create_topic()
    add_file(tasks.folder, "a", 1)
    with tasks.running(tasks.job(SOURCE, "source", stream_config(tasks), JSON)) as task:
        tasks.until(lambda: len(tasks.values()) == 1, task, "the file did not come")
    with tasks.running(tasks.job(SOURCE, "source", stream_config(tasks, "other"), JSON)) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert "other is not the one that the offset of the connector belongs to" in (task.failure() or "")
    assert len(tasks.values()) == 1


@pytest.mark.parametrize(
    ("config", "key", "text"),
    [
        ({"format": "socket", "mode": "streaming", "checkpoint.location": "/c"}, "format", "cannot give its rows again"),
        ({"format": "json", "mode": "streaming"}, "checkpoint.location", "mode=streaming needs checkpoint.location"),
        ({"format": "jdbc", "spark.option.dbtable": "t"}, "format", "format=jdbc needs spark.option.url"),
        ({"format": "jdbc", "spark.option.url": "jdbc:x:y"}, "format", "needs spark.option.dbtable or spark.option.query"),
        ({"format": "csv", "partition.column": "id"}, "partition.column", "only format=jdbc"),
        ({"format": "csv", "mode": "incrementing"}, "incrementing.column.name", "mode=incrementing needs"),
        ({"format": "csv", "partition.lower.bound": "1"}, "partition.upper.bound", "give both bounds"),
    ],
)
def test_configs_that_do_not_fit_are_refused(config: dict[str, str], key: str, text: str) -> None:
    assert text in SparkSource.validate(config)[key][0]


def test_a_driver_that_is_missing_is_named(spark_tasks: Tasks) -> None:
    config = {
        "format": "jdbc", "spark.option.url": "jdbc:nothing://127.0.0.1/x", "spark.option.dbtable": "t", "topic": spark_tasks.topic,
    }  # fmt: skip
    with spark_tasks.running(spark_tasks.job(SOURCE, "source", config, JSON)) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert (task.failure() or "").startswith("Spark has no JDBC driver for jdbc:nothing://127.0.0.1/x; ")


def test_rows_without_the_column_are_refused(spark_tasks: Tasks) -> None:
    (spark_tasks.folder / "in.json").write_text('{"id": 1}\n')
    config = {
        "format": "json", "path": str(spark_tasks.folder / "in.json"), "topic": spark_tasks.topic, "mode": "incrementing",
        "incrementing.column.name": "number",
    }  # fmt: skip
    with spark_tasks.running(spark_tasks.job(SOURCE, "source", config, JSON)) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert "number" in (task.failure() or "")
