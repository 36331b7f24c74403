"""Topics that are deleted under a sink, and disks that are full at its target. Nothing is lost, and the reason is one line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.runtime import sink_reader
from barnabas.engine.jobs import Job
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range
from tests.connect.plugins.targets import Target
from tests.connect.runtime.tasks import JSON, STRINGS, Tasks
from tests.waiting import wait_until

BATCH = 100


def delete_topic(tasks: Tasks) -> None:
    with closing(BlockingClient(ClientConfig.from_options(tasks.settings))) as client:
        client.delete_topics([tasks.topic])


def file_sink(tasks: Tasks) -> Job:
    return tasks.job("FileStreamSink", "sink", {"file": str(tasks.folder / "out"), "topics": tasks.topic})


def lines(tasks: Tasks) -> list[str]:
    path = tasks.folder / "out"
    return path.read_text().splitlines() if path.exists() else []


def test_a_topic_that_is_deleted_under_a_sink_and_comes_back(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce("a", "b", "c")
    task = tasks.start(file_sink(tasks))
    tasks.until(lambda: lines(tasks) == ["a", "b", "c"], task, "the lines are not there")
    delete_topic(tasks)
    tasks.create_topic()
    tasks.produce(*"defgh")
    said = f"the topic {tasks.topic} was deleted and created again; it is read from its beginning"
    wait_until(lambda: task.failure() == said, "it does not say so")
    tasks.stop(task)
    with tasks.running(file_sink(tasks)) as task:  # the engine starts it again
        tasks.until(lambda: tasks.committed().get(0, (0, ""))[0] == 5, task, "the lines of the other topic are not there")
    assert lines(tasks) == list("abcdefgh")


def test_records_of_a_topic_that_is_created_again_while_it_is_read_are_not_given(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.create_topic()
    tasks.produce("a", "b", "c")
    task = tasks.start(file_sink(tasks))
    tasks.until(lambda: lines(tasks) == ["a", "b", "c"], task, "the lines are not there")

    def late(part: ReadTask) -> Iterator[pa.RecordBatch]:
        monkeypatch.setattr(sink_reader, "read_range", read_range)
        delete_topic(tasks)
        tasks.create_topic()
        tasks.produce(*"defgh")
        yield from read_range(part)

    monkeypatch.setattr(sink_reader, "read_range", late)
    tasks.produce("x")
    wait_until(lambda: "was deleted and created again" in (task.failure() or ""), "it does not say so")
    assert lines(tasks) == ["a", "b", "c"]
    tasks.stop(task)
    with tasks.running(file_sink(tasks)) as task:
        tasks.until(lambda: lines(tasks) == list("abcdefgh"), task, "the lines of the other topic are not there")


def test_a_task_leaves_the_partitions_of_others_as_they_are(tasks: Tasks) -> None:
    """Another task of the connector may already read them from their beginning."""
    tasks.create_topic(2)
    for partition in range(2):
        tasks.produce("a", partition=partition)
    job = tasks.job("FileStreamSink", "sink", {"file": str(tasks.folder / "out"), "topics": tasks.topic}, task=0, tasks=2)
    task = tasks.start(job)

    def own() -> list[int]:
        return [partition for partition, (offset, _) in tasks.committed(2).items() if offset == 1]

    tasks.until(own, task, "the offset is not committed")
    begins = [(tasks.topic, partition) for partition in own()]
    delete_topic(tasks)
    tasks.create_topic(2)
    wait_until(lambda: task.failure() is not None, "it does not end")
    tasks.stop(task)
    assert isinstance(task._error, sink_reader.BegunAnew)
    assert (len(begins), [*task._error.begins]) == (1, begins)


def test_a_topic_that_is_shorter_is_read_from_its_beginning(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was deleted and created again while no task looked, and the target has an offset behind its end."""
    monkeypatch.setattr(sink_reader, "SHRUNK_S", 0.3)
    target = Target(f"jdbc:sqlite:{tasks.folder}/rows.db")
    config = {**target.config, "topics": tasks.topic, "auto.create": "true", "table.name.format": "rows"}
    job = tasks.job("io.confluent.connect.jdbc.JdbcSinkConnector", "sink", config, JSON)
    tasks.create_topic()
    tasks.produce(*(f'{{"id": {each}}}' for each in range(5)))
    with tasks.running(job) as task:
        tasks.until(lambda: target.has_table("rows") and len(target.run("SELECT id FROM rows")) == 5, task, "no rows")
        tasks.until(lambda: tasks.committed() == {0: (5, "")}, task, "the offset was not committed")
    delete_topic(tasks)
    tasks.create_topic()
    tasks.produce('{"id": 10}', '{"id": 11}')
    with closing(BlockingClient(ClientConfig.from_options(tasks.settings))) as client:
        client.commit_offsets(f"connect-{tasks.name}", {(tasks.topic, 0): 5}, {})  # a broker deletes it with the topic
    task = tasks.start(job)
    reason = f"the topic {tasks.topic} is another one, because its partition 0 ends before the offset 5"
    said = f"{reason}; it is read from its beginning"
    wait_until(lambda: task.failure() == said, "it does not say so")
    tasks.stop(task)
    with tasks.running(job) as task:  # the engine starts it again
        tasks.until(lambda: len(target.run("SELECT id FROM rows")) == 7, task, "the rows of the other topic are not there")
    assert sorted(target.run("SELECT id FROM rows")) == [(each,) for each in (0, 1, 2, 3, 4, 10, 11)]


def test_a_table_that_is_dropped_under_a_sink(tasks: Tasks) -> None:
    target = Target(f"jdbc:sqlite:{tasks.folder}/rows.db")
    target.run("CREATE TABLE rows(id INTEGER)")
    config = {**target.config, "topics": tasks.topic, "table.name.format": "rows"}
    job = tasks.job("io.confluent.connect.jdbc.JdbcSinkConnector", "sink", config, JSON)
    tasks.create_topic()
    tasks.produce('{"id": 1}')
    task = tasks.start(job)
    tasks.until(lambda: target.run("SELECT id FROM rows") == [(1,)], task, "no row")
    target.run("DROP TABLE rows")
    tasks.produce('{"id": 2}')
    wait_until(lambda: "rows" in (task.failure() or ""), "it does not say which table")
    assert "\n" not in str(task.failure())
    tasks.stop(task)
    target.run("CREATE TABLE rows(id INTEGER)")
    with tasks.running(job) as task:
        tasks.until(lambda: target.run("SELECT id FROM rows") == [(2,)], task, "the row is lost")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


SINKS = {
    "files": ("barnabas.FileSink", {"store.url": "{}/lake", "flush.size": str(BATCH), "format.class": "json"}),
    "lines": ("FileStreamSink", {"file": "{}/lines"}),
    "rows": (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        {
            "connection.url": "jdbc:sqlite:{}/rows.db",
            "auto.create": "true",
            "table.name.format": "rows",
            "retry.backoff.ms": "20",
        },
    ),
    "delta": ("barnabas.DeltaSink", {"store.url": "{}/lake", "flush.interval.ms": "100", "auto.create": "true"}),
}


def ids(kind: str, disk: Path, topic: str) -> list[int]:
    """The numbers of the records in a target."""
    match kind:
        case "files" | "lines":
            files = [disk / "lines"] if kind == "lines" else sorted((disk / "lake").rglob("*.json"))
            return [json.loads(line)["id"] for each in files for line in each.read_text().splitlines()]
        case "rows":
            return [row[0] for row in Target(f"jdbc:sqlite:{disk}/rows.db").run("SELECT id FROM rows")]
    deltalake = pytest.importorskip("deltalake")
    found: list[int] = ds.dataset(deltalake.DeltaTable(str(disk / "lake" / topic)).file_uris()).to_table()["id"].to_pylist()
    return found


@pytest.mark.parametrize("kind", SINKS)
def test_a_full_disk_at_the_sink(tasks: Tasks, small_disk: Path, kind: str) -> None:
    """The task fails with the reason; with room on the disk it goes on, and each record is there once."""
    name, config = SINKS[kind]
    given = {key: value.format(small_disk) for key, value in config.items()} | {"topics": tasks.topic}
    job = tasks.job(name, "sink", given, STRINGS if kind == "lines" else JSON)
    tasks.create_topic()
    count = 600
    for first in range(0, count, BATCH):
        tasks.produce(*(f'{{"id": {each}, "text": "{os.urandom(1000).hex()}"}}' for each in range(first, first + BATCH)))
    task = tasks.start(job)
    wait_until(lambda: task.failure() is not None, "it does not fail", within_s=60)
    reason = str(task.failure())
    tasks.stop(task)
    assert "\n" not in reason
    assert any(words in reason for words in ("No space left on device", "disk is full", "os error 28")), reason
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    with tasks.running(job) as task:
        tasks.until(lambda: tasks.committed().get(0, (0, ""))[0] == count, task, "the records are not there")
    assert sorted(ids(kind, small_disk, tasks.topic)) == list(range(count))
