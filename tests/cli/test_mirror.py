"""`barnabas mirror`: options of a link, and what scripts read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.cli.conftest import Command
from tests.waiting import wait_until


@pytest.fixture
def source() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def target() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def run(command: Command, *words: str) -> str:
    ended = command(*words)
    assert ended.code == 0, ended.err
    return ended.text


def wait_for_topic(command: Command, servers: str, name: str) -> None:
    def names() -> list[str]:
        return [row["name"] for row in command("topic", "list", "--json", "-b", servers).json]

    wait_until(lambda: name in names(), f"{name} is not copied", within_s=30)


def retention(command: Command, servers: str) -> str:
    (found,) = command("config", "describe", "topic", "orders", "--json", "-b", servers).json
    return str({setting["name"]: setting["value"] for setting in found["settings"]}["retention.ms"])


def test_without_configs_a_copy_begins_with_the_settings_and_does_not_follow_them(
    command: Command, source: str, target: str
) -> None:
    run(command, "topic", "create", "orders", "--config", "retention.ms=111111", "-b", source)
    each_second = ("--set", "refresh.topics.interval.seconds=1")
    run(command, "mirror", "create", "eu", "--source", source, "--no-configs", *each_second, "-b", target)
    wait_for_topic(command, target, "orders")
    assert retention(command, target) == "111111"
    run(command, "config", "alter", "topic", "orders", "--set", "retention.ms=222222", "-b", source)
    for later in ("one", "two"):  # when the second is here, a look at the source after the change is over
        run(command, "topic", "create", later, "-b", source)
        wait_for_topic(command, target, later)
    assert retention(command, target) == "111111"
    run(command, "config", "alter", "link", "eu", "--set", "sync.topic.configs.enabled=true", "-b", target)
    wait_until(lambda: retention(command, target) == "222222", "the setting does not follow", within_s=30)


def test_scripts_read_what_is_not_copied(command: Command, source: str, target: str) -> None:
    run(command, "topic", "create", "orders", "-b", source)
    run(command, "mirror", "create", "eu", "--source", source, "--topics", "orders", "--acls", "-b", target)
    wait_for_topic(command, target, "orders")

    def rows(*, of_topics: bool) -> list[dict[str, object]]:
        found = command("mirror", "status", "eu", "--json", "-b", target).json
        return [row for row in found if bool(row["topic"]) is of_topics]

    wait_until(lambda: rows(of_topics=True), "the copy is not told", within_s=30)
    wait_until(lambda: rows(of_topics=False), "what is not copied is not told", within_s=30)
    (copy,), (other,) = rows(of_topics=True), rows(of_topics=False)
    assert copy["state"] == "mirroring"
    assert "not_followed" not in copy
    told = other["state"], other["not_followed"], other["reason"]
    assert told == ("not_followed", "acls", "the brokers here have no authorizer.class.name")
    shown = command("mirror", "status", "eu", "-b", target)
    assert "acls are not copied: the brokers here have no authorizer.class.name" in shown.err
    assert "not_followed" not in shown.text


@pytest.mark.parametrize("name", ["promote", "failback"])
@pytest.mark.parametrize("topics", [[], ["orders", "--all"]])
def test_topics_or_all_of_them_are_named(command: Command, name: str, topics: list[str]) -> None:
    ended = command("mirror", name, "eu", *topics, "-b", "127.0.0.1:1")
    assert ended.code == 2
    assert "name topics, or give --all" in ended.err


def test_a_link_that_cannot_work_is_told_when_it_is_made(command: Command, source: str, target: str) -> None:
    run(command, "topic", "create", "orders", "-b", source)
    run(command, "mirror", "create", "eu", "--source", source, "-b", target)
    wait_for_topic(command, target, "orders")
    second = command("mirror", "create", "us", "--source", source, "--topics", "orders", "-b", target)
    assert (second.code, second.text) == (0, "created mirror link us\n")
    assert second.err == "topic orders is not copied: the topic here is a copy of the mirror link eu\n"
    itself = command("mirror", "create", "itself", "--source", target, "-b", target)
    assert itself.code == 0
    assert "the source: INVALID_CONFIG: the source is this cluster itself" in itself.err
    states = {row["name"]: row["state"] for row in command("mirror", "list", "--json", "-b", target).json}
    assert states["eu"] == "running"
    assert states["us"] == "running, 1 topic refused"


def test_refusals_name_the_link_and_what_to_do(command: Command, source: str, target: str) -> None:
    run(command, "topic", "create", "orders", "-b", source)
    run(command, "mirror", "create", "eu", "--source", source, "--prefix", "eu.", "-b", target)
    wait_for_topic(command, target, "eu.orders")
    written = command("produce", "eu.orders", "-b", target, stdin=b"refused\n")
    assert written.code == 1
    assert "eu.orders is a read-only copy of the mirror link eu; `barnabas mirror promote eu eu.orders` opens it" in written.err
    failed = command("mirror", "failback", "eu", "eu.orders", "-b", target)
    assert failed.code == 1
    assert "mirror link eu has the prefix eu., and a topic is failed back only under its own name" in failed.err
    run(command, "mirror", "create", "plain", "--source", source, "--topics", "none", "-b", target)
    absent = command("mirror", "failback", "plain", "nosuch", "-b", target)
    assert (absent.code, absent.err) == (2, "barnabas: there is no topic nosuch here\n")
