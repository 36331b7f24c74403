"""Python clients of versions that Kafka 4 dropped: kafka-python 1.3 and 1.4, and faust with its topics and tables."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.conftest import Server
from tests.interop.environments import SOURCES, environment

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
WAIT_S = 60.0
WORDS = 200
WITH_SEVERAL_PARTITIONS = ("0.9-members", "0.10-members", "0.10.1-members", "asked-members")
Unique = Callable[[str], str]


def run(interpreter: Path, program: str, *arguments: str) -> list[str]:
    command = [str(interpreter), "-W", "ignore", str(SOURCES / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("version", "scenarios"), [("1.3", 23), ("1.4", 26)])
def test_every_scenario_of_kafka_python(version: str, scenarios: int, server: Server, unique: Unique) -> None:
    prefix = unique("old")
    topics = [NewTopic(f"{prefix}-{name}", 4, 1) for name in WITH_SEVERAL_PARTITIONS]
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for each in admin.create_topics(topics).values():
        each.result(WAIT_S)
    said = run(environment(f"kafka-python-{version}"), "old_kafka.py", server.bootstrap, prefix)
    assert len([line for line in said if line.startswith("ok ")]) == scenarios, said


def test_faust_makes_its_topics_and_has_its_table_again(server: Server, unique: Unique, tmp_path: Path) -> None:
    name = unique("faust")
    told = tmp_path / "told"
    for had in (0, WORDS):
        run(environment("faust"), "faust_app.py", server.bootstrap, name, str(WORDS), str(tmp_path), str(told))
        counts = {f"word {number}": WORDS // 5 for number in range(5)}
        assert json.loads(told.read_text()) == {"had": had, "counts": counts}
    found = AdminClient({"bootstrap.servers": server.bootstrap}).list_topics(timeout=WAIT_S).topics
    assert len(found[f"{name}-words"].partitions) == len(found[f"{name}-{name}-counts-changelog"].partitions) == 2
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": f"{name}-other", "auto.offset.reset": "earliest"})
    consumer.subscribe([f"{name}-words"])
    assert len(consumer.consume(WORDS, WAIT_S)) == WORDS
    consumer.close()
