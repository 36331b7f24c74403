"""Incremental snapshots of PostgreSQL, which signals ask for while the capture runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.connect.plugins.postgres_capture.chunks import Chunks
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.engine.jobs import Job
from tests.connect.plugins.servers import PostgresServer
from tests.connect.plugins.test_postgres_capture import PostgresCapture
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_kills import die_once
from tests.torture.databases.folding import folded
from tests.torture.databases.rounds import rows_of
from tests.waiting import wait_until


class Signalled(PostgresCapture):
    """A capture with a table of signals, and a table of rows that it has not read."""

    def __init__(self, tasks: Tasks, server: PostgresServer) -> None:
        super().__init__(tasks, server)
        self.run(
            "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
            "CREATE TABLE t (a int, b text, v int, PRIMARY KEY (b, a))",
            "INSERT INTO t SELECT g, CASE g % 2 WHEN 0 THEN 'x''\\' ELSE 'é' END, g FROM generate_series(1, 25) g",
        )

    def capturing(self, **config: str) -> Job:
        """The task, which reads no rows at first."""
        given = {"snapshot_mode": "no_data", "incremental_snapshot_chunk_size": "4", **config}
        return self.job(signal_data_collection=f"{self.name}.signals", **given)

    def signal(self, kind: str, data: Any = None) -> None:
        """Add a row to the table of signals."""
        text = "NULL" if data is None else "'" + json.dumps(data).replace("'", "''") + "'"
        self.run(f"INSERT INTO signals VALUES (gen_random_uuid()::text, '{kind}', {text})")

    def snapshot(self, *tables: str, **more: Any) -> None:
        """Ask for a snapshot of tables."""
        names = [rf"{self.name}\.{each}" for each in tables]
        self.signal("execute-snapshot", {"type": "incremental", "data-collections": names, **more})

    def read(self, table: str = "t") -> list[Any]:
        """The rows that were read, in their order."""
        return [after for op, _, after in self._events(table) if op == "r"]

    def _events(self, table: str) -> list[tuple[Any, ...]]:
        return [each for each in self.changes(table) if len(each) == 3]

    def equals(self, table: str = "t") -> bool:
        """Whether the records make the table."""
        with_schema = f"{self.name}.{table}"
        return folded(records_of(self.tasks._client, self.topic(table))) == rows_of(self.server, with_schema)


@pytest.fixture
def capture(tasks: Tasks, postgres: PostgresServer) -> Iterator[Signalled]:
    made = Signalled(tasks, postgres)
    yield made
    tasks.close()
    made.drop()


def test_a_signal_reads_a_table_while_changes_go_on(capture: Signalled) -> None:
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("t")
        capture.run("UPDATE t SET v = -v WHERE a = 20", "DELETE FROM t WHERE a = 25", "INSERT INTO t VALUES (0, 'é', 0)")
        capture.tasks.until(lambda: len(capture.changes("t")) >= 25 and capture.equals(), task, "the rows did not come")
    keys = [(each["b"], each["a"]) for each in capture.read()]
    assert len(set(keys)) == len(keys)
    records = [value for _, value in capture.records("t") if value is not None and value["op"] == "r"]
    assert {each["source"]["snapshot"] for each in records} == {"incremental"}


def test_rows_that_change_while_they_are_read_come_as_changes(capture: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = Chunks._chunk, list[int]()

    def chunk(self: Chunks, *arguments: Any) -> Any:
        found = real(self, *arguments)
        if not done:
            done.append(1)
            capture.run("UPDATE t SET v = 100 WHERE a = 2", "DELETE FROM t WHERE a = 4", "UPDATE t SET a = 106 WHERE a = 6")
        return found

    monkeypatch.setattr(Chunks, "_chunk", chunk)
    with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100")) as task:
        capture.until_streaming(task)
        capture.snapshot("t")
        capture.tasks.until(lambda: len(capture.read()) == 22, task, "the rows did not come")
        assert capture.equals()
    assert {2, 4, 6}.isdisjoint({each["a"] for each in capture.read()})


def test_a_transaction_that_becomes_visible_late_lets_a_chunk_be_read_again(
    capture: Signalled, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The stream has brought it before the window, and the reading did not see it."""
    real, seen = Chunks._chunk, list[int]()

    def chunk(self: Chunks, *arguments: Any) -> Any:
        found = real(self, *arguments)
        seen.append(len(self._xids))
        stale = frozenset(self._xids) if len(seen) == 1 else frozenset[int]()
        return found._replace(running=found.running | stale)

    monkeypatch.setattr(Chunks, "_chunk", chunk)
    with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100")) as task:
        capture.until_streaming(task)
        capture.run("UPDATE t SET v = 7 WHERE a = 2")
        capture.until("t", 1, task)
        capture.snapshot("t")
        capture.tasks.until(lambda: len(capture.read()) == 25, task, "the rows did not come")
    assert len(seen) == 2
    assert seen[0] > 0


@pytest.mark.parametrize("after", [False, True])
def test_a_snapshot_goes_on_after_a_kill(capture: Signalled, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    task = capture.tasks.start(capture.capturing())
    capture.until_streaming(task)
    capture.snapshot("t")
    for count in (1, 9, 17):
        capture.tasks.until(lambda count=count: len(capture.read()) >= count, task, "the rows did not come")
        with monkeypatch.context() as dying:
            died = die_once(dying, TransactionalWriter, "write", after=after)
            capture.run("UPDATE t SET v = v + 1 WHERE a = 3")
            wait_until(lambda task=task, died=died: bool(died) and task.failure() is not None, "it did not die")
            capture.tasks.stop(task)
        task = capture.tasks.start(capture.capturing())
    capture.tasks.until(lambda: len(capture.read()) >= 25, task, "the rows did not come")
    capture.tasks.until(capture.equals, task, "the records do not make the table")
    assert sorted(each["a"] for each in capture.read()) == list(range(1, 26))


def test_signals_pause_resume_and_stop_and_have_conditions(capture: Signalled, caplog: pytest.LogCaptureFixture) -> None:
    capture.run(
        "CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u SELECT generate_series(1, 10)", "CREATE TABLE loose (v int)"
    )
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.signal("pause-snapshot")
        capture.snapshot("t", "u")
        capture.signal("stop-snapshot", {"type": "incremental", "data-collections": [f"{capture.name}.t"]})
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO u VALUES (11)")
        capture.until("u", 1, task)
        capture.signal("resume-snapshot")
        capture.tasks.until(lambda: len(capture.read("u")) == 11, task, "the rows did not come")
        condition = {"data-collection": f"{capture.name}.t", "filter": "v % 5 = 0"}
        for kind, data in (
            ("log", {"message": "here"}),
            ("nonsense", None),
            ("execute-snapshot", {"type": "blocking"}),
            ("log", [1]),
        ):
            capture.signal(kind, data)
        capture.snapshot("loose", "missing")
        capture.snapshot("t", **{"additional-conditions": [{"data-collection": f"{capture.name}.t", "filter": "no such thing"}]})
        capture.snapshot("u")
        capture.tasks.until(lambda: len(capture.read("u")) == 22, task, "the rows did not come")
        assert capture.read() == []
        capture.snapshot("t", **{"additional-conditions": [condition]})
        capture.tasks.until(lambda: len(capture.read()) == 5, task, "the rows did not come")
    assert {each["v"] for each in capture.read()} == {5, 10, 15, 20, 25}
    for each in (
        "event=signal id",
        "'nonsense'",
        "snapshot of the type blocking",
        "no object of JSON",
        "no primary key",
        "no such thing",
    ):
        assert each in caplog.text
