"""Workers of Connect as processes: the REST interface over Kafka Connect's topics, with an engine that only says that it works."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.engine.jobs import ConnectorWork
from barnabas.testing import Broker
from tests.connect.fake_engine import FakeEngine
from tests.connect.workers import FILE_SINK, FILE_SOURCE, worker
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)
# tests of other Connect clusters on this broker leave jobs behind, so each has names of its own
SOURCE = {"connector.class": FILE_SOURCE, "file": "/tmp/in", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "file": "/tmp/out", "topics": "sunk", "tasks.max": "2"}


def records(bootstrap: str, topic: str) -> list[tuple[str, object]]:
    """The committed records of the first partition of a topic, in their order."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "isolation.level": "read_committed",
        "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[str, object]] = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        value = message.value()
        found.append(((message.key() or b"").decode(), None if value is None else json.loads(value)))
    consumer.close()
    return found


def make_topics(bootstrap: str, counts: dict[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for each in admin.create_topics([NewTopic(name, count) for name, count in counts.items()]).values():
        each.result(30)


def test_a_connector_from_its_creation_to_its_end(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    with worker(broker.bootstrap_servers, tmp_path, "life") as it:
        assert it.ask("GET", "/connectors") == (200, [])
        made = it.make("a", {**SOURCE, "tasks.max": 1})
        assert made == {"name": "a", "config": {**SOURCE, "tasks.max": "1", "name": "a"}, "tasks": [], "type": "source"}
        it.waits_for("a", "RUNNING", ["RUNNING"])
        job = engine.jobs.follow()["connect-a-0"]
        assert isinstance(job.work, ConnectorWork)
        assert (job.work.plugin, job.work.kind, job.work.config["file"]) == (FILE_SOURCE, "source", "/tmp/in")
        assert job.work.worker["offset.storage.topic"] == "life-offset"
        assert it.ask("GET", "/connectors/a")[1]["tasks"] == [{"connector": "a", "task": 0}]
        assert it.ask("PUT", "/connectors/a/pause") == (202, None)
        it.waits_for("a", "PAUSED", ["PAUSED"])
        assert it.ask("PUT", "/connectors/a/resume") == (202, None)
        it.waits_for("a", "RUNNING", ["RUNNING"])
        assert it.ask("PATCH", "/connectors/a/config", {"topic": "u"})[1]["config"]["topic"] == "u"
        wait_until(lambda: engine.jobs.follow()["connect-a-0"].restarts == 1)
        assert it.ask("PUT", "/connectors/a/stop") == (204, None)
        it.waits_for("a", "STOPPED", [])
        assert "connect-a-0" not in engine.jobs.follow()
        assert it.ask("PUT", "/connectors/a/resume") == (202, None)
        it.waits_for("a", "RUNNING", ["RUNNING"])
        assert it.ask("DELETE", "/connectors/a") == (204, None)
        it.waits_for("a", None, [])
        wait_until(lambda: "connect-a-0" not in engine.jobs.follow())


def test_the_topics_have_kafka_connects_records(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    with worker(broker.bootstrap_servers, tmp_path, "kept") as it:
        it.make("s", SOURCE, "STOPPED")
        it.waits_for("s", "STOPPED", [])
        it.ask("PUT", "/connectors/s/resume")
        it.waits_for("s", "RUNNING", ["RUNNING"])
    found = records(broker.bootstrap_servers, "kept-config")
    config = {**SOURCE, "name": "s"}
    assert found == [
        ("target-state-s", {"state": "PAUSED", "state.v2": "STOPPED"}),
        ("connector-s", {"properties": config}),
        ("target-state-s", {"state": "STARTED", "state.v2": "STARTED"}),
        ("task-s-0", {"properties": {**config, "task.class": FILE_SOURCE.replace("Connector", "Task")}}),
        ("commit-s", {"tasks": 1}),
    ]
    described = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=30).topics
    assert [len(described[f"kept-{name}"].partitions) for name in ("config", "status")] == [1, 5]


def test_a_cluster_of_kafka_connect_is_taken_over(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, {"taken-config": 1, "taken-offset": 7})
    producer = Producer({"bootstrap.servers": bootstrap})
    config = {**SOURCE, "tasks.max": "1", "name": "old"}
    for key, value in (
        ("session-key", {"key": "x", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
        ("target-state-old", {"state": "PAUSED", "state.v2": "PAUSED"}),
        ("connector-old", {"properties": config}),
        ("task-old-0", {"properties": {**config, "task.class": "org.apache.kafka.connect.file.FileStreamSourceTask"}}),
        ("commit-old", {"tasks": 1}), ("tasks-fencing-old", {"task-count": 1}),
    ):  # fmt: skip
        producer.produce("taken-config", json.dumps(value), key)
    producer.produce("taken-offset", b'{"position":6}', b'["old",{"filename":"/tmp/in"}]', partition=5)
    assert producer.flush(30) == 0
    with worker(bootstrap, tmp_path, "taken") as it:
        it.waits_for("old", "PAUSED", ["PAUSED"])
        offset = {"partition": {"filename": "/tmp/in"}, "offset": {"position": 6}}
        assert it.ask("GET", "/connectors/old/offsets") == (200, {"offsets": [offset]})


def test_a_failed_task_says_why_and_restarts(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    engine.failing["connect-f-1"] = "the disk is full"
    with worker(broker.bootstrap_servers, tmp_path, "failing") as it:
        it.make("f", SINK)
        it.waits_for("f", "RUNNING", ["RUNNING", "FAILED"])
        assert it.ask("GET", "/connectors/f/tasks/1/status")[1]["trace"] == "the disk is full"
        status, answer = it.ask("POST", "/connectors/f/restart?includeTasks=true&onlyFailed=true")
        assert (status, [each["state"] for each in answer["tasks"]]) == (202, ["RUNNING", "RESTARTING"])
        del engine.failing["connect-f-1"]
        it.waits_for("f", "RUNNING", ["RUNNING", "RUNNING"])
        assert [engine.jobs.follow()[f"connect-f-{task}"].restarts for task in range(2)] == [0, 1]
        assert it.ask("POST", "/connectors/f/tasks/0/restart") == (204, None)
        wait_until(lambda: engine.jobs.follow()["connect-f-0"].restarts == 1)
        assert it.ask("POST", "/connectors/f/restart") == (204, None)
        wait_until(lambda: ("restart-connector-f", None) in records(broker.bootstrap_servers, "failing-config"))


def test_a_class_that_makes_no_tasks_fails_its_connector_alone(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("size=5000\n")
    providers = {"config__providers": "file", "config__providers__file__class": "FileConfigProvider"}
    with worker(broker.bootstrap_servers, tmp_path, "classes", **providers) as it:
        reference = f"${{file:{secrets}:size}}"
        it.make("good", SOURCE)
        made = it.make("referring", {**SOURCE, "batch.size": reference}, "STOPPED")
        assert made["config"]["batch.size"] == reference
        secrets.write_text("size=hunter2\n")
        it.ask("PUT", "/connectors/referring/resume")
        it.waits_for("referring", "FAILED", [])
        trace = it.ask("GET", "/connectors/referring/status")[1]["connector"]["trace"]
        assert "hunter2" not in trace
        assert reference in trace
        it.waits_for("good", "RUNNING", ["RUNNING"])
        status, refused = it.ask("PUT", "/connectors/referring/config", {**SOURCE, "batch.size": reference})
        assert status == 400
        assert "hunter2" not in refused["message"]
        secrets.write_text("size=7\n")
        assert it.ask("POST", "/connectors/referring/restart") == (204, None)
        it.waits_for("referring", "RUNNING", ["RUNNING"])
        job = engine.jobs.follow()["connect-referring-0"]
        assert isinstance(job.work, ConnectorWork)
        assert job.work.config["batch.size"] == reference


def test_offsets_change_only_while_the_connector_is_stopped(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, {"sunk": 2})
    with worker(bootstrap, tmp_path, "offsets") as it:
        it.make("src", SOURCE)
        it.make("snk", SINK)
        place = {"filename": "/tmp/in"}
        source = [{"partition": place, "offset": {"position": 3}}]
        sink = [{"partition": {"kafka_partition": 1, "kafka_topic": "sunk"}, "offset": {"kafka_offset": 0}}]
        for name, items in (("src", source), ("snk", sink)):
            path = f"/connectors/{name}/offsets"
            status, refused = it.ask("PATCH", path, {"offsets": items})
            assert (status, "must be in the STOPPED state" in refused["message"]) == (400, True)
            assert it.ask("DELETE", path)[0] == 400
            it.ask("PUT", f"/connectors/{name}/stop")
            assert it.ask("PATCH", path, {"offsets": items})[0] == 200
            assert it.ask("GET", path) == (200, {"offsets": items})
            assert it.ask("DELETE", path)[0] == 200
            assert it.ask("GET", path) == (200, {"offsets": []})
        status, refused = it.ask(
            "PATCH", "/connectors/src/offsets", {"offsets": [{"partition": place, "offset": {"position": "x"}}]}
        )
        assert (status, "expected to be a Long value" in refused["message"]) == (500, True)
        wrong = [{"partition": {"kafka_partition": 9, "kafka_topic": "sunk"}, "offset": {"kafka_offset": 0}}]
        assert it.ask("PATCH", "/connectors/snk/offsets", {"offsets": wrong})[0] == 500


def test_offsets_in_the_target_of_a_sink_change_too(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, {"into": 1})
    url = tmp_path / "target.db"
    config = {"connector.class": "JdbcSinkConnector", "connection.url": f"jdbc:sqlite:{url}", "topics": "into"}

    def recorded() -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(url)) as database:
            return database.execute("SELECT kafka_topic, next_offset FROM _barnabas_offsets").fetchall()

    with worker(bootstrap, tmp_path, "target") as it:
        it.make("recorded", config)
        it.ask("PUT", "/connectors/recorded/stop")
        items = [{"partition": {"kafka_partition": 0, "kafka_topic": "into"}, "offset": {"kafka_offset": 0}}]
        assert it.ask("PATCH", "/connectors/recorded/offsets", {"offsets": items})[0] == 200
        assert recorded() == [("into", 0)]
        assert it.ask("DELETE", "/connectors/recorded/offsets")[0] == 200
        assert recorded() == []
        url.write_bytes(b"no database" * 100)
        status, refused = it.ask("PATCH", "/connectors/recorded/offsets", {"offsets": items})
        assert (status, "the target did not take the offsets" in refused["message"]) == (500, True)


def test_another_worker_leads_after_a_kill(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    with worker(bootstrap, tmp_path, "pair") as first:
        first.make("p", SOURCE)
        first.waits_for("p", "RUNNING", ["RUNNING"])
        with worker(bootstrap, tmp_path, "pair") as second:
            assert second.ask("GET", "/connectors") == (200, ["p"])
            assert second.ask("PUT", "/connectors/p/pause") == (202, None)
            first.waits_for("p", "PAUSED", ["PAUSED"])
            os.kill(first.process.pid, signal.SIGKILL)
            second.make("q", SOURCE)
            second.waits_for("q", "RUNNING", ["RUNNING"])
            assert second.ask("GET", "/connectors/q/status")[1]["connector"]["worker_id"] == second.url.removeprefix("http://")


def test_names_may_have_any_printable_character(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    with worker(broker.bootstrap_servers, tmp_path, "names") as it:
        it.make("a/b c%-1", {**SINK, "connector.class": FILE_SINK, "tasks.max": "1"})
        it.waits_for("a/b c%-1", "RUNNING", ["RUNNING"])
        assert it.ask("DELETE", "/connectors/a%2Fb%20c%25-1") == (204, None)
        for wrong in ("", "x" * 300, "a\u0007"):
            assert it.ask("POST", "/connectors", {"name": wrong, "config": SOURCE})[0] == 400


def test_bodies_that_cannot_be_read_are_refused(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    with worker(broker.bootstrap_servers, tmp_path, "bodies") as it:
        for raw in (
            b"",
            b"{",
            b"[1]",
            b'"x"',
            b"\xff",
            b"[" * 100_000,
            b'{"name":"x","config":{"a":{}}}',
            b'{"name":"x","foo":1}',
        ):
            status, refused = it.ask("POST", "/connectors", raw=raw)
            assert (status, refused["error_code"]) == (500, 500), raw
        assert it.ask("POST", "/connectors", {"name": "x", "config": {}}) == (
            400, {"error_code": 400, "message": "Connector config {name=x} contains no connector type"},
        )  # fmt: skip
        assert it.ask("GET", "/nope") == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
        assert it.ask("PUT", "/connectors")[0] == 405


def test_levels_of_loggers(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    with worker(broker.bootstrap_servers, tmp_path, "levels") as it:
        logger = "/admin/loggers/barnabas.connect.leading.leader"
        assert it.ask("PUT", logger, {"level": "debug"}) == (200, ["barnabas.connect.leading.leader"])
        assert it.ask("GET", logger)[1]["level"] == "DEBUG"
        assert it.ask("PUT", f"{logger}?scope=cluster", {"level": "ERROR"}) == (204, None)
        wait_until(lambda: it.ask("GET", logger)[1]["level"] == "ERROR")
        assert it.ask("PUT", logger, {"level": "x"}) == (404, {"error_code": 404, "message": "invalid log level 'x'."})
        assert it.ask("PUT", logger, {})[0] == 400
        assert it.ask("GET", "/admin/loggers/nope")[0] == 404
        assert it.ask("GET", "/admin/loggers")[1]["root"]["level"] in {"WARN", "INFO"}


# the requests of kafka-connect-py 1.0, kafka-connect-api 0.5, kcctl 1.0, kafbat 1.5 and AKHQ 0.26
CLIENTS = {
    "kafka-connect-py": (
        "GET /", "GET /connectors?expand=status", "GET /connectors/{}/tasks",
        "POST /connectors/{}/restart?includeTasks=true&onlyFailed=true",
    ),
    "kafka-connect-api": (
        "GET /connectors/", "GET /connectors/{}/", "GET /connectors/{}/status", "GET /connector-plugins/", "GET /admin/loggers/",
    ),
    "kcctl": (
        "GET /connectors/?expand=info&expand=status", "GET /connector-plugins/?connectorsOnly=false", "GET /connectors/{}/offsets",
        "GET /admin/loggers",
    ),
    "kafbat": (
        "GET /connectors", "GET /connectors/{}", "GET /connectors/{}/topics", "GET /connectors/{}/tasks/0/status",
        "GET /connector-plugins",
    ),
    "AKHQ": (
        "GET /connectors/{}/config", "GET /connector-plugins/FileStreamSource/config", "PUT /connectors/{}/pause",
        "PUT /connectors/{}/resume",
    ),
}  # fmt: skip


def test_requests_of_other_clients(broker: Broker, engine: FakeEngine, tmp_path: Path) -> None:
    with worker(broker.bootstrap_servers, tmp_path, "clients") as it:
        it.make("clients", SOURCE)
        it.waits_for("clients", "RUNNING", ["RUNNING"])
        answers = {
            (client, each): it.ask(method, path.format("clients"))[0]
            for client, requests in CLIENTS.items()
            for each in requests
            for method, path in [each.split()]
        }
        assert {each: status for each, status in answers.items() if status not in (200, 202, 204)} == {}
