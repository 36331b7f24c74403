"""Incremental snapshots of PostgreSQL, which signals ask for while the capture runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from threading import Thread
from typing import Any

import psycopg
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
        self.run(_signal(kind, data))

    def snapshot(self, *tables: str, also: str | None = None, **more: Any) -> None:
        """Ask for a snapshot of tables, and give another signal in the same transaction."""
        names = [rf"{self.name}\.{each}" for each in tables]
        wanted = _signal("execute-snapshot", {"type": "incremental", "data-collections": names, **more})
        self.run("BEGIN", wanted, *([_signal(also)] if also else []), "COMMIT")

    def on_the_first_chunk(self, monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
        """Run statements when the first chunk was read, before its window ends."""
        real, waiting = Chunks.chunk, [statements]

        def chunk(own: Chunks, *arguments: Any) -> Any:
            found = real(own, *arguments)
            if waiting:
                self.run(*waiting.pop())
            return found

        monkeypatch.setattr(Chunks, "chunk", chunk)

    @contextmanager
    def writing(self, seed: int, *, writers: int, transactions: int) -> Iterator[list[Thread]]:
        """Connections that change rows at random."""
        made = [Thread(target=self._write, args=(Random(seed * writers + each), transactions)) for each in range(writers)]
        for each in made:
            each.start()
        yield made
        for each in made:
            each.join()

    def _write(self, random: Random, transactions: int) -> None:
        with self.server.connect() as connection:
            connection.execute(f"SET search_path TO {self.name}")
            for _ in range(transactions):
                statements = [self._change(random) for _ in range(random.randrange(1, 4))]
                with (
                    contextlib.suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected),
                    connection.transaction(),
                ):
                    for each in statements:
                        connection.execute(each)

    @staticmethod
    def _change(random: Random) -> str:
        a, other = random.randrange(30), random.randrange(30)
        return random.choice(
            (
                f"UPDATE t SET v = v + 1 WHERE a = {a}", f"DELETE FROM t WHERE a = {a}", f"UPDATE t SET a = {other} WHERE a = {a}",
                f"INSERT INTO t VALUES ({a}, 'é', 0) ON CONFLICT DO NOTHING", f"UPDATE t SET v = v + 1 WHERE a < {a}",
            )
        )  # fmt: skip

    def read(self, table: str = "t") -> list[Any]:
        """The rows that were read, in their order."""
        return [after for op, _, after in self._events(table) if op == "r"]

    def _events(self, table: str) -> list[tuple[Any, ...]]:
        return [each for each in self.changes(table) if len(each) == 3]

    def equals(self, table: str = "t") -> bool:
        """Whether the records make the table."""
        with_schema = f"{self.name}.{table}"
        return folded(records_of(self.tasks._client, self.topic(table))) == rows_of(self.server, with_schema)


def _signal(kind: str, data: Any = None) -> str:
    text = "NULL" if data is None else "'" + json.dumps(data).replace("'", "''") + "'"
    return f"INSERT INTO signals VALUES (gen_random_uuid()::text, '{kind}', {text})"


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
    changes = ["UPDATE t SET v = 100 WHERE a = 2", "DELETE FROM t WHERE a = 4", "UPDATE t SET a = 106 WHERE a = 6"]
    capture.on_the_first_chunk(monkeypatch, *changes)
    with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100")) as task:
        capture.until_streaming(task)
        capture.snapshot("t")
        capture.tasks.until(lambda: len(capture.read()) == 22, task, "the rows did not come")
        assert capture.equals()
    assert {2, 4, 6}.isdisjoint({each["a"] for each in capture.read()})


@pytest.mark.parametrize("unseen", [lambda xid: {"running": frozenset([xid])}, lambda xid: {"next_xid": xid}])
def test_a_transaction_that_becomes_visible_late_lets_a_chunk_be_read_again(
    capture: Signalled, monkeypatch: pytest.MonkeyPatch, unseen: Callable[[int], dict[str, Any]]
) -> None:
    """The stream has brought it before the window, and the reading did not see it."""
    real, seen = Chunks.chunk, list[int]()

    def chunk(self: Chunks, *arguments: Any) -> Any:
        found = real(self, *arguments)
        seen.append(len(self._xids))
        return found._replace(rows=found.rows._replace(**unseen(self._xids[-1]))) if len(seen) == 1 else found

    monkeypatch.setattr(Chunks, "chunk", chunk)
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


def test_signals_pause_resume_and_stop_a_snapshot(capture: Signalled) -> None:
    capture.run("CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u SELECT generate_series(1, 10)")
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("t", "u", also="pause-snapshot")
        capture.signal("stop-snapshot", {"type": "incremental", "data-collections": [f"{capture.name}.t"]})
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO u VALUES (11)")
        capture.until("u", 1, task)
        capture.signal("resume-snapshot")
        capture.tasks.until(lambda: len(capture.read("u")) == 11, task, "the rows did not come")
        capture.snapshot("t", "u", also="stop-snapshot")
        capture.snapshot("u")
        capture.tasks.until(lambda: len(capture.read("u")) == 22, task, "the rows did not come")
    assert capture.read() == []


def test_a_snapshot_has_the_rows_of_a_condition(capture: Signalled) -> None:
    capture.run("CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u VALUES (1)")
    conditions = [
        {"data-collection": "another", "filter": "false"},
        {"data-collection": rf"{capture.name}\.T", "filter": "v % 5 = 0 AND b LIKE 'x%'"},
    ]
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("t", **{"additional-conditions": conditions})
        capture.snapshot("u")  # tables are read one after the other
        capture.tasks.until(lambda: len(capture.read("u")) == 1, task, "the rows did not come")
    assert [each["v"] for each in capture.read()] == [10, 20]


BAD = {
    "nonsense": ("nonsense", None, "this type of signal is not known"),
    "blocking": (
        "execute-snapshot",
        {"type": "blocking", "data-collections": ["t"]},
        "a snapshot of the type blocking is not known",
    ),
    "list": ("log", [1], "data is no object of JSON"),
    "no message": ("log", {}, "data has no field 'message'"),
    "no tables": ("execute-snapshot", {"data-collections": []}, "data-collections is no list of names"),
    "pattern": ("execute-snapshot", {"data-collections": ["("]}, "missing"),
    "missing": ("execute-snapshot", {"data-collections": ["missing"]}, "event=signal-names-no-captured-table table='missing'"),
}


def test_bad_signals_are_told_in_the_log_and_skipped(capture: Signalled, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    capture.run("CREATE TABLE loose (v int)")
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        for kind, data, _ in BAD.values():
            capture.signal(kind, data)
        capture.run("INSERT INTO signals VALUES ('broken', 'log', '{')")
        capture.signal("log", {"message": "all is well"})
        capture.snapshot("loose")
        capture.snapshot("t", **{"surrogate-key": "v"})
        capture.snapshot("t", **{"additional-conditions": [{"data-collection": f"{capture.name}.t", "filter": "no such thing"}]})
        capture.snapshot("t")
        capture.tasks.until(lambda: len(capture.read()) == 25, task, "the rows did not come")
    expected = [text for _, _, text in BAD.values()]
    for each in [
        *expected,
        "id='broken'",
        "message='all is well'",
        "no primary key",
        "surrogate-key v is no column",
        "no such thing",
    ]:
        assert each in caplog.text


def test_a_table_without_a_key_is_read_by_another_one(capture: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    capture.run("CREATE TABLE loose (v int NOT NULL UNIQUE, w int)", "ALTER TABLE loose REPLICA IDENTITY FULL")
    capture.run("INSERT INTO loose SELECT g, g FROM generate_series(1, 9) g")
    changes = ["UPDATE loose SET w = 0 WHERE v = 1", "DELETE FROM loose WHERE v = 2", "UPDATE loose SET v = 13 WHERE v = 3"]
    capture.on_the_first_chunk(monkeypatch, *changes)
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("loose", **{"surrogate-key": "v"})
        capture.tasks.until(lambda: len(capture.read("loose")) == 6, task, "the rows did not come")
    assert [each["v"] for each in capture.read("loose")] == [4, 5, 6, 7, 8, 9]


def test_the_table_of_signals_has_a_topic_if_it_is_chosen(capture: Signalled) -> None:
    chosen = {"table_include_list": rf"{capture.name}\.t"}
    for count, config in enumerate(({}, chosen), 1):
        with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100", **config)) as task:
            capture.until_streaming(task)
            capture.snapshot("t")
            capture.tasks.until(lambda count=count: len(capture.read()) == 25 * count, task, "the rows did not come")
    kinds = [after["type"] for _, _, after in capture.changes("signals")]
    assert kinds == ["execute-snapshot", "snapshot-window-open", "snapshot-window-close"]


@pytest.mark.parametrize("seed", range(2))
def test_the_records_make_the_table_while_others_write(capture: Signalled, seed: int) -> None:
    """Several connections change few rows, again and again, with small chunks and several snapshots; the task dies twice."""
    capture.run("UPDATE t SET v = 0", "CREATE TABLE last (id int PRIMARY KEY)", "INSERT INTO last VALUES (1)")
    task = capture.tasks.start(capture.capturing(incremental_snapshot_chunk_size="3"))
    capture.until_streaming(task)
    with capture.writing(seed, writers=3, transactions=60) as writers:
        for snapshots in (1, 2):
            capture.snapshot("t")
            capture.tasks.until(lambda snapshots=snapshots: len(capture.read()) >= 8 * snapshots, task, "the rows did not come")
            capture.tasks.stop(task)
            task = capture.tasks.start(capture.capturing(incremental_snapshot_chunk_size="3"))
        for each in writers:
            each.join()
    capture.snapshot("last")  # tables are read one after the other
    capture.tasks.until(lambda: len(capture.read("last")) == 1, task, "the snapshots did not end")
    capture.tasks.until(capture.equals, task, "the records do not make the table")
    assert capture.read()
