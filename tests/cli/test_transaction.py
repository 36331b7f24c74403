"""`barnabas transaction`, and what `barnabas group describe` says of open transactions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from tests.cli.conftest import Command, eventually
from tests.server.transactions.test_two_phase_commit import init, owner_of, write
from tests.server.wire import Line, create_topic

WITHIN_S = 60
Open = Callable[[str], Producer]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"transaction.two.phase.commit.enable": True, "transaction.state.log.num.partitions": 3}
    with Broker(config=config) as made:
        yield made


@pytest.fixture(scope="module")
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def open_in(bootstrap: str) -> Open:
    """Open a transaction, of a transactional id that is called as the topic, with a record in each of its two partitions."""

    def made(topic: str) -> Producer:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0, "log_level": 0})
        producer.init_transactions(WITHIN_S)
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, b"open", partition=partition)
        assert producer.flush(WITHIN_S) == 0
        return producer

    return made


def prepare(broker: Broker, topic: str) -> tuple[int, int]:
    """A transaction of two-phase commit, as its writer leaves it; producer id and epoch."""
    with Line(broker) as line:
        writer = owner_of(init(line, topic))
        assert write(line, topic, writer, b"prepared") == 0
        return writer


def test_list_and_describe(kafka_command: Command, topic: str, open_in: Open) -> None:
    producer = open_in(topic)
    (row,) = kafka_command("transaction", "list", "--pattern", f"{topic}|other", "--json").json
    assert (row["id"], row["state"]) == (topic, "Ongoing")
    (described,) = kafka_command("transaction", "describe", topic, "--json").json
    assert described["partitions"] == [f"{topic}:0", f"{topic}:1"]
    assert described["producer_id"] == row["producer_id"]
    assert not described["two_phase"]
    assert described["age_s"] >= 0
    assert topic in kafka_command("transaction", "list", "--state", "ongoing", "--producer-id", row["producer_id"]).text
    assert topic not in kafka_command("transaction", "list", "--longer-than", 3600).text
    assert topic not in kafka_command("transaction", "list", "--prepared").text
    producer.commit_transaction(WITHIN_S)
    eventually(lambda: kafka_command("transaction", "describe", topic, "--json").json[0]["state"] == "CompleteCommit")
    assert topic not in kafka_command("transaction", "list", "--state", "Ongoing").text
    assert "state           CompleteCommit" in kafka_command("transaction", "describe", topic).lines


def test_who_holds_a_partition_back(kafka_command: Command, topic: str, open_in: Open) -> None:
    assert kafka_command("produce", topic, "-p", 0, stdin=b"a\n").code == 0
    assert kafka_command("consume", topic, "-g", topic).code == 0
    producer = open_in(topic)
    rows = kafka_command("transaction", "open", f"{topic}:0", "--json").json
    assert [(row["partition"], row["start_offset"], row["id"]) for row in rows] == [(0, 1, topic)]
    assert len(kafka_command("transaction", "open", "--json").json) >= 2
    (group,) = kafka_command("group", "describe", topic, "--json").json
    assert {(row["partition"], row["stable"], row["end"], row["held_by"]) for row in group["partitions"]} >= {(0, 1, 2, topic)}
    assert "HELD BACK BY" in kafka_command("group", "describe", topic).text
    producer.abort_transaction(WITHIN_S)
    eventually(lambda: kafka_command("transaction", "open", topic, "--json").json == [])
    assert "HELD BACK BY" not in kafka_command("group", "describe", topic).text


def test_an_open_transaction_is_aborted(kafka_command: Command, topic: str, open_in: Open) -> None:
    open_in(topic)
    assert kafka_command("transaction", "abort", topic).text == f"aborted the transaction of {topic}\n"
    assert kafka_command("transaction", "open", topic, "--json").json == []
    ended = kafka_command("transaction", "abort", topic)
    assert ended.code == 1
    assert "has no open transaction" in ended.err


def test_a_prepared_transaction_is_listed_and_committed(kafka_command: Command, broker: Broker, topic: str) -> None:
    producer_id, epoch = prepare(broker, topic)
    rows = kafka_command("transaction", "list", "--prepared", "--json").json
    assert [(row["partitions"], row["producer_epoch"]) for row in rows if row["id"] == topic] == [([f"{topic}:0"], epoch)]
    ended = kafka_command("transaction", "commit", topic, "--expect", f"{producer_id}:{epoch + 1}")
    assert ended.code == 1
    assert f"is {producer_id}:{epoch}, not {producer_id}:{epoch + 1}" in ended.err
    assert kafka_command("transaction", "commit", topic, "--expect", f"{producer_id}:{epoch}").code == 0
    assert kafka_command("consume", topic, "-X", "isolation.level=read_committed").lines == ["prepared"]
    ended = kafka_command("transaction", "commit", topic)
    assert ended.code == 1
    assert "no open transaction of two-phase commit (it is CompleteCommit)" in ended.err


def test_a_prepared_transaction_is_aborted(kafka_command: Command, broker: Broker, topic: str) -> None:
    prepare(broker, topic)
    assert kafka_command("transaction", "abort", topic, "--json").code == 0
    assert kafka_command("consume", topic, "-X", "isolation.level=read_committed").lines == []


def test_a_transaction_that_is_not_prepared_is_not_committed(kafka_command: Command, topic: str, open_in: Open) -> None:
    producer = open_in(topic)
    assert kafka_command("transaction", "commit", topic).code == 1
    producer.commit_transaction(WITHIN_S)


def test_a_hanging_transaction(command: Command) -> None:
    """One that no coordinator knows: the log of the coordinator is lost here, for a broker would refuse the record that makes one."""
    with Broker(config={"transaction.two.phase.commit.enable": True, "transaction.state.log.num.partitions": 1}) as broker:
        create_topic(broker, "t")
        prepare(broker, "t")
        server = ("-b", broker.bootstrap_servers)
        find = ("transaction", "find-hanging", "t", "--json", *server)
        assert command(*find, "--max-timeout", 0).json == []
        broker.stop()
        shutil.rmtree(broker.data_dir / "__transaction_state-0")
        broker.start()
        (row,) = command(*find, "--max-timeout", 0).json
        assert (row["topic"], row["partition"], row["start_offset"], row["id"]) == ("t", 0, 0, None)
        assert command(*find, "--max-timeout", 10**12).json == []
        place = ("transaction", "abort", *server, "--partition", "t:0", "--start-offset")
        assert command(*place, 1).code == 1
        assert command(*place, 0).text == "aborted the transaction at 0 of t:0\n"
        assert command(*find, "--max-timeout", 0).json == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["list", "--pattern", "("], "not a regular expression"),
        (["abort"], "give a transactional id"),
        (["abort", "x", "--partition", "t:0"], "give a transactional id"),
        (["abort", "--partition", "t:0"], "go together"),
        (["commit", "x", "--expect", "7"], "is not PRODUCER:EPOCH"),
    ],
)
def test_wrong_input(kafka_command: Command, arguments: list[str], complaint: str) -> None:
    ended = kafka_command("transaction", *arguments)
    assert ended.code == 2
    assert complaint in ended.err
    assert len(ended.err.splitlines()) == 1


def test_ids_and_places_that_are_not_there(kafka_command: Command, topic: str) -> None:
    ended = kafka_command("transaction", "describe", "nobody")
    assert ended.code == 1
    assert "TRANSACTIONAL_ID_NOT_FOUND" in ended.err
    assert kafka_command("transaction", "open", f"{topic}:9").code == 2
    assert kafka_command("transaction", "open", "no-such-topic").code == 1
    assert kafka_command("transaction", "open", topic).err == "no open transactions\n"
