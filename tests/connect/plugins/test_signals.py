"""Incremental snapshots of PostgreSQL and MariaDB, which signals ask for while the capture runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pymysql
import pytest

from barnabas.connect.plugins.mysql_capture.chunks import Chunks as MysqlChunks
from barnabas.connect.plugins.postgres_capture.chunks import Chunks as PostgresChunks
from barnabas.connect.runtime.transaction import TransactionalWriter
from tests.connect.plugins.servers import MariadbServer, PostgresServer
from tests.connect.plugins.signalled import COUNT, Signalled
from tests.connect.plugins.test_mysql_capture import MysqlCapture
from tests.connect.plugins.test_postgres_capture import PostgresCapture
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_kills import die_once
from tests.waiting import wait_until

TABLES = (
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
    "CREATE TABLE ready (v int)",
    "CREATE TABLE t (a int, b varchar(9), v int, PRIMARY KEY (b, a))",
    "CREATE TABLE u (id int PRIMARY KEY)",
    "INSERT INTO u VALUES (1), (2), (3), (4), (5), (6)",
    "CREATE TABLE loose (v int NOT NULL UNIQUE, w int)",
)


class SignalledPostgres(Signalled, PostgresCapture):
    """A capture of PostgreSQL."""

    chunks = PostgresChunks
    conflicts = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected)
    text = "x''\\"
    types = ("numeric(10,2)", "timestamptz", "bytea")
    small = "E'\\\\x00ff'"

    def connect(self) -> psycopg.Connection[object]:
        connection = self.server.connect()
        connection.execute(f"SET search_path = {self.name}".encode())
        return connection


class SignalledMariadb(Signalled, MysqlCapture):
    """A capture of MariaDB."""

    chunks = MysqlChunks
    conflicts = (pymysql.err.IntegrityError, pymysql.err.OperationalError)
    text = "x''\\\\"
    types = ("decimal(10,2)", "datetime(6)", "varbinary(4)")
    small = "x'00ff'"

    def connect(self) -> object:
        return self.server.connect(self.name)


def opened(tasks: Tasks, server: PostgresServer | MariadbServer) -> Iterator[Signalled]:
    """A capture with its tables."""
    made = SignalledPostgres(tasks, server) if isinstance(server, PostgresServer) else SignalledMariadb(tasks, server)
    made.run(
        *TABLES, *(f"INSERT INTO t VALUES ({each}, '{'é' if each % 2 else made.text}', {each})" for each in range(1, COUNT + 1))
    )
    if isinstance(made, SignalledPostgres):
        made.run("ALTER TABLE loose REPLICA IDENTITY FULL", "ALTER TABLE ready REPLICA IDENTITY FULL")
    yield made
    tasks.close()
    if isinstance(made, SignalledPostgres):
        made.drop()


@pytest.fixture(params=["postgres", "mariadb"])
def capture(tasks: Tasks, request: pytest.FixtureRequest) -> Iterator[Signalled]:
    yield from opened(tasks, request.getfixturevalue(request.param))


def test_a_signal_reads_a_table_while_changes_go_on(capture: Signalled) -> None:
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("t")
        capture.run("UPDATE t SET v = -v WHERE a = 20", "DELETE FROM t WHERE a = 25", "INSERT INTO t VALUES (0, 'é', 0)")
        capture.tasks.until(lambda: len(capture.changes("t")) >= COUNT and capture.equals(), task, "the rows did not come")
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
        capture.until_read(COUNT - 3, task)
        assert capture.equals()
    assert {2, 4, 6}.isdisjoint({each["a"] for each in capture.read()})


def _kill(capture: Signalled, task: Any, dying: pytest.MonkeyPatch, *, after: bool) -> None:
    """Let a task die with the next transaction. A row that was read changes, because one within a window would be left out."""
    died = die_once(dying, TransactionalWriter, "write", after=after)
    capture.run(f"UPDATE t SET v = v + 1 WHERE a = {capture.read()[0]['a']}")
    wait_until(lambda: bool(died) and task.failure() is not None, "it did not die")
    capture.tasks.stop(task)


@pytest.mark.parametrize("after", [False, True])
def test_a_snapshot_goes_on_after_a_kill(capture: Signalled, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    task = capture.tasks.start(capture.capturing())
    capture.until_streaming(task)
    capture.snapshot("t")
    for count in (1, 13):
        capture.until_some_are_read(count, task)
        with monkeypatch.context() as dying:
            _kill(capture, task, dying, after=after)
        task = capture.tasks.start(capture.capturing())
    capture.until_read(COUNT, task)
    capture.tasks.until(capture.equals, task, "the records do not make the table")
    assert sorted(each["a"] for each in capture.read()) == list(range(1, COUNT + 1))


def test_signals_pause_resume_and_stop_a_snapshot(capture: Signalled) -> None:
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("t", "u", also="pause-snapshot")
        capture.signal("stop-snapshot", {"type": "incremental", "data-collections": [f"{capture.name}.t"]})
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO u VALUES (7)")
        capture.until("u", 1, task)
        capture.signal("resume-snapshot")
        capture.until_read(7, task, "u")
        capture.snapshot("t", "u", also="stop-snapshot")
        capture.snapshot("u")
        capture.until_read(14, task, "u")
    assert capture.read() == []


def test_a_snapshot_has_the_rows_of_a_condition(capture: Signalled) -> None:
    conditions = [
        {"data-collection": "another", "filter": "false"},
        {"data-collection": f"{capture.name}[.]T", "filter": "v % 5 = 0 AND b LIKE 'x%'"},
    ]
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("t", conditions=conditions)
        capture.snapshot("u")  # tables are read one after the other
        capture.until_read(6, task, "u")
    assert [each["v"] for each in capture.read()] == [10, 20]


BAD: dict[str, tuple[str, Any, str]] = {
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
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        for kind, data, _ in BAD.values():
            capture.signal(kind, data)
        capture.run("INSERT INTO signals VALUES ('broken', 'log', '{')")
        capture.signal("log", {"message": "all is well"})
        capture.snapshot("loose")
        capture.snapshot("t", key="v")
        capture.snapshot("t", conditions=[{"data-collection": f"{capture.name}.t", "filter": "no_such_column = 1"}])
        capture.snapshot("t")
        capture.until_read(COUNT, task)
    expected = [text for _, _, text in BAD.values()]
    for each in [
        *expected,
        "id='broken'",
        "message='all is well'",
        "no primary key",
        "surrogate-key v is no column",
        "no_such_column",
    ]:
        assert each in caplog.text


def test_a_table_without_a_key_is_read_by_another_one(capture: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    capture.run(*(f"INSERT INTO loose VALUES ({each}, {each})" for each in range(1, 10)))
    changes = ["UPDATE loose SET w = 0 WHERE v = 1", "DELETE FROM loose WHERE v = 2", "UPDATE loose SET v = 13 WHERE v = 3"]
    capture.on_the_first_chunk(monkeypatch, *changes)
    with capture.tasks.running(capture.capturing()) as task:
        capture.until_streaming(task)
        capture.snapshot("loose", key="v")
        capture.until_read(6, task, "loose")
    assert [each["v"] for each in capture.read("loose")] == [4, 5, 6, 7, 8, 9]


def test_tables_are_read_in_the_order_of_keys_of_many_types(capture: Signalled) -> None:
    number, time, data = capture.types
    capture.run(f"CREATE TABLE k (n {number}, at {time}, d {data}, v int, PRIMARY KEY (n, at, d))")
    rows = [
        (number, time, data)
        for number in ("-1.50", "2.00", "10.00")
        for time in ("'1999-12-31 23:59:59.999999'", "'2020-01-01 00:00:00'")
        for data in (capture.small, "'a'", "'b'")
    ]
    values = ", ".join(f"({', '.join(row)}, {number})" for number, row in enumerate(rows))
    capture.run(f"INSERT INTO k VALUES {values}")
    with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="2")) as task:
        capture.until_streaming(task)
        capture.snapshot("k")
        capture.until_read(len(rows), task, "k")
    assert [each["v"] for each in capture.read("k")] == list(range(len(rows)))


def test_the_table_of_signals_has_a_topic_whatever_the_lists_choose(capture: Signalled) -> None:
    chosen = {"table_include_list": f"{capture.name}[.](t|ready)"}
    for count, config in enumerate(({}, chosen), 1):
        with capture.tasks.running(capture.capturing(incremental_snapshot_chunk_size="100", **config)) as task:
            capture.until_streaming(task)
            capture.snapshot("t")
            capture.until_read(COUNT * count, task)
    kinds = [after["type"] for _, _, after in capture.changes("signals")]
    assert kinds == 2 * ["execute-snapshot", "snapshot-window-open", "snapshot-window-close"]


def test_the_records_make_the_table_while_others_write(capture: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several connections change few rows, again and again, with small chunks and several snapshots; the task dies twice."""
    capture.run("UPDATE t SET v = 0")
    job = capture.capturing(incremental_snapshot_chunk_size="3")
    task = capture.tasks.start(job)
    capture.until_streaming(task)
    with capture.writing(monkeypatch, writers=3):
        for snapshots in (1, 2):
            capture.snapshot("t")
            capture.tasks.until(partial(capture.has_closed, 4 * snapshots), task, "no chunk was read")
            capture.tasks.stop(task)
            task = capture.tasks.start(job)
    capture.snapshot("u")  # tables are read one after the other
    capture.until_read(6, task, "u")
    capture.tasks.until(capture.equals, task, "the records do not make the table")
    assert capture.read()


def test_signals_come_by_a_topic(capture: Signalled, caplog: pytest.LogCaptureFixture) -> None:
    capture.tasks.create_topic()
    by_topic = {
        "signal_kafka_topic": capture.tasks.topic, "signal_kafka_bootstrap_servers": capture.tasks.broker.bootstrap_servers,
        "signal_poll_interval_ms": "50",
    }  # fmt: skip

    def execute(table: str) -> str:
        data = {"type": "incremental", "data-collections": [f"{capture.name}.{table}"]}
        return json.dumps({"id": "a", "type": "execute-snapshot", "data": data})

    capture.tasks.produce(execute("u"), key="another")
    capture.tasks.produce("[]", "{", execute("t"), key=capture.prefix)
    with capture.tasks.running(capture.capturing(signal_enabled_channels="source,kafka", **by_topic)) as task:
        capture.until_read(COUNT, task)
    with capture.tasks.running(capture.capturing(signal_enabled_channels="kafka", **by_topic)) as task:
        capture.snapshot("t")  # the channel is not open
        capture.until_streaming(task)
        capture.tasks.produce(execute("u"), key=capture.prefix)
        capture.until_read(6, task, "u")
    assert len(capture.read()) == COUNT
    assert caplog.text.count("event=signal-not-understood topic=") == 2
