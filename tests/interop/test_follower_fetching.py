"""A consumer of librdkafka that says its rack reads from the follower there (KIP-392)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.client.asynchronous import AsyncClient
from barnabas.protocol.records.batch import build_batch
from tests.server.replication.cluster import TOPIC, Cluster, cluster_of
from tests.waiting import until

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER, FOLLOWER = 1, 3
VALUES = [b"%d" % number for number in range(1_000)]
WAIT_S = 30.0

pytestmark = pytest.mark.interop


def read_all(bootstrap: str, rack: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"of-{rack}", "client.rack": rack, "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        deadline, read = time.monotonic() + WAIT_S, list[bytes]()
        while len(read) < len(VALUES) and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None:
                assert message.error() is None, message.error()
                read.append(message.value() or b"")
        return read
    finally:
        consumer.close()


def given(cluster: Cluster) -> dict[int, int]:
    """Bytes of batches that each broker has given to fetchers, other brokers among them."""
    return {broker_id: broker.metrics.bytes_out for broker_id, broker in cluster.brokers.items()}


@pytest.mark.parametrize(
    ("rack", "reads_from"), [(f"rack-{FOLLOWER}", FOLLOWER), (f"rack-{LEADER}", LEADER), ("nowhere", LEADER)]
)
async def test_the_bytes_come_from_the_replica_in_the_rack_of_the_consumer(tmp_path: Path, rack: str, reads_from: int) -> None:
    async with cluster_of(tmp_path, 3, replica_selector_class=SELECTOR) as cluster:
        await cluster.create((LEADER, 2, FOLLOWER))
        batch = bytes(build_batch([(None, value) for value in VALUES], timestamp_ms=int(time.time() * 1000)))
        async with AsyncClient.to(cluster.addresses) as client:
            await client.produce(TOPIC, 0, batch, acks=-1)
        await until(lambda: set(cluster.marks().values()) == {len(VALUES)})
        before = given(cluster)
        assert await asyncio.to_thread(read_all, cluster.address(LEADER), rack) == VALUES
        more = {broker_id: count - before[broker_id] for broker_id, count in given(cluster).items()}
        assert more.pop(reads_from) >= len(batch)
        assert set(more.values()) == {0}
