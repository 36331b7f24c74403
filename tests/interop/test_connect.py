"""Kafka Connect in distributed mode: groups of a protocol of its own, compacted topics for its state, and sources in transactions."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from tools.kafka import free_ports, java

from barnabas.testing.services import ServicesProcess
from tests.interop.conftest import Server
from tests.interop.test_frameworks import JVM, process
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
WITHIN_S = 180.0
REST_TIMEOUT_S = 120.0  # a worker answers some requests only after its group is stable
OF_FILES = "org.apache.kafka.connect.file.FileStream"
STORED = ("config", "offset", "status")
Unique = Callable[[str], str]


class Worker:
    """The REST interface of a worker."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer; None where it is a refusal, or there is nobody yet."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REST_TIMEOUT_S) as answer:
                return json.loads(answer.read() or b"{}")
        except (OSError, urllib.error.HTTPError, ValueError):
            return None

    def has_answered(self, method: str, path: str, body: object = None) -> None:
        """Ask until it is granted: a worker refuses while its group settles."""
        wait_until(lambda: self.ask(method, path, body) is not None, f"{method} {path} is refused", within_s=WITHIN_S)

    def is_in(self, state: str, connector: str) -> bool:
        status = self.ask("GET", f"/connectors/{connector}/status")
        return status is not None and {status["connector"]["state"], *(task["state"] for task in status["tasks"])} == {state}

    def offsets(self, connector: str) -> list[dict[str, Any]]:
        answer = self.ask("GET", f"/connectors/{connector}/offsets")
        return [] if answer is None else answer["offsets"]


def settings_of_worker(server: Server, group: str, port: int) -> str:
    converter = "org.apache.kafka.connect.storage.StringConverter"
    topics = "".join(f"{name}.storage.topic={group}-{name}\n{name}.storage.replication.factor=1\n" for name in STORED)
    return (
        f"bootstrap.servers={server.bootstrap}\ngroup.id={group}\nkey.converter={converter}\nvalue.converter={converter}\n{topics}"
        f"offset.storage.partitions=3\nstatus.storage.partitions=2\nlisteners=http://127.0.0.1:{port}\n"
        "exactly.once.source.support=enabled\noffset.flush.interval.ms=500\nplugin.discovery=service_load\n"
        "scheduled.rebalance.max.delay.ms=1000\nsession.timeout.ms=6000\nheartbeat.interval.ms=1000\n"
    )


def test_lines_go_from_file_to_file_once_though_the_worker_is_killed(server: Server, unique: Unique, tmp_path: Path) -> None:
    group, topic, port = unique("group"), unique("topic"), free_ports(1)[0]
    settings, read, written = tmp_path / "settings", tmp_path / "read", tmp_path / "written"
    settings.write_text(settings_of_worker(server, group, port))
    read.write_text("".join(f"line {index}\n" for index in range(500)))
    source = {"connector.class": f"{OF_FILES}SourceConnector", "file": str(read), "topic": topic, "tasks.max": "1"}
    partitions = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1"}
    sink = {"connector.class": f"{OF_FILES}SinkConnector", "file": str(written), "topics": topic, "tasks.max": "1"}
    command = java("org.apache.kafka.connect.cli.ConnectDistributed", str(settings), jvm=JVM, jars="frameworks")
    worker = Worker(port)

    def lines() -> list[str]:
        return written.read_text().splitlines() if written.exists() else []

    with process(command, tmp_path):
        worker.has_answered("PUT", "/connectors/source/config", source | partitions)
        wait_until(lambda: worker.is_in("RUNNING", "source"), "the source does not run", within_s=WITHIN_S)
        committed = {"consumer.override.isolation.level": "read_committed", "consumer.override.metadata.max.age.ms": "500"}
        worker.has_answered("PUT", "/connectors/sink/config", sink | committed)
        wait_until(lambda: len(lines()) == 500, "not every line came", within_s=WITHIN_S)
        wait_until(lambda: worker.offsets("sink"), "the offsets of the sink are not committed", within_s=WITHIN_S)
    with read.open("a") as more, process(command, tmp_path):
        more.write("".join(f"line {index}\n" for index in range(500, 700)))
        more.flush()
        wait_until(lambda: "line 699" in lines(), "the lines after the kill did not come", within_s=WITHIN_S)
        assert len(set(lines())) == 700
        at = [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 600}}]
        worker.has_answered("PUT", "/connectors/sink/stop")
        wait_until(lambda: worker.is_in("STOPPED", "sink"), "the sink does not stop", within_s=WITHIN_S)
        worker.has_answered("PATCH", "/connectors/sink/offsets", {"offsets": at})
        assert worker.offsets("sink") == at
        worker.has_answered("DELETE", "/connectors/sink/offsets")
        assert worker.offsets("sink") == []
    resources = [ConfigResource(ConfigResource.Type.TOPIC, f"{group}-{name}") for name in STORED]
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    described = admin.describe_configs(resources)
    assert {each.result(WITHIN_S)["cleanup.policy"].value for each in described.values()} == {"compact"}


def test_kafka_connect_takes_over_from_barnabas(server: Server, unique: Unique, tmp_path: Path) -> None:
    """Kafka Connect reads connectors, target states and offsets that a worker of barnabas wrote."""
    group, port = unique("group"), free_ports(1)[0]
    config = {"connector.class": f"{OF_FILES}SourceConnector", "file": "/no/such/file", "topic": "t", "tasks.max": "1"}
    at = [{"partition": {"filename": "/no/such/file"}, "offset": {"position": 42}}]
    topics = {f"{name}.storage.topic": f"{group}-{name}" for name in STORED}
    ours = ServicesProcess("connect", {"bootstrap.servers": server.bootstrap, "group.id": group, **topics}, tmp_path / "ours.log")
    try:
        worker = Worker(int(ours.url.rpartition(":")[2]))
        for name, state in (("stopped", "STOPPED"), ("paused", "PAUSED")):
            worker.has_answered("POST", "/connectors", {"name": name, "config": config, "initial_state": state})
        worker.has_answered("PATCH", "/connectors/stopped/offsets", {"offsets": at})
        wait_until(lambda: worker.ask("GET", "/connectors/paused/tasks"), "the leader makes no tasks", within_s=WITHIN_S)
        (task,) = worker.ask("GET", "/connectors/paused/tasks")
    finally:
        ours.close()
    settings = tmp_path / "settings"
    settings.write_text(settings_of_worker(server, group, port))
    command = java("org.apache.kafka.connect.cli.ConnectDistributed", str(settings), jvm=JVM, jars="frameworks")
    worker = Worker(port)
    with process(command, tmp_path):
        worker.has_answered("GET", "/connectors")
        assert sorted(worker.ask("GET", "/connectors")) == ["paused", "stopped"]
        assert worker.ask("GET", "/connectors/stopped/config") == {**config, "name": "stopped"}
        assert worker.offsets("stopped") == at
        wait_until(lambda: worker.is_in("PAUSED", "paused"), "the connector is not paused", within_s=WITHIN_S)
        wait_until(lambda: worker.is_in("STOPPED", "stopped"), "the connector is not stopped", within_s=WITHIN_S)
        assert [each["id"] for each in worker.ask("GET", "/connectors/paused/tasks")] == [task["id"]]
        worker.has_answered("PUT", "/connectors/stopped/resume")
        wait_until(lambda: worker.is_in("RUNNING", "stopped"), "the connector does not run", within_s=WITHIN_S)
