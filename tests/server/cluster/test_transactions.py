"""Transactions over several brokers, while one of them is killed and comes back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.server.cluster.processes import three_brokers

TOPIC, PARTITIONS, TRANSACTIONS = "t", 3, 30
WITHIN_S = 60


@pytest.fixture
def brokers(shared_zookeeper: ZooKeeper) -> Iterator[list[Broker]]:
    settings = {"zookeeper.session.timeout.ms": 15_000, "transaction.state.log.num.partitions": 6, "min.insync.replicas": 2}
    with three_brokers(settings, shared_zookeeper) as processes:
        yield processes


def write(producer: Producer, number: int) -> bool:
    """One record to every partition in one transaction; whether it was committed."""
    producer.begin_transaction()
    try:
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, str(number), partition=partition)
        producer.commit_transaction(WITHIN_S)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(WITHIN_S)
        return False
    return True


def read(servers: str) -> dict[int, list[int]]:
    """How often each committed number is in each partition, in the order of the partitions."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[int]] = defaultdict(lambda: [0] * PARTITIONS)
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(WITHIN_S)
        assert message is not None
        partition = message.partition() or 0
        if message.error():
            ended.add(partition)
        else:
            found[int(message.value() or b"-1")][partition] += 1
    consumer.close()
    return dict(found)


def test_each_is_there_everywhere_or_nowhere(brokers: list[Broker]) -> None:
    servers = ",".join(broker.bootstrap_servers for broker in brokers)
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(WITHIN_S)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "writer", "linger.ms": 0, "log_level": 0})
    producer.init_transactions(WITHIN_S)
    committed = []
    for number in range(TRANSACTIONS):
        if number == TRANSACTIONS // 3:
            brokers[0].kill()  # the leader of a third of all partitions and the coordinator of a third of all transactional ids
        if number == 2 * TRANSACTIONS // 3:
            brokers[0].start()
        if write(producer, number):
            committed.append(number)
    assert len(committed) > TRANSACTIONS // 2
    assert read(servers) == {number: [1] * PARTITIONS for number in committed}
