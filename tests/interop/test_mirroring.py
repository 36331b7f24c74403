"""A mirror link from Apache Kafka: topics keep their offsets, and become writable here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tools.kafka import KafkaNode

from barnabas.testing import Broker
from tests.server.mirroring.clusters import batches, create_link, ends, promote, wait_equal

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with KafkaNode(heap="512m") as node:
        yield node.bootstrap


def test_topics_of_kafka_are_copied_batch_by_batch_and_promoted(kafka: str) -> None:
    with Broker() as target:
        ours = target.bootstrap_servers
        producer = Producer({"bootstrap.servers": kafka, "transactional.id": "moving", "compression.type": "zstd"})
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            for row in range(100):
                producer.produce("orders", key=str(row), value=f"{number}-{row}", headers={"at": str(number)})
            if number % 3:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()
        create_link(ours, kafka, topics="orders")
        wait_equal(kafka, ours, "orders")
        assert batches(ours, "orders") == batches(kafka, "orders")
        copied = ends(kafka, "orders")
        promote(ours, ["orders"])
        writer = Producer({"bootstrap.servers": ours})
        writer.produce("orders", b"here", partition=0)
        writer.flush(30)
        assert ends(ours, "orders") == {**copied, 0: copied[0] + 1}
