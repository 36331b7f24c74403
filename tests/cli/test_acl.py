"""`barnabas acl` and `barnabas role`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.cli.bindings import REGISTRY_OPERATIONS
from barnabas.cli.broker import STANDARD_AUTHORIZER
from barnabas.registry.http import rights
from barnabas.server.authorization.access_control import STANDARD
from barnabas.testing import Broker
from tests.cli.conftest import Command


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with an authorizer. A client without a log-in may do everything."""
    with Broker({"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}) as broker:
        yield broker.bootstrap_servers


def rows(command: Command, *arguments: str) -> list[tuple[str, ...]]:
    fields = ("permission", "principal", "operation", "resource", "name", "pattern", "host")
    return [tuple(each[field] for field in fields) for each in command("acl", "list", "--json", *arguments).json]


def test_bindings_are_made_shown_and_removed(kafka_command: Command) -> None:
    made = ("--principal", "User:ann", "--operation", "read", "--operation", "describe-configs", "--topic", "made")
    ended = kafka_command("acl", "add", *made, "--host", "10.0.0.0/8")
    assert (ended.code, ended.text) == (0, "made 2 bindings\n")
    expected = [
        ("allow", "User:ann", operation, "topic", "made", "literal", "10.0.0.0/8") for operation in ("read", "describe-configs")
    ]
    assert rows(kafka_command, "--principal", "User:ann") == expected
    assert rows(kafka_command, "--topic", "made") == expected
    assert rows(kafka_command, "--topic", "other") == []
    # without --host the command means any host, and no binding has that
    assert kafka_command("acl", "remove", *made).text == "removed 0 bindings\n"
    assert kafka_command("acl", "remove", *made, "--host", "10.0.0.0/8").text == "removed 2 bindings\n"
    assert kafka_command("acl", "list", "--principal", "User:ann").err == "no bindings\n"


def test_prefixes_and_denials(kafka_command: Command) -> None:
    kafka_command("acl", "add", "--principal", "User:ben", "--topic", "app-", "--group", "app-", "--prefixed")
    kafka_command("acl", "add", "--principal", "User:ben", "--topic", "app-secret", "--operation", "write", "--deny", "--cluster",
                  "--operation", "alter")  # fmt: skip
    assert {row[0] for row in rows(kafka_command, "--topic", "app-secret", "--matching")} == {"allow"}
    kafka_command("acl", "add", "--principal", "User:ben", "--topic", "app-secret", "--operation", "write", "--deny")
    assert {row[0] for row in rows(kafka_command, "--topic", "app-secret", "--matching")} == {"allow", "deny"}
    for choosing in (("--topic", "made"), ("--operation", "read"), ("--host", "10.0.0.1"), ("--deny",), ("--prefixed",)):
        ended = kafka_command("acl", "remove", "--principal", "User:ben", "--all", *choosing)
        assert (ended.code, "--all removes every binding" in ended.err) == (2, True), choosing
    assert kafka_command("acl", "remove", "--principal", "User:ben", "--all").text == "removed 3 bindings\n"


def test_whether_somebody_may_is_answered_with_the_reason(kafka_command: Command) -> None:
    asked = ("acl", "test", "--principal", "User:cat", "--operation", "describe", "--topic", "tested")
    ended = kafka_command(*asked)
    assert (ended.code, ended.text, ended.err) == (1, "denied\n", "no binding is about it\n")
    kafka_command("acl", "add", "--principal", "Group:staff", "--operation", "read", "--topic", "tested")
    assert kafka_command(*asked).code == 1
    ended = kafka_command(*asked, "--in-group", "Group:staff")
    assert ended.code == 0
    assert ended.lines[0] == "allowed"
    assert "Group:staff" in ended.text
    ended = kafka_command("acl", "test", "--principal", "User:ANONYMOUS", "--operation", "alter", "--cluster")
    assert (ended.code, ended.err) == (0, "User:ANONYMOUS is one of super.users\n")


def test_roles_are_made_given_taken_and_deleted(kafka_command: Command) -> None:
    assert kafka_command("role", "grant", "reader", "User:dan").code == 1  # the role does not exist yet
    made = kafka_command("role", "create", "reader", "--operation", "read", "--topic", "news", "--group", "g")
    assert made.text == "role reader has 2 more rights\n"
    assert kafka_command("role", "grant", "reader", "User:dan", "Group:press").text == "User:dan, Group:press have role reader\n"
    assert kafka_command("role", "list", "--json").json == [
        {"role": "reader", "rights": 2, "members": ["Group:press", "User:dan"]}
    ]
    assert "news" in kafka_command("role", "list", "reader").text
    assert ("allow", "User:dan", "read", "topic", "news", "literal", "*") in rows(kafka_command, "--principal", "User:dan")
    asked = ("acl", "test", "--principal", "User:dan", "--operation", "read", "--topic", "news")
    assert kafka_command(*asked).code == 0
    assert kafka_command("role", "revoke", "reader", "User:dan").code == 0
    assert kafka_command(*asked).code == 1
    assert kafka_command("role", "revoke", "reader", "User:dan").err == "barnabas: User:dan: without role reader\n"
    assert kafka_command("role", "delete", "reader").code == 0
    assert kafka_command("role", "list").err == "no roles\n"
    assert kafka_command("role", "delete", "reader").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("acl", "add", "--principal", "User:eve"),
        ("acl", "add", "--principal", "eve", "--topic", "t"),
        ("acl", "add", "--principal", "User:eve", "--topic", "t", "--operation", "fly"),
        ("acl", "add", "--principal", "User:eve", "--group", "g", "--operation", "write"),
        ("acl", "add", "--topic", "t"),
        ("acl", "test", "--principal", "User:eve", "--operation", "read"),
        ("role", "create", "Role:", "--topic", "t"),
        ("role", "grant", "reader"),
    ],
)
def test_bad_input(kafka_command: Command, arguments: tuple[str, ...]) -> None:
    ended = kafka_command(*arguments)
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1


def test_a_broker_without_an_authorizer_has_no_bindings(command: Command) -> None:
    with Broker() as broker:
        ended = command("acl", "list", "-b", broker.bootstrap_servers)
    assert ended.code == 1
    assert ended.err.endswith("No Authorizer is configured. (SECURITY_DISABLED)\n")


def test_the_option_names_the_authorizer_that_is_built_in(command: Command, tmp_path: object) -> None:
    assert STANDARD_AUTHORIZER == STANDARD
    other = ("--config", "authorizer.class.name=org.example.Authorizer")
    ended = command("broker", "start", "--data-dir", tmp_path, "--listeners", "PLAINTEXT://127.0.0.1:0", *other)
    assert ended.code == 2
    assert "authorizer.class.name" in ended.err
    ended = command("broker", "start", "--data-dir", tmp_path, "--authorizer", "acl", "--config", "super.users=alice")
    assert ended.code == 2
    assert "super.users" in ended.err


def test_rights_on_subjects_are_rights_on_their_topics(kafka_command: Command) -> None:
    given = (
        "--principal",
        "User:eve",
        "--subject",
        "orders-value",
        "--subject",
        "orders-key",
        "--subject",
        ":.staging:orders-value",
    )
    made = kafka_command("acl", "add", *given, "--operation", "subject-read", "--operation", "SUBJECT_COMPATIBILITY_WRITE")
    assert made.text == "made 4 bindings\n"
    assert rows(kafka_command, "--principal", "User:eve") == [
        ("allow", "User:eve", operation, "topic", topic, "literal", "*")
        for topic in (":.staging:orders", "orders")
        for operation in ("describe", "alter-configs")
    ]
    asked = ("acl", "test", "--principal", "User:eve", "--subject", "orders-value", "--operation")
    assert [kafka_command(*asked, operation).code for operation in ("subject-read", "subject-write")] == [0, 1]
    for wrong in (("--subject", ""), ("--subject", "orders-value", "--prefixed")):
        ended = kafka_command("acl", "add", "--principal", "User:eve", *wrong)
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err


def test_operations_of_the_registry_are_those_it_asks_for() -> None:
    every = (rights.READ, rights.WRITE, rights.DELETE, rights.READ_SETTINGS, rights.WRITE_SETTINGS)
    words = {"ReadCompatibility": "COMPATIBILITY_READ", "WriteCompatibility": "COMPATIBILITY_WRITE"}
    expected = {f"SUBJECT_{words.get(right.name, right.name.upper())}": right.on_topic for right in every}
    expected |= {f"GLOBAL_{words[right.name]}": right.on_cluster for right in every if right.name in words}
    assert expected == REGISTRY_OPERATIONS
