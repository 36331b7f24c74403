"""Records by key in a topic: followed, changed one after the other, and what is not taken in."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

import pytest

from barnabas.client import transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import KeyedTopic, KeyedTopicError
from barnabas.client.operations import produce
from barnabas.client.results import NewTopic
from barnabas.errors import BarnabasError
from barnabas.protocol.records.batch import build_batch
from barnabas.testing import Broker

NAMES = (f"keyed-{number}" for number in count())
MOST_RECORDS, MOST_BYTES = 20, 100


class Unreadable(BarnabasError):
    pass


def decode(payload: bytes) -> int:
    try:
        return int(payload)
    except ValueError:
        raise Unreadable(repr(payload)) from None


def config(broker: Broker) -> ClientConfig:
    return ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})


def opened(broker: Broker, topic: str) -> KeyedTopic[int]:
    return KeyedTopic(
        config(broker), topic, encode=lambda value: b"%d" % value, decode=decode, most_records=MOST_RECORDS, most_bytes=MOST_BYTES
    )


@pytest.fixture
def client(kafka_session: Broker) -> Iterator[BlockingClient]:
    with BlockingClient.to(kafka_session.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return next(NAMES)


@contextmanager
def two(broker: Broker, topic: str) -> Iterator[tuple[KeyedTopic[int], KeyedTopic[int]]]:
    first, second = opened(broker, topic), opened(broker, topic)
    yield first, second
    first.close()
    second.close()


def test_what_one_writes_the_other_reads(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    with two(kafka_session, topic) as (first, second):
        assert first.follow() == {}
        first.put(client, {"a": 1, "b": 2})
        assert client.describe_topic_config(topic)["cleanup.policy"] == "compact"
        assert first.records == {"a": 1, "b": 2}
        assert second.follow() == {"a": 1, "b": 2}
        snapshot, version = second.records, second.version
        second.change(client, lambda there: {"a": None, "b": there["b"] + 1})
        assert (second.get("a"), second.get("b")) == (None, 3)
        assert snapshot == {"a": 1, "b": 2}
        assert second.version > version
        assert first.follow(max_age_s=1_000) == {"a": 1, "b": 2}
        assert first.follow() == {"b": 3}


def test_a_decision_to_change_nothing_writes_nothing(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    with two(kafka_session, topic) as (first, _):
        first.put(client, {"a": 1})
        version = first.version
        first.change(client, lambda _: {})

        def refuse(_: Mapping[str, int]) -> Mapping[str, int | None]:
            raise Unreadable("no")

        with pytest.raises(Unreadable):
            first.change(client, refuse)
        assert (first.follow(), first.version) == ({"a": 1}, version)


def test_decisions_of_many_writers_follow_one_another(kafka_session: Broker, topic: str) -> None:
    def add_up() -> None:
        keyed = opened(kafka_session, topic)
        with BlockingClient.to(kafka_session.bootstrap_servers) as client:
            for _ in range(5):
                keyed.change(client, lambda there: {"sum": there.get("sum", 0) + 1})
        keyed.close()

    threads = [threading.Thread(target=add_up) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with two(kafka_session, topic) as (first, _):
        assert first.follow() == {"sum": 20}


def test_a_topic_that_is_made_again_is_read_from_its_beginning(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    with two(kafka_session, topic) as (first, second):
        first.put(client, {"a": 1, "b": 2})
        assert second.follow() == {"a": 1, "b": 2}
        client.delete_topics([topic])
        assert second.follow() == {}
        client.create_topics([NewTopic(topic, 1)])
        first.put(client, {"c": 3})
        assert first.records == {"c": 3}
        assert second.follow() == {"c": 3}


def test_a_topic_without_its_beginning_is_read_from_what_is_left(
    kafka_session: Broker, client: BlockingClient, topic: str
) -> None:
    client.create_topics([NewTopic(topic, 1, configs={"cleanup.policy": "compact,delete"})])
    with two(kafka_session, topic) as (first, second):
        first.put(client, {"a": 1})
        first.put(client, {"b": 2})
        client.delete_records({(topic, 0): 2})
        assert second.follow() == {"b": 2}


def test_aborted_and_open_transactions_are_not_read(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    def begin(name: str, value: bytes) -> transactions.Owner:
        owner = client.run(transactions.init_producer_id(client.config, client.cluster, name)).owner
        batch = build_batch(
            [(b"a", value)], timestamp_ms=1, producer_id=owner.producer_id, producer_epoch=owner.epoch, base_sequence=0,
            transactional=True,
        )  # fmt: skip
        client.run(produce(client.config, client.cluster, topic, 0, batch, transactional_id=name))
        return owner

    with two(kafka_session, topic) as (first, second):
        first.put(client, {"a": 1})
        aborted = begin(f"{topic}-other", b"7")
        client.run(
            transactions.end_transactions(
                client.config, client.cluster, {f"{topic}-other": aborted}, commit=False, second_version=True
            )
        )
        first.put(client, {"b": 2})
        begin(f"{topic}-other", b"8")
        assert second.follow() == {"a": 1, "b": 2}


def test_limits_and_records_that_cannot_be_read(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    with two(kafka_session, topic) as (first, second):
        first.put(client, {f"k{number}": number for number in range(MOST_RECORDS)})
        with pytest.raises(KeyedTopicError, match="at most 20 records"):
            first.put(client, {"one-more": 1})
        with pytest.raises(KeyedTopicError, match="has 101 bytes; allowed are 100"):
            first.put(client, {"k0": 10**100})
        records: list[tuple[bytes | None, bytes | None]] = [(b"k1", b"x"), (b"beyond", b"1"), (b"\xff", None)]
        client.produce(topic, 0, build_batch(records, timestamp_ms=1))
        first.put(client, {"k0": 7})
        assert first.records == {"k0": 7, **{f"k{number}": number for number in range(2, MOST_RECORDS)}, "beyond": 1}
        assert second.follow() == first.records


def test_a_topic_with_several_partitions_is_refused(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    client.create_topics([NewTopic(topic, 2)])
    with two(kafka_session, topic) as (first, _), pytest.raises(KeyedTopicError, match="has 2 partitions"):
        first.put(client, {"a": 1})


def test_a_refused_write_leaves_no_open_transaction(kafka_session: Broker, client: BlockingClient, topic: str) -> None:
    client.create_topics([NewTopic(topic, 1, configs={"max.message.bytes": "150"})])
    keyed = KeyedTopic(
        config(kafka_session), topic, encode=lambda value: b"%d" % value, decode=decode, most_records=9, most_bytes=9_999
    )
    with pytest.raises(BarnabasError, match=r"MESSAGE_TOO_LARGE|RECORD_TOO_LARGE"):
        keyed.put(client, {"a": 10**300})
    keyed.put(client, {"a": 1})
    assert keyed.records == {"a": 1}
    keyed.close()
