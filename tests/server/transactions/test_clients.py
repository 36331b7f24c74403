"""Transactions of confluent-kafka through a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from tests.waiting import WITHIN_S

PARTITIONS = 2


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(kafka: Broker, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name.replace("[", "-").replace("]", ""))
    make_topic(kafka, name)
    return name


def make_topic(kafka: Broker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()


def producer(kafka: Broker, name: str, **settings: Any) -> Producer:
    made = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name, "linger.ms": 0, **settings})
    made.init_transactions(20)
    return made


def read(kafka: Broker, topic: str, count: int, isolation: str = "read_committed") -> list[bytes]:
    """The first `count` values of all partitions, and whatever else comes before the ends."""
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": f"readers-{topic}",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": isolation,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int] = set()
    while len(values) < count or len(ended) < PARTITIONS:
        message = consumer.poll(WITHIN_S)
        assert message is not None, values
        if message.error():
            ended.add(message.partition() or 0)
        else:
            values.append(message.value() or b"")
    consumer.close()
    return sorted(values)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_there_everywhere_or_nowhere(kafka: Broker, topic: str, *, commit: bool) -> None:
    made = producer(kafka, topic)
    for number in range(3):
        made.begin_transaction()
        for index in range(PARTITIONS):
            made.produce(topic, f"{number}-{index}", partition=index)
        made.flush()
        if commit:
            made.commit_transaction()
        else:
            made.abort_transaction()
    written = [f"{number}-{index}".encode() for number in range(3) for index in range(PARTITIONS)]
    assert read(kafka, topic, 6 if commit else 0) == (written if commit else [])
    assert read(kafka, topic, 6, "read_uncommitted") == written


def test_an_open_transaction_holds_readers_back(kafka: Broker, topic: str) -> None:
    made, plain = producer(kafka, topic), Producer({"bootstrap.servers": kafka.bootstrap_servers})
    made.begin_transaction()
    made.produce(topic, b"open", partition=0)
    made.flush()
    plain.produce(topic, b"plain", partition=0)
    plain.flush()
    assert read(kafka, topic, 0) == []
    made.commit_transaction()
    assert read(kafka, topic, 2) == [b"open", b"plain"]


def test_an_aborted_transaction_among_others(kafka: Broker, topic: str) -> None:
    first, second = producer(kafka, topic), producer(kafka, topic + "-2")
    for made in (first, second):
        made.begin_transaction()
    for number in range(4):
        for made, name in ((first, "first"), (second, "second")):
            made.produce(topic, f"{name}-{number}", partition=0)
            made.flush()
    first.abort_transaction()
    second.commit_transaction()
    assert read(kafka, topic, 4) == [b"second-0", b"second-1", b"second-2", b"second-3"]


def test_who_takes_the_id_fences_the_former_owner(kafka: Broker, topic: str) -> None:
    zombie = producer(kafka, topic)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie", partition=0)
    zombie.flush()
    owner = producer(kafka, topic)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction()
    assert caught.value.args[0].fatal()
    owner.begin_transaction()
    owner.produce(topic, b"owner", partition=0)
    owner.commit_transaction()
    assert read(kafka, topic, 1) == [b"owner"]


@pytest.mark.parametrize("commit", [True, False])
def test_consumed_offsets_are_part_of_it(kafka: Broker, topic: str, *, commit: bool) -> None:
    plain = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    plain.produce(topic, b"in", partition=0)
    plain.flush()
    group = f"group-{topic}"
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while consumer.poll(10) is None:
        pass
    made = producer(kafka, topic)
    made.begin_transaction()
    made.produce(topic, b"out", partition=1)
    made.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], consumer.consumer_group_metadata(), 20)
    if commit:
        made.commit_transaction()
    else:
        made.abort_transaction()
    (committed,) = consumer.committed([TopicPartition(topic, 0)], 20)
    assert committed.offset == (1 if commit else -1001)
    consumer.close()
    assert read(kafka, topic, 2 if commit else 1) == ([b"in", b"out"] if commit else [b"in"])


def test_a_transaction_survives_a_restart() -> None:
    topic = "restarted"
    with Broker() as kafka:
        make_topic(kafka, topic)
        made = producer(kafka, topic, **{"transaction.timeout.ms": 60_000})
        made.begin_transaction()
        made.produce(topic, b"before", partition=0)
        made.flush()
        kafka.kill()
        kafka.start()
        made.produce(topic, b"behind", partition=0)
        made.flush()
        made.commit_transaction()
        assert read(kafka, topic, 2) == [b"before", b"behind"]
