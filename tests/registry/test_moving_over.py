"""The ways of the guide `docs/guides/from-confluent.md`: a copy of the topic by its commands, and an import over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.schemas.registry_client import RegistryClient
from barnabas.testing.broker import Broker
from barnabas.testing.services import ServicesProcess
from tests.waiting import wait_until

COMMAND = [sys.executable, "-m", "barnabas.cli"]
SETTINGS = (("contexts",), ("config",), ("config", "orders/eu"), ("mode",), ("mode", "orders/eu"))
RECORD = '{{"type":"record","name":"R","fields":[{{"name":"{}","type":["null","long"],"default":null,"doc":"é\\t:"}}]}}'
Start = Callable[[str], ServicesProcess]


@pytest.fixture
def start(kafka_session: Broker, tmp_path: Path) -> Any:
    """Starts a registry on a topic."""
    running = []

    def started(topic: str) -> ServicesProcess:
        properties = {
            "bootstrap.servers": kafka_session.bootstrap_servers, "kafkastore.topic": topic, "schema.registry.group.id": topic,
        }  # fmt: skip
        running.append(ServicesProcess("registry", properties, tmp_path / f"{topic}.log"))
        return running[-1]

    yield started
    for each in running:
        each.close()


def fill(client: RegistryClient) -> None:
    """Versions, a context, references, deletes and settings."""
    versions = "subjects", "orders/eu", "versions"
    for name in ("first", "second", "third"):
        client.post(*versions, body={"schema": RECORD.format(name), "metadata": {"properties": {"a": name}}})
    reference = {"name": "R", "subject": "orders/eu", "version": 2}
    array = {"schema": '{"type":"array","items":"R"}', "references": [reference]}
    client.post("subjects", "user", "versions", body=array)
    client.post("subjects", ":.c:other", "versions", body={"schema": '"string"'})
    client.post("subjects", "gone", "versions", body={"schema": '"bytes"'})
    client.delete(*versions, 1)
    client.delete("subjects", "gone")
    client.delete("subjects", "gone", permanent=True)
    client.put("config", body={"compatibility": "NONE"})
    client.put("config", "orders/eu", body={"compatibility": "FULL"})
    client.put("mode", "orders/eu", body={"mode": "READONLY"})


def shown(client: RegistryClient) -> list[Any]:
    """What readers see."""
    schemas = client.get("schemas", deleted=True, subjectPrefix=":*:")
    return [schemas, *(client.get(*path) for path in SETTINGS)]


def test_a_copied_topic_is_the_same_registry(start: Start, kafka_session: Broker) -> None:
    with RegistryClient(start("moved-from").url) as old, RegistryClient(start("moved-to").url) as new:
        fill(old)
        old.put("mode", body={"mode": "READONLY"})
        address = ["-b", kafka_session.bootstrap_servers]
        copied = subprocess.run(
            [*COMMAND, "consume", "moved-from", "--format", "json", *address], capture_output=True, check=True, timeout=60
        )
        subprocess.run(
            [*COMMAND, "produce", "moved-to", "--format", "json", *address], input=copied.stdout, check=True, timeout=60
        )
        wait_until(lambda: shown(new) == shown(old))
        new.put("mode", body={"mode": "READWRITE"})
        ids = [each["id"] for each in new.get("schemas", deleted=True)]
        registered = new.post("subjects", "next", "versions", body={"schema": '"boolean"'})
        assert registered["id"] > max(ids)


def test_an_import_keeps_ids_and_settings(start: Start) -> None:
    source, target = start("imported-from"), start("imported-to")
    with RegistryClient(source.url) as old, RegistryClient(target.url) as new:
        fill(old)
        command = [*COMMAND, "schema", "import", "--from", source.url, "--schema-registry", target.url]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True)
        assert "5 schemas imported, 0 were there already" in done.stdout

        def without_times(client: RegistryClient) -> list[Any]:
            schemas, *rest = shown(client)
            return [[{**each, "ts": 0} for each in schemas], *rest]

        assert without_times(new) == without_times(old)
