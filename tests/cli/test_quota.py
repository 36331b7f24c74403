"""`barnabas quota`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Command, eventually


def test_quotas_are_set_shown_and_removed(kafka_command: Command, name: str) -> None:
    ended = kafka_command("quota", "set", "--user", name, "producer_byte_rate=1e6", "request_percentage=12.5")
    assert ended.text == f"set producer_byte_rate, request_percentage for user {name}\n"
    assert kafka_command("quota", "set", "--user", name, "--default", "client-id", "consumer_byte_rate=5").code == 0
    eventually(lambda: len(kafka_command("quota", "describe", "--user", name, "--json").json) == 2)
    assert kafka_command("quota", "describe", "--user", name, "--json").json == [
        {"entity": {"user": name}, "quotas": {"producer_byte_rate": 1e6, "request_percentage": 12.5}},
        {"entity": {"client-id": None, "user": name}, "quotas": {"consumer_byte_rate": 5.0}},
    ]
    assert [line.split() for line in kafka_command("quota", "list").lines if name in line and "1000000" in line] == [
        ["user", name, "producer_byte_rate", "1000000"]
    ]
    assert kafka_command("quota", "remove", "--user", name, "request_percentage").code == 0
    ended = kafka_command("quota", "remove", "--user", name)
    assert ended.text == f"removed producer_byte_rate of user {name}\n"
    assert kafka_command("quota", "remove", "--user", name, "--default", "client-id").code == 0
    eventually(lambda: kafka_command("quota", "describe", "--user", name, "--json").json == [])
    assert kafka_command("quota", "remove", "--user", name).code == 1


def test_validation_changes_nothing(kafka_command: Command, name: str) -> None:
    ended = kafka_command("quota", "set", "--client-id", name, "producer_byte_rate=1", "--validate-only")
    assert ended.text == f"would set producer_byte_rate for client-id {name}\n"
    assert kafka_command("quota", "describe", "--client-id", name, "--json").json == []


def test_refusals_name_the_entity(kafka_command: Command, name: str) -> None:
    ended = kafka_command("quota", "set", "--user", name, "connection_creation_rate=1")
    assert (ended.code, ended.err) == (
        1,
        f"barnabas: quotas for user {name}: Invalid configuration key connection_creation_rate\n",
    )


@pytest.mark.parametrize(
    "options",
    [
        ("set", "producer_byte_rate=1"),
        ("set", "--user", "u"),
        ("set", "--user", "u", "no_such_rate=1"),
        ("set", "--user", "u", "producer_byte_rate"),
        ("set", "--user", "u", "producer_byte_rate=much"),
        ("set", "--user", "u", "--default", "user", "producer_byte_rate=1"),
        ("remove", "--user", "u", "no_such_rate"),
        ("remove", "producer_byte_rate"),
        ("describe",),
    ],
)
def test_bad_input(kafka_command: Command, options: tuple[str, ...]) -> None:
    ended = kafka_command("quota", *options)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
