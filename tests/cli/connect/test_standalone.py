"""Kafka's quickstart with its own files: `connect-standalone.sh` is `barnabas connect standalone`."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from barnabas.testing.children import Child
from tests.cli.conftest import Command
from tests.cli.conftest import command as command
from tests.connect.plugins.servers import MariadbServer, PostgresServer, binaries_of_postgres
from tests.connect.plugins.targets import Target
from tests.connect.workers import Worker
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)
WORKER = """
bootstrap.servers={bootstrap}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.file.filename=/tmp/connect.offsets
offset.flush.interval.ms=10000
listeners=http://127.0.0.1:0
"""
SOURCE = "name=local-file-source\nconnector.class=FileStreamSource\ntasks.max=1\nfile=test.txt\ntopic=connect-test\n"
SINK = "name=local-file-sink\nconnector.class=FileStreamSink\ntasks.max=1\nfile=test.sink.txt\ntopics=connect-test\n"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def folder(broker: Broker, tmp_path: Path) -> Path:
    (tmp_path / "worker.properties").write_text(WORKER.format(bootstrap=broker.bootstrap_servers))
    (tmp_path / "source.properties").write_text(SOURCE)
    (tmp_path / "sink.properties").write_text(SINK)
    return tmp_path


class Address(NamedTuple):
    url: str
    pid: int


@contextmanager
def standalone(folder: Path, *files: str) -> Iterator[Worker]:
    arguments = [sys.executable, "-m", "barnabas.cli", "connect", "standalone", "worker.properties", *files]
    errors = folder / "errors.log"
    with errors.open("ab") as log:
        child: Child[str] = Child(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.search(r"accepts connections on (http://\S+)", line)
        assert found is not None, errors.read_text()
        yield Worker(Address(found[1], child.pid))
    finally:
        child.terminate()
        child.communicate(timeout=60)
    assert child.returncode == 0


def has_lines(path: Path, *lines: str) -> bool:
    return path.exists() and path.read_text().splitlines() == list(lines)


def topics_of(worker: Worker, name: str) -> list[str]:
    found: list[str] = worker.ask("GET", f"/connectors/{name}/topics")[1][name]["topics"]
    return found


def test_kafkas_quickstart(folder: Path) -> None:
    out = folder / "test.sink.txt"
    (folder / "test.txt").write_text("foo\nbar\n")
    with standalone(folder, "source.properties", "sink.properties") as worker:
        wait_until(lambda: has_lines(out, "foo", "bar"), "the lines did not come through", within_s=60)
        with (folder / "test.txt").open("a") as file:
            file.write("Another line\n")
        wait_until(lambda: has_lines(out, "foo", "bar", "Another line"), "the further line did not come", within_s=60)
        assert worker.ask("GET", "/connectors") == (200, ["local-file-source", "local-file-sink"])
        assert worker.states("local-file-sink") == ("RUNNING", ["RUNNING"])
        wait_until(lambda: topics_of(worker, "local-file-sink") == ["connect-test"], "the topic is not known")
        worker.ask("PUT", "/connectors/local-file-source/stop")
        worker.waits_for("local-file-source", "STOPPED", [])
    said = (folder / "errors.log").read_text()
    assert "offset.storage.file.filename has no effect: offsets of sources are in the topic offset.storage.topic" in said
    with standalone(folder, "source.properties", "sink.properties"):  # it goes on where it was
        with (folder / "test.txt").open("a") as file:
            file.write("last\n")
        wait_until(lambda: has_lines(out, "foo", "bar", "Another line", "last"), "the offsets were lost", within_s=60)


def test_a_failed_task_says_why_and_goes_on_by_itself(folder: Path) -> None:
    (folder / "test.txt").mkdir()
    with standalone(folder, "source.properties") as worker:
        worker.waits_for("local-file-source", "RUNNING", ["FAILED"])
        trace = worker.ask("GET", "/connectors/local-file-source/status")[1]["tasks"][0]["trace"]
        assert trace == "test.txt cannot be read: Is a directory"
        (folder / "test.txt").rmdir()
        (folder / "test.txt").write_text("foo\n")
        worker.waits_for("local-file-source", "RUNNING", ["RUNNING"])


def test_a_connector_of_json(folder: Path) -> None:
    connector = {"name": "json", "config": {"connector.class": "FileStreamSink", "topics": "t"}, "initial_state": "PAUSED"}
    (folder / "sink.json").write_text(json.dumps(connector))
    with standalone(folder, "sink.json") as worker:
        worker.waits_for("json", "PAUSED", ["PAUSED"])
        assert worker.ask("GET", "/connectors/json/config")[1]["topics"] == "t"


def test_a_connector_with_a_fault_ends_the_start(command: Command, folder: Path) -> None:
    (folder / "bad.properties").write_text("name=bad\nconnector.class=FileStreamSource\n")
    failed = command("connect", "standalone", folder / "worker.properties", folder / "bad.properties")
    assert (failed.code, failed.text) == (1, "")
    assert "the connector bad: " in failed.err
    assert 'Missing required configuration "topic" which has no default value.' in failed.err


def test_a_port_that_is_taken_names_the_option_of_the_command(command: Command, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for name in ("start", "standalone"):
            refused = command("connect", name, folder / "worker.properties", "--listener", address)
            assert refused.code == 2
            assert f"barnabas: Connect cannot listen on {address}" in refused.err
            assert "; --listener http://HOST:PORT chooses another address" in refused.err


def test_a_class_of_java_is_refused(command: Command, folder: Path) -> None:
    with (folder / "worker.properties").open("a") as file:
        file.write("rest.extension.classes=org.example.Login\n")
    refused = command("connect", "standalone", folder / "worker.properties")
    assert refused.code == 2
    assert "rest.extension.classes" in refused.err
    assert "authentication.method" in refused.err


TABLE_SINK = """name=rows
connector.class=JdbcSinkConnector
auto.create=true
max.retries=1
retry.backoff.ms=100
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
"""


def produce(broker: Broker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for each in values:
        producer.produce(topic, each)
    producer.flush()


def trace_of(worker: Worker, name: str) -> str:
    tasks = worker.ask("GET", f"/connectors/{name}/status")[1]["tasks"]
    return str(tasks[0].get("trace", "")) if tasks else ""


def test_a_database_that_goes_away_and_comes_back(broker: Broker, folder: Path) -> None:
    with closing(PostgresServer()) as postgres:
        target = Target(postgres.url, "postgres")
        address = f"connection.url={postgres.url}\nconnection.user=postgres\ntopics=guests\n"
        (folder / "rows.properties").write_text(TABLE_SINK + address)
        produce(broker, "guests", '{"id": 1}')
        with standalone(folder, "rows.properties") as worker:
            wait_until(lambda: target.has_table("guests"), "the table is not there", within_s=60)
            wait_until(lambda: target.run("SELECT id FROM guests") == [(1,)], "the first row did not come", within_s=60)
            postgres.end(signal.SIGINT)
            produce(broker, "guests", '{"id": 2}')
            wait_until(lambda: "cannot be reached" in trace_of(worker, "rows"), "the status does not say why", within_s=60)
            assert "\n" not in trace_of(worker, "rows")
            postgres.start()
            wait_until(lambda: target.run("SELECT id FROM guests ORDER BY id") == [(1,), (2,)], "the row is lost", within_s=60)
            worker.waits_for("rows", "RUNNING", ["RUNNING"])


def test_a_secret_that_changes_counts_at_the_next_start_of_the_task(broker: Broker, folder: Path) -> None:
    with (folder / "worker.properties").open("a") as file:
        file.write(
            "config.providers=file\nconfig.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        )
    secrets = folder / "secrets.properties"
    secrets.write_text(f"url=jdbc:sqlite:{folder}/absent-geheim/rows.db\n")
    (folder / "rows.properties").write_text(
        f"{TABLE_SINK}topics=people\nconnection.url=${{file:{secrets}:url}}\n".replace("name=rows", "name=hidden")
    )
    produce(broker, "people", '{"id": 9}')
    with standalone(folder, "rows.properties") as worker:
        worker.waits_for("hidden", "RUNNING", ["FAILED"])
        assert "\n" not in trace_of(worker, "hidden")
        secrets.write_text(f"url=jdbc:sqlite:{folder}/rows.db\n")
        worker.waits_for("hidden", "RUNNING", ["RUNNING"])
        target = Target(f"jdbc:sqlite:{folder}/rows.db")
        wait_until(lambda: target.has_table("people"), "the table is not there", within_s=60)
        wait_until(lambda: (9,) in target.run("SELECT id FROM people"), "the row is lost", within_s=60)


def test_confluents_quickstart_of_jdbc(broker: Broker, folder: Path) -> None:
    """A source of all tables, and a sink that makes a table in the same database."""
    shop = Target(f"jdbc:sqlite:{folder}/test.db")
    shop.run("CREATE TABLE accounts(id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name VARCHAR(255))")
    shop.run("INSERT INTO accounts(name) VALUES('alice'), ('bob')")
    (folder / "source.properties").write_text(
        "name=test-source-sqlite-jdbc-autoincrement\nconnector.class=io.confluent.connect.jdbc.JdbcSourceConnector\ntasks.max=1\n"
        "connection.url=jdbc:sqlite:test.db\nmode=incrementing\nincrementing.column.name=id\ntopic.prefix=test-sqlite-jdbc-\n"
        "table.poll.interval.ms=100\npoll.interval.ms=100\n"
    )
    (folder / "sink.properties").write_text(
        "name=test-sink\nconnector.class=io.confluent.connect.jdbc.JdbcSinkConnector\ntasks.max=1\ntopics=sold\n"
        "connection.url=jdbc:sqlite:test.db\nauto.create=true\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\nvalue.converter.schemas.enable=false\n"
    )
    topics = ["test-sqlite-jdbc-accounts", "test-sqlite-jdbc-sold"]
    with standalone(folder, "source.properties", "sink.properties") as worker:
        produce(broker, "sold", '{"id": 999, "product": "foo", "quantity": 100, "price": 50.0}')
        wait_until(
            lambda: topics_of(worker, "test-source-sqlite-jdbc-autoincrement") == topics, "the tables were not read", within_s=60
        )
        assert shop.run("SELECT id, product, quantity, price FROM sold") == [(999, "foo", 100, 50.0)]
        assert worker.states("test-source-sqlite-jdbc-autoincrement") == ("RUNNING", ["RUNNING"])


CUSTOMERS = (
    "(id {0} NOT NULL PRIMARY KEY, first_name VARCHAR(255) NOT NULL, last_name VARCHAR(255) NOT NULL, "
    "email VARCHAR(255) NOT NULL UNIQUE)"
)
SALLY = "INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('Sally', 'Thomas', 'sally.thomas@acme.com')"


@pytest.mark.skipif(binaries_of_postgres() is None, reason="PostgreSQL is not installed")
def test_debeziums_tutorial_of_postgres(broker: Broker, folder: Path, command: Command) -> None:
    with closing(PostgresServer()) as postgres:
        postgres.query(f"CREATE SCHEMA inventory; CREATE TABLE inventory.customers {CUSTOMERS.format('SERIAL')}; {SALLY}")
        registration = {
            "name": "inventory-connector",
            "config": {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "tasks.max": "1",
                "database.hostname": "127.0.0.1", "database.port": str(postgres.port), "database.user": "postgres",
                "database.password": "postgres", "database.dbname": "postgres", "topic.prefix": "pg",
                "schema.include.list": "inventory",
            },
        }  # fmt: skip
        with standalone(folder) as worker:
            assert_captured(worker, registration, "pg.inventory.customers", broker, command)


@pytest.mark.skipif(shutil.which("mariadb-install-db") is None, reason="MariaDB is not installed")
def test_debeziums_tutorial_of_mysql(broker: Broker, folder: Path, command: Command) -> None:
    with closing(MariadbServer()) as mariadb:
        mariadb.query("CREATE DATABASE inventory")
        mariadb.query(f"CREATE TABLE inventory.customers {CUSTOMERS.format('INTEGER AUTO_INCREMENT')}")
        mariadb.query(SALLY)
        mariadb.query("CREATE USER 'debezium'@'%' IDENTIFIED BY 'dbz'")
        mariadb.query("GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'debezium'@'%'")
        registration = {
            "name": "inventory-connector",
            "config": {
                "connector.class": "io.debezium.connector.mysql.MySqlConnector", "tasks.max": "1", "database.hostname": "127.0.0.1",
                "database.port": str(mariadb.port), "database.user": "debezium", "database.password": "dbz",
                "database.server.id": "184054", "topic.prefix": "my", "database.include.list": "inventory",
                "schema.history.internal.kafka.bootstrap.servers": "kafka:9092",
                "schema.history.internal.kafka.topic": "schema-changes.inventory",
            },
        }  # fmt: skip
        with standalone(folder) as worker:
            assert_captured(worker, registration, "my.inventory.customers", broker, command)


def assert_captured(worker: Worker, registration: Mapping[str, Any], topic: str, broker: Broker, command: Command) -> None:
    """Register a capture as the tutorial does, and find the row of its table in the topic."""
    name = registration["name"]
    status, answer = worker.ask("POST", "/connectors/", registration)
    assert (status, answer["config"]["database.password"]) == (201, "[hidden]")
    wait_until(lambda: topics_of(worker, name) == [topic], "the row did not come", within_s=60)
    (event,) = map(json.loads, command("consume", topic, "-b", broker.bootstrap_servers).lines)
    assert event["payload"]["op"] == "r"
    assert event["payload"]["after"] == {"id": 1, "first_name": "Sally", "last_name": "Thomas", "email": "sally.thomas@acme.com"}
    assert worker.states(name) == ("RUNNING", ["RUNNING"])
