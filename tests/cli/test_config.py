"""`barnabas config`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Command, eventually


def settings(command: Command, kind: str, name: str, *options: str) -> dict[str, str]:
    (resource,) = command("config", "describe", kind, name, "--json", *options).json
    return {s["name"]: s["value"] for s in resource["settings"]}


def test_settings_of_a_topic(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("config", "alter", "topic", topic, "--set", "flush.ms=1000", "--append", "cleanup.policy=compact")
    assert ended.text == f"changed flush.ms, cleanup.policy of topic {topic}\n"
    expected = {"flush.ms": "1000", "cleanup.policy": "delete,compact"}
    eventually(lambda: settings(kafka_command, "topic", topic).items() >= expected.items())
    ended = kafka_command("config", "alter", "topic", topic, "--delete", "flush.ms", "--subtract", "cleanup.policy=delete")
    assert ended.code == 0
    changed = settings(kafka_command, "topic", topic)
    assert changed["cleanup.policy"] == "compact"
    assert "flush.ms" not in changed
    assert settings(kafka_command, "topic", topic, "--key", "flush.ms") == {"flush.ms": "9223372036854775807"}
    assert len(settings(kafka_command, "topic", topic, "--all")) > 20


def test_all_topics_are_shown_without_a_name(kafka_command: Command, topic: str) -> None:
    assert topic in [resource["name"] for resource in kafka_command("config", "describe", "topic", "--json").json]
    assert f"topic {topic}" in kafka_command("config", "describe", "topic").text


def test_validation_changes_nothing(kafka_command: Command, topic: str) -> None:
    assert kafka_command("config", "alter", "topic", topic, "--set", "flush.ms=1", "--validate-only").code == 0
    assert "flush.ms" not in settings(kafka_command, "topic", topic)


def test_brokers(kafka_command: Command) -> None:
    broker = kafka_command("cluster", "describe", "--json").json["brokers"][0]["id"]
    assert "log.dirs" in settings(kafka_command, "broker", str(broker), "--all")
    assert kafka_command("config", "alter", "broker", "default", "--set", "log.retention.ms=123456789").code == 0
    eventually(lambda: settings(kafka_command, "broker", "default").get("log.retention.ms") == "123456789")
    assert kafka_command("config", "alter", "broker", "default", "--delete", "log.retention.ms").code == 0
    assert kafka_command("config", "describe", "broker", "four").code == 2
    assert kafka_command("config", "describe", "broker", 4711).code == 1


def test_what_a_brokers_own_file_says_is_shown_for_the_broker_and_not_for_topics(kafka_command: Command, topic: str) -> None:
    broker = kafka_command("cluster", "describe", "--json").json["brokers"][0]["id"]
    assert {"listeners", "log.dirs"} <= settings(kafka_command, "broker", str(broker)).keys()
    assert settings(kafka_command, "topic", topic) == {}


@pytest.mark.parametrize("kind", ["topic", "group", "client-metrics"])
def test_refusals_name_the_resource(kafka_command: Command, topic: str, kind: str) -> None:
    ended = kafka_command("config", "alter", kind, topic, "--set", "no.such.setting=1")
    assert ended.code == 1
    assert topic in ended.err


def test_bad_input(kafka_command: Command, topic: str) -> None:
    assert kafka_command("config", "alter", "topic", topic).code == 2
    assert kafka_command("config", "alter", "topic", topic, "--set", "a").code == 2
    assert kafka_command("config", "describe", "table", topic).code == 2
