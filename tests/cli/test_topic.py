"""`barnabas topic`."""

from __future__ import annotations

import pytest

from barnabas.cli.errors import BadInput
from barnabas.cli.topic import parse_assignment
from tests.cli.conftest import Command, eventually


def test_create_list_describe_alter_delete(kafka_command: Command, name: str) -> None:
    created = kafka_command("topic", "create", name, "-p", 3, "--config", "retention.ms=5000")
    assert (created.code, created.text) == (0, f"created topic {name}\n")
    eventually(lambda: kafka_command("topic", "describe", name).code == 0)
    row = next(line.split() for line in kafka_command("topic", "list").lines if line.startswith(name + " "))
    assert row == [name, "3", "1", "no"]
    (described,) = kafka_command("topic", "describe", name, "--json").json
    assert [p["partition"] for p in described["partitions"]] == [0, 1, 2]
    assert {p["end"] for p in described["partitions"]} == {0}
    assert {s["name"]: s["value"] for s in described["settings"]}["retention.ms"] == "5000"
    assert kafka_command("topic", "alter", name, "-p", 4, "--set", "cleanup.policy=compact", "--delete", "retention.ms").code == 0
    eventually(lambda: len(kafka_command("topic", "describe", name, "--json").json[0]["partitions"]) == 4)
    (described,) = kafka_command("topic", "describe", name, "--json").json
    settings = {s["name"]: s["value"] for s in described["settings"]}
    assert settings["cleanup.policy"] == "compact"
    assert "retention.ms" not in settings
    assert kafka_command("topic", "delete", name).text == f"deleted topic {name}\n"


def test_describe_prints_a_table(kafka_command: Command, topic: str) -> None:
    lines = kafka_command("topic", "describe", topic).lines
    assert lines[0].split() == ["topic", topic]
    assert lines[3].split()[:2] == ["PARTITION", "LEADER"]


def test_topics_are_listed_by_pattern(kafka_command: Command, topic: str) -> None:
    listed = kafka_command("topic", "list", f"^{topic}$", "--json").json
    assert [t["name"] for t in listed] == [topic]
    assert kafka_command("topic", "list", "(").code == 2


def test_what_exists_is_told_or_left_alone(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("topic", "create", topic)
    assert ended.code == 1
    assert "TOPIC_ALREADY_EXISTS" in ended.err
    assert kafka_command("topic", "create", topic, "--if-not-exists").code == 0


def test_valid_topics_are_created_beside_invalid_ones(kafka_command: Command, name: str) -> None:
    ended = kafka_command("topic", "create", name, "not a name", "--json")
    assert ended.code == 1
    assert ended.json["created"] == [name]
    assert len(ended.json["failed"]) == 1


def test_validation_creates_nothing(kafka_command: Command, name: str) -> None:
    assert kafka_command("topic", "create", name, "--validate-only").text == f"would create topic {name}\n"
    assert kafka_command("topic", "describe", name).code == 1


def test_an_assignment_says_the_brokers(kafka_command: Command, name: str) -> None:
    broker = kafka_command("cluster", "describe", "--json").json["brokers"][0]["id"]
    assert kafka_command("topic", "create", name, "--replica-assignment", f"{broker},{broker}").code == 0
    eventually(lambda: kafka_command("topic", "describe", name).code == 0)
    (described,) = kafka_command("topic", "describe", name, "--json").json
    assert [p["replicas"] for p in described["partitions"]] == [[broker], [broker]]
    assert kafka_command("topic", "create", name, "--replica-assignment", "1", "-p", 1).code == 2


def test_assignments() -> None:
    assert parse_assignment("1:2,2:3") == [[1, 2], [2, 3]]
    with pytest.raises(BadInput):
        parse_assignment("1:x")


def test_what_is_not_there_fails(kafka_command: Command, name: str) -> None:
    assert kafka_command("topic", "describe", name).code == 1
    assert kafka_command("topic", "delete", name).code == 1
    assert kafka_command("topic", "delete", name, "--if-exists").code == 0
    assert kafka_command("topic", "alter", name, "-p", 2).code == 1


def test_altering_nothing_is_bad_input(kafka_command: Command, topic: str) -> None:
    assert kafka_command("topic", "alter", topic).code == 2
    assert kafka_command("topic", "alter", topic, "--set", "retention.ms").code == 2


def test_a_refused_setting_is_told(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("topic", "alter", topic, "--set", "no.such.setting=1")
    assert ended.code == 1
    assert "INVALID_CONFIG" in ended.err
