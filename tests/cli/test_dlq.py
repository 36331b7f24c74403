"""`barnabas dlq`: the letters of a topic, sent again once and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.connect.letters.topic import MARKS, Letters
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.testing import Broker
from tests.cli.conftest import Command

REASON = "it is no JSON"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


class Queue:
    """A topic of dead letters with three of them, of two connectors."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.bootstrap, self.topic, self.origin = broker.bootstrap_servers, f"dlq-{name}", f"orders-{name}"
        for connector, key, cause in (("a", "1", REASON), ("b", "2", "it is too old"), ("a", "3", REASON)):
            context = {"topic": self.origin, "partition": "0", "offset": "7", "connector.name": connector, "stage": "VALUE_CONVERTER",
                       "exception.message": cause}  # fmt: skip
            headers: list[tuple[str, str | bytes | None]] = [
                ("own", b"x"),
                *((f"__connect.errors.{name}", text.encode()) for name, text in context.items()),
            ]
            self.send(key, f"value {key}", headers)

    def send(self, key: str, value: str, headers: list[tuple[str, str | bytes | None]]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        producer.produce(self.topic, value, key, headers=headers)
        assert producer.flush(30) == 0

    def records(self, topic: str) -> list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
        with BlockingClient.to(self.bootstrap) as client:
            return [
                (each.key and bytes(each.key), each.value and bytes(each.value), [(n, v and bytes(v)) for n, v in each.headers])
                for each in records_of(client, topic)
            ]


@pytest.fixture
def queue(broker: Broker, request: pytest.FixtureRequest) -> Queue:
    return Queue(broker, "".join(each if each.isalnum() else "-" for each in request.node.name))


def test_letters_are_listed_by_what_is_said_of_them(command: Command, queue: Queue) -> None:
    at = ("-b", queue.bootstrap)
    rows = command("dlq", "list", queue.topic, *at, "--json").json
    assert [(each["place"], each["connector"], each["key"], each["cause"]) for each in rows] == [
        ("0:0", "a", "1", REASON), ("0:1", "b", "2", "it is too old"), ("0:2", "a", "3", REASON),
    ]  # fmt: skip
    for option, places in (
        (("--connector", "a"), ["0:0", "0:2"]), (("--cause", "too o.d"), ["0:1"]), (("--key", "3"), ["0:2"]),
        (("--stage", "TASK_PUT"), []), (("--at", "0:1", "--at", "0:2"), ["0:1", "0:2"]), (("--limit", "1"), ["0:0"]),
        (("--since", "2100-01-01T00:00:00Z"), []), (("--until", "2100-01-01T00:00:00Z"), ["0:0", "0:1", "0:2"]),
    ):  # fmt: skip
        assert [each["place"] for each in command("dlq", "list", queue.topic, *option, *at, "--json").json] == places


def test_a_letter_is_shown_whole(command: Command, queue: Queue) -> None:
    (shown,) = command("dlq", "show", queue.topic, "0:1", "-b", queue.bootstrap, "--json").json
    assert (shown["value"], shown["headers"], shown["errors.topic"]) == ("value 2", {"own": "x"}, queue.origin)
    lines = command("dlq", "show", queue.topic, "0:1", "-b", queue.bootstrap).lines
    assert any(line.split() == ["value", "value", "2"] for line in lines)
    missing = command("dlq", "show", queue.topic, "0:9", "-b", queue.bootstrap)
    assert (missing.code, missing.err) == (2, f"barnabas: {queue.topic} has no record 0:9\n")


def test_letters_are_sent_again_once(command: Command, queue: Queue) -> None:
    at = ("-b", queue.bootstrap)
    assert command("dlq", "redrive", queue.topic, "--dry-run", *at).text == f"would send 3 records of {queue.topic}\n"
    assert queue.records(queue.origin) == []
    assert command("dlq", "redrive", queue.topic, "--connector", "a", *at).text == f"sent 2 records of {queue.topic}\n"
    assert command("dlq", "redrive", queue.topic, "--connector", "a", *at).text == f"sent 0 records of {queue.topic}\n"
    assert queue.records(queue.origin) == [(b"1", b"value 1", [("own", b"x")]), (b"3", b"value 3", [("own", b"x")])]
    assert [each["place"] for each in command("dlq", "list", queue.topic, *at, "--json").json] == ["0:1"]
    everything = command("dlq", "list", queue.topic, "--all", *at, "--json").json
    assert [each["state"] for each in everything] == [f"sent to {queue.origin}", None, f"sent to {queue.origin}"]
    assert command("dlq", "redrive", queue.topic, "--to", f"{queue.origin}-other", *at).text.startswith("sent 1 ")
    assert [key for key, _, _ in queue.records(f"{queue.origin}-other")] == [b"2"]


def test_a_command_that_dies_sends_nothing_twice(command: Command, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Letters._write

    def write(self: Letters, part: object) -> int:
        real(self, part)  # type: ignore[arg-type]  # it is what `_write` gets
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(Letters, "_write", write)
        assert command("dlq", "redrive", queue.topic, "-b", queue.bootstrap).code == 1
    assert command("dlq", "redrive", queue.topic, "-b", queue.bootstrap).text == f"sent 0 records of {queue.topic}\n"
    assert len(queue.records(queue.origin)) == 3


def test_letters_are_deleted(command: Command, queue: Queue) -> None:
    at = ("-b", queue.bootstrap)
    refused = command("dlq", "purge", queue.topic, *at)
    assert (refused.code, refused.err.count("--yes does it")) == (2, 1)
    assert command("dlq", "purge", queue.topic, "--connector", "b", *at).text == f"deleted 1 records of {queue.topic}\n"
    assert [key for key, _, _ in queue.records(queue.topic)] == [b"1", b"2", b"3"]  # the first one is needed still
    assert [each["key"] for each in command("dlq", "list", queue.topic, *at, "--json").json] == ["1", "3"]
    assert command("dlq", "purge", queue.topic, "--yes", "--dry-run", *at).text == f"would delete 2 records of {queue.topic}\n"
    assert command("dlq", "purge", queue.topic, "--yes", *at).text == f"deleted 2 records of {queue.topic}\n"
    assert queue.records(queue.topic) == []
    last = {key: value for key, value, _ in queue.records(MARKS)}
    assert all(value is None for key, value in last.items() if key and key.startswith(f"{queue.topic}/".encode()))


def test_a_letter_without_its_origin_needs_a_topic(command: Command, queue: Queue) -> None:
    queue.send("4", "value 4", [])
    ended = command("dlq", "redrive", queue.topic, "--key", "4", "-b", queue.bootstrap)
    assert (ended.code, ended.err.count("name a topic with --to")) == (2, 1)


def test_topics_of_dead_letters_come_from_the_configs_of_connectors(command: Command, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for name in ("one", "two"):
        config = {"properties": {"errors.deadletterqueue.topic.name": "letters"}}
        producer.produce("connect-configs", json.dumps(config), f"connector-{name}")
    assert producer.flush(30) == 0
    assert command("dlq", "list", "-b", broker.bootstrap_servers, "--json").json == [
        {"topic": "letters", "connectors": ["one", "two"]}
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("list", "nowhere"), "there is no topic nowhere"),
        (("list", "t", "--cause", "("), "--cause: '(' is not a regular expression"),
        (("show", "t", "x"), "'x' is no PARTITION:OFFSET"),
    ],
)
def test_wrong_input(command: Command, broker: Broker, words: tuple[str, ...], reason: str) -> None:
    ended = command("dlq", *words, "-b", broker.bootstrap_servers)
    assert (ended.code, reason in ended.err, ended.err.count("\n")) == (2, True, 1)


def test_a_topic_that_is_made_again_has_other_letters(command: Command, queue: Queue) -> None:
    at = ("-b", queue.bootstrap)
    assert command("dlq", "purge", queue.topic, "--at", "0:1", *at).text == f"deleted 1 records of {queue.topic}\n"
    with BlockingClient.to(queue.bootstrap) as client:
        client.delete_topics([queue.topic])
    for key in ("4", "5"):
        queue.send(key, f"value {key}", [])
    assert [each["key"] for each in command("dlq", "list", queue.topic, *at, "--json").json] == ["4", "5"]
