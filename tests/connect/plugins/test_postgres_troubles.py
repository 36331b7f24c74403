"""A PostgreSQL database that cannot be captured at the moment: the status says why in one line, and nothing is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import psycopg2
import pytest

from barnabas.connect.plugins.postgres_capture.catalog import Catalog
from barnabas.connect.plugins.postgres_capture.settings import KEYS, settings_of
from barnabas.connect.plugins.postgres_capture.stream import Messages, Stream, StreamLost
from barnabas.engine.jobs import ConnectorWork, Job
from tests.connect.plugins.captures import reason_of, with_secrets
from tests.connect.plugins.servers import PostgresServer
from tests.connect.plugins.test_postgres_capture import PostgresCapture
from tests.connect.runtime.tasks import Tasks
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def own() -> Iterator[PostgresServer]:
    """A server that tests stop and set up anew."""
    with closing(PostgresServer()) as server:
        yield server


@pytest.fixture
def capture(tasks: Tasks, own: PostgresServer) -> Iterator[PostgresCapture]:
    made = PostgresCapture(tasks, own)
    yield made
    tasks.close()
    if own.process is None:
        own.start()
    own.query(f"DROP SCHEMA {made.name} CASCADE")
    own.query(f"DROP PUBLICATION IF EXISTS {made.name}")
    wait_until(lambda: own.query("SELECT count(*) FROM pg_replication_slots WHERE active") == [(0,)])
    own.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def test_a_password_that_changes(capture: PostgresCapture, tmp_path: Path) -> None:
    """The task fails, says why, and goes on with the new one: in the file of the config provider, or in the config."""
    user, secrets = f"u{capture.name}"[:60], tmp_path / "secrets.properties"
    secrets.write_text("password=one\n")
    capture.server.create_user(user, "one")
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")

    def job(password: str = f"${{file:{secrets}:password}}") -> Job:
        return with_secrets(capture.job(database_user=user, database_password=password))

    task = capture.tasks.start(job())
    capture.until_streaming(task)
    capture.run("INSERT INTO t VALUES (1)")
    capture.until("t", 1, task)
    capture.server.change_password(user, "two")
    capture.server.end_connections(user)
    assert "has lost the connection of the slot" in reason_of(task) or "password" in reason_of(task)
    capture.tasks.stop(task)
    capture.run("INSERT INTO t VALUES (2)")
    task = capture.tasks.start(job())
    assert f'password authentication failed for user "{user}"' in reason_of(task)
    capture.tasks.stop(task)
    secrets.write_text("password=two\n")
    with capture.tasks.running(job()) as task:
        capture.until("t", 2, task)
        capture.server.change_password(user, "three")
        capture.server.end_connections(user)
        reason_of(task)
    capture.run("INSERT INTO t VALUES (3)")
    with capture.tasks.running(job("three")) as task:
        found = capture.until("t", 3, task)
    assert [after["id"] for _, _, after in found] == [1, 2, 3]


def test_a_database_that_is_gone_for_a_while(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    task = capture.tasks.start(capture.job())
    capture.until("t", 1, task)
    capture.until_streaming(task)
    capture.server.end(signal.SIGINT)
    assert "lost the connection of the slot" in reason_of(task)
    capture.tasks.stop(task)
    task = capture.tasks.start(capture.job())
    assert "cannot be reached" in reason_of(task)
    capture.tasks.stop(task)
    capture.server.start()
    capture.run("INSERT INTO t VALUES (2)")
    with capture.tasks.running(capture.job()) as task:
        assert [after["id"] for _, _, after in capture.until("t", 2, task)] == [1, 2]


def test_a_server_without_logical_decoding(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")
    capture.server.end(signal.SIGINT)
    capture.server.start(wal_level="replica")
    try:
        task = capture.tasks.start(capture.job())
        assert "has wal_level=replica: set wal_level=logical in postgresql.conf, and restart the server" in reason_of(task)
        capture.tasks.stop(task)
    finally:
        capture.server.end(signal.SIGINT)
        capture.server.start()
    capture.run("INSERT INTO t VALUES (1)")
    with capture.tasks.running(capture.job()) as task:
        assert capture.until("t", 1, task) == [("r", None, {"id": 1})]


def test_a_publication_that_is_dropped(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")
    task = capture.tasks.start(capture.job())
    capture.until_streaming(task)
    capture.run(f"DROP PUBLICATION {capture.name}", "INSERT INTO t VALUES (1)")
    assert f'does not stream from the slot {capture.name}: publication "{capture.name}" does not exist' in reason_of(task)


def test_a_reason_that_the_library_tells() -> None:
    """An error of a statement or an option is the reason; a shutdown of the server is none."""

    def reason(state: str | None) -> str | None:
        error = psycopg2.ProgrammingError("no publication")
        error.__setstate__({"pgcode": state})
        cursor = SimpleNamespace(read_message=Mock(side_effect=error))
        connection = SimpleNamespace(cursor=lambda: cursor, close=lambda: None)
        with patch.object(psycopg2, "connect", return_value=connection), pytest.raises(StreamLost) as raised:
            Stream(SimpleNamespace(connection={}), "here").receive(Messages(), 1, 1)  # type: ignore[arg-type]  # a part of the settings
        assert str(raised.value) == "here has lost the connection of the slot: no publication"
        return raised.value.reason

    assert reason("42704") == "no publication"
    assert [reason(state) for state in ("57P01", "08006", None)] == [None] * 3


def test_a_reason_that_the_server_gives_once_the_slot_is_free(capture: PostgresCapture) -> None:
    """Its end of the lost stream may hold the slot for a moment."""
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")
    task = capture.tasks.start(capture.job())
    capture.until_streaming(task)
    capture.tasks.stop(task)
    job = capture.job()
    assert isinstance(job.work, ConnectorWork)
    settings = settings_of(KEYS.parse(job.work.config))
    catalog = Catalog(settings)
    with closing(catalog), closing(Stream(settings, catalog.place)) as holder:
        holder.start(0)
        capture.run(f"DROP PUBLICATION {capture.name}", "INSERT INTO t VALUES (1)")

        def release(_: float) -> None:
            holder.close()

        with patch.object(time, "sleep", release):
            reason = catalog.reason_of_loss()
        assert reason is not None
        assert reason.startswith(f'publication "{capture.name}" does not exist')


def test_a_slot_that_another_connection_uses(capture: PostgresCapture) -> None:
    """The capture tries again, and then says who has it; when it is free, it goes on."""
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")
    with capture.tasks.running(capture.job()) as first:
        capture.until_streaming(first)
        second = capture.tasks.start(capture.job(slot_max_retries="1", slot_retry_delay_ms="50", topic_prefix="q"))
        reason = reason_of(second)
        assert f'does not stream from the slot {capture.name}: replication slot "{capture.name}" is active for PID' in reason


def test_a_slot_whose_wal_was_removed(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    task = capture.tasks.start(capture.job())
    capture.until("t", 1, task)
    capture.until_streaming(task)
    capture.tasks.stop(task)
    own = capture.server
    own.query("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    own.query("SELECT pg_reload_conf()")
    try:
        status = f"SELECT wal_status FROM pg_replication_slots WHERE slot_name = '{capture.name}'"

        def is_lost() -> bool:
            capture.run("INSERT INTO t SELECT max(id) + 1 FROM t")
            own.query("SELECT pg_switch_wal()")
            own.query("CHECKPOINT")
            return own.query(status) == [("lost",)]

        wait_until(is_lost, "the server keeps the WAL")
        task = capture.tasks.start(capture.job())
        reason = reason_of(task)
        assert f"has removed the WAL that the slot {capture.name} needs (max_slot_wal_keep_size): changes are lost" in reason
        assert "Drop the slot, and delete the offsets" in reason
    finally:
        own.query("ALTER SYSTEM RESET max_slot_wal_keep_size")
        own.query("SELECT pg_reload_conf()")


def test_texts_of_a_database_with_another_encoding(capture: PostgresCapture) -> None:
    own, name = capture.server, f"l{capture.name}"[:60]
    own.query(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        with own.connect(name) as connection:
            connection.execute("CREATE SCHEMA s")
            connection.execute("CREATE TABLE s.t (id int PRIMARY KEY, v text)")
            connection.execute("INSERT INTO s.t VALUES (1, 'é')")
        job = capture.job(database_dbname=name, schema_include_list="s", topic_prefix=name)
        topic = f"{name}.s.t"
        with capture.tasks.running(job) as task:
            capture.tasks.until(lambda: len(capture.values(topic)) == 1, task, "the row did not come")
            with own.connect(name) as connection:
                connection.execute("INSERT INTO s.t VALUES (2, 'ü')")
            capture.tasks.until(lambda: len(capture.values(topic)) == 2, task, "the change did not come")
        assert [value["after"]["v"] for value in capture.values(topic)] == ["é", "ü"]
    finally:
        wait_until(lambda: own.query("SELECT count(*) FROM pg_replication_slots WHERE active") == [(0,)])
        own.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        own.query(f"DROP DATABASE {name}")
