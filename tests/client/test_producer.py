"""The producer of batches against a real broker: one that is killed, one that refuses, one that fences."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import PartitionError
from barnabas.client.producer import BatchProducer
from barnabas.client.results import NewTopic
from barnabas.client.transactions import Owner, end_transactions, init_producer_id
from barnabas.error_codes import ErrorCode
from barnabas.protocol.records.record import build_batch
from barnabas.testing import Broker


def room(values: list[bytes]) -> bytearray:
    """Records as the encoder leaves them: room for a header, then the records."""
    return bytearray(build_batch([(None, value) for value in values]))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def now_ms() -> int:
    """A broker forgets a producer by the times of its records."""
    return time.time_ns() // 1_000_000


def producer_of(client: BlockingClient) -> BatchProducer:
    owner = client.run(init_producer_id(client.config, client.cluster, None)).owner
    return BatchProducer(client, now_ms, owner=owner)


def count(client: BlockingClient, topic: str, partition: int = 0) -> int:
    return client.list_offsets({(topic, partition): -1})[topic, partition].offset


def test_batches_arrive_in_order(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("order", 2)])
        producer = producer_of(client)
        for number in range(200):
            producer.send(("order", number % 2), room([b"%d" % number]), 1)
        producer.flush()
        for partition in range(2):
            assert count(client, "order", partition) == 100


def test_other_requests_of_the_client_come_in_between(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("one", 1), NewTopic("two", 1)])
        producer = producer_of(client)
        large = [b"x" * 1_000] * 700  # two batches are more than a request's bytes, so they are sent at once
        for _ in range(4):
            producer.send(("one", 0), room(large), len(large))
        assert set(client.topics_by_name(["one", "two"])) == {"one", "two"}
        for _ in range(4):
            producer.send(("one", 0), room(large), len(large))
        client.cluster.forget("two")
        producer.send(("two", 0), room(large), len(large))
        producer.flush()
        assert count(client, "one") == 8 * len(large)
        assert count(client, "two") == len(large)


def test_a_broker_that_is_killed_and_comes_back_has_each_batch_once() -> None:
    with Broker() as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("killed", 1)])
        producer = producer_of(client)
        large = [b"x" * 1_000] * 300
        for number in range(60):
            if number in (20, 40):
                broker.kill()
                broker.start()
            producer.send(("killed", 0), room(large), len(large))
        producer.flush()
        assert count(client, "killed") == 60 * len(large)


def test_a_refused_batch_is_told_with_its_place(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("small", 1, -1, {"max.message.bytes": "500"})])
        producer = producer_of(client)
        producer.send(("small", 0), room([b"x" * 1_000]), 1)
        with pytest.raises(PartitionError) as caught:
            producer.flush()
        assert (caught.value.code, caught.value.topic, caught.value.partition) == (ErrorCode.MESSAGE_TOO_LARGE, "small", 0)
        producer.close()


def test_a_topic_is_made_by_the_broker_where_that_is_on(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        producer = producer_of(client)
        producer.send(("made", 0), room([b"v"]), 1)
        producer.flush()
        assert count(client, "made") == 1


def test_a_topic_that_is_not_to_be_made(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        producer = BatchProducer(client, now_ms, any_topic=True, creates_topics=False)
        producer.send(("unmade", 0), room([b"a"]), 1)
        with pytest.raises(UnknownTopic):
            producer.flush()
        producer.close()
        assert client.topics_by_name(["unmade"]) == {}


@pytest.mark.parametrize("any_topic", [False, True])
def test_a_topic_that_is_deleted_under_its_producer_stays_away(broker: Broker, any_topic: bool) -> None:
    topic = f"gone-{any_topic}"
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic(topic, 1)])
        producer = BatchProducer(client, now_ms, any_topic=any_topic, creates_topics=not any_topic)
        producer.send((topic, 0), room([b"a"]), 1)
        producer.flush()
        with BlockingClient.to(broker.bootstrap_servers) as admin:
            admin.delete_topics([topic])
        producer.send((topic, 0), room([b"b"]), 1)
        with pytest.raises(UnknownTopic):
            producer.flush()
        producer.close()
        assert client.topics_by_name([topic]) == {}


@pytest.mark.parametrize("second_version", [True, False])
def test_a_transaction_of_either_version(broker: Broker, second_version: bool) -> None:
    name = f"transaction-{second_version}"
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic(name, 1)])
        owner = client.run(init_producer_id(client.config, client.cluster, name)).owner
        producer = BatchProducer(client, now_ms, owner=owner, transactional_id=name, second_version=second_version)
        producer.send((name, 0), room([b"a", b"b"]), 2)
        producer.flush()
        plan = end_transactions(client.config, client.cluster, {name: owner}, commit=True, second_version=second_version)
        follows = client.run(plan)[name]
        assert follows == (Owner(owner.producer_id, owner.epoch + 1) if second_version else owner)
        deadline = time.monotonic() + 60
        while count(client, name) < 3:  # the coordinator answers before it writes the marker
            assert time.monotonic() < deadline, "no marker"
        assert count(client, name) == 3


def test_an_owner_that_was_fenced_writes_nothing(broker: Broker) -> None:
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("fenced", 1)])
        first = client.run(init_producer_id(client.config, client.cluster, "fenced")).owner
        client.run(init_producer_id(client.config, client.cluster, "fenced"))
        producer = BatchProducer(client, now_ms, owner=first, transactional_id="fenced")
        producer.send(("fenced", 0), room([b"a"]), 1)
        with pytest.raises(PartitionError, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
            producer.flush()
        assert count(client, "fenced") == 0
