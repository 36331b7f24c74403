"""Captures of databases as tests look at them: the records of tables, and a task that dies within a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec.structs import replace

from barnabas.connect.runtime import source_task
from barnabas.connect.runtime.sink_task import SinkTask
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.engine.jobs import ConnectorWork, Job
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_kills import die_once
from tests.waiting import wait_until

LARGE = 4000  # rows of the large transaction


def reason_of(task: SourceTask | SinkTask) -> str:
    """Why a task has failed: one line."""
    wait_until(task.failure, "it did not fail")
    reason = str(task.failure())
    assert "\n" not in reason
    return reason


def with_secrets(job: Job) -> Job:
    """The same on a worker with the config provider for files."""
    assert isinstance(job.work, ConnectorWork)
    worker = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    return replace(job, work=replace(job.work, worker={**job.work.worker, **worker}))


def with_config(job: Job, config: Mapping[str, str]) -> Job:
    """The same with other values in its config."""
    assert isinstance(job.work, ConnectorWork)
    return replace(job, work=replace(job.work, config={**job.work.config, **config}))


class Capture:
    """A capture of the tables of one schema or database.

    Attributes:
        prefix: of topics.
        name: of the schema or database.
    """

    prefix: ClassVar[str]
    tasks: Tasks
    name: str

    def run(self, *statements: str) -> None:
        """Run statements in the schema or database."""
        raise NotImplementedError

    def job(self, **config: str) -> Job:
        """The task of the capture."""
        raise NotImplementedError

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{self.name}.{table}"

    def records(self, table: str) -> list[tuple[Any, Any]]:
        """Keys and values of a table's topic."""
        return [
            (each.key and msgspec.json.decode(each.key), each.value and msgspec.json.decode(each.value))
            for each in records_of(self.tasks._client, self.topic(table))
        ]

    def values(self, topic: str) -> list[Any]:
        """The values of a topic, but for tombstones."""
        return [msgspec.json.decode(each.value) for each in records_of(self.tasks._client, topic) if each.value is not None]

    def changes(self, table: str) -> list[tuple[Any, ...]]:
        """Operation, before and after of a table's events; tombstones as (key, None)."""
        return [
            (key, None) if value is None else (value["op"], value["before"], value["after"]) for key, value in self.records(table)
        ]

    def until(self, table: str, count: int, task: Any) -> list[tuple[Any, ...]]:
        """The changes of a table when they are there. There are no more of them."""
        self.tasks.until(lambda: len(self.records(table)) >= count, task, "the records did not come")
        found = self.changes(table)
        assert len(found) == count, found
        return found


def values_of_a_large_transaction(capture: Capture, monkeypatch: pytest.MonkeyPatch, source: Any, rows: str) -> list[int]:
    """The values of a topic after a task died between two parts of a transaction: 0, the rows twice, and -1.

    Args:
        source: the module of the capture, which has the rows of a batch.
        rows: the source of an INSERT, with half of the rows.
    """
    monkeypatch.setattr(source, "ROWS", 100)
    monkeypatch.setattr(source_task, "MOST_ROWS", 100)
    capture.run("CREATE TABLE t (v int)", "INSERT INTO t VALUES (0)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
    capture.run("BEGIN", f"INSERT INTO t {rows}", f"INSERT INTO t {rows}", "COMMIT")
    with monkeypatch.context() as dying:
        task = capture.tasks.start(capture.job())
        capture.tasks.until(lambda: len(capture.records("t")) > 1, task, "no part of it came")
        died = die_once(dying, TransactionalWriter, "write", after=True)
        wait_until(lambda: died or len(capture.records("t")) == LARGE + 1, "it did not die")
        capture.tasks.stop(task)
    with capture.tasks.running(capture.job()) as task:
        capture.tasks.until(lambda: len(capture.records("t")) >= LARGE + 1, task, "the rows did not come")
        capture.run("INSERT INTO t VALUES (-1)")
        found = capture.until("t", LARGE + 2, task)
    return [after["v"] for _, _, after in found]
