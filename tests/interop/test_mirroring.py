"""A mirror link from Apache Kafka: topics keep their offsets, and become writable here."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tools.kafka import KafkaNode

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.errors import Failure
from barnabas.cli.mirror_migrate import Migration
from barnabas.testing import Broker
from tests.server.mirroring.clusters import batches, commit, committed, create_link, ends, promote, wait_equal

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


def test_a_cluster_of_kafka_is_left_for_good(kafka: str) -> None:
    """The cut-over waits until nobody writes to Kafka; producers and groups go on here."""
    with Broker() as target:
        ours = target.bootstrap_servers
        producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True})
        for number in range(2000):
            producer.produce("leaving", f"v{number}", partition=0)
        assert producer.flush(30) == 0
        commit(kafka, "billing", "leaving", 700)
        create_link(ours, kafka, topics="leaving", groups="billing")
        told: list[str] = []
        is_over = threading.Event()

        def write() -> None:
            while not is_over.wait(0.05):
                producer.produce("leaving", "late", partition=0)
                producer.poll(0)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with Brokers(Connection(ours)) as brokers:
                run = Migration(brokers, "link", 60, told.append)
                assert run.catch_up(100).topics == ["leaving"]
                with pytest.raises(Failure, match="leaving of the source still gets records: stop its producers"):
                    Migration(brokers, "link", 3, told.append).wait_quiet(1)
        finally:
            is_over.set()
            writer.join()
        assert producer.flush(30) == 0
        with Brokers(Connection(ours)) as brokers:
            run = Migration(brokers, "link", 60, told.append)
            done = run.promote(run.catch_up(0).topics, run.wait_quiet(6))
        assert done.topics == ["leaving"]
        assert told[-1] == "1 topics with 1 partitions have all but 0 records of the source"
        assert ends(ours, "leaving") == ends(kafka, "leaving")
        assert committed(ours, "billing", "leaving") == 700
        writer_here = Producer({"bootstrap.servers": ours, "enable.idempotence": True})
        writer_here.produce("leaving", "here", partition=0)
        assert writer_here.flush(30) == 0
        assert ends(ours, "leaving")[0] == ends(kafka, "leaving")[0] + 1
