"""A real client through changes of the leader: nothing acknowledged is lost, nothing is there twice, the order stays."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.server.replication.cluster import TOPIC, Cluster, cluster_of
from tests.waiting import WITHIN_S, until

RECORDS = 3_000


class Producing(threading.Thread):
    """Produces numbers, idempotently and with acks=all, until it is told to stop or has no more."""

    def __init__(self, addresses: str) -> None:
        super().__init__()
        self._producer = Producer({"bootstrap.servers": addresses, "enable.idempotence": True, "linger.ms": 1})
        self.acknowledged: list[int] = []
        self.failures: list[str] = []
        self.start()

    def run(self) -> None:
        for number in range(RECORDS):
            self._producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=self._delivered)
            self._producer.poll(0.001)
        if self._producer.flush(60):
            self.failures.append("not all was delivered in time")

    async def reach(self, count: int) -> None:
        """Wait until so many are acknowledged."""
        await until(lambda: len(self.acknowledged) >= count)

    def _delivered(self, error: Any, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.append(int(message.value() or b""))


def consume_all(address: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    read: list[int] = []
    while len(read) < count:
        messages = consumer.consume(min(1_000, count - len(read)), timeout=WITHIN_S)
        assert messages, f"{len(read)} of {count} were read"
        for message in messages:
            assert message.error() is None
            read.append(int(message.value() or b""))
    consumer.close()
    return read


async def check(cluster: Cluster, producing: Producing) -> None:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, producing.join)
    assert producing.failures == []
    assert producing.acknowledged == list(range(RECORDS))
    assert await loop.run_in_executor(None, consume_all, cluster.addresses, RECORDS) == list(range(RECORDS))
    await until(lambda: set(cluster.ends().values()) == {RECORDS})


async def test_an_idempotent_producer_goes_on_at_each_new_leader(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.create((1, 2, 3), min_insync_replicas="2")
        producing = Producing(cluster.addresses)
        for step in range(1, 6):
            await producing.reach(step * RECORDS // 8)
            await cluster.elect(step % 3 + 1)
        await check(cluster, producing)


async def test_a_leader_that_stops_is_followed_by_another(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.create((1, 2, 3), min_insync_replicas="2")
        producing = Producing(cluster.addresses)
        for step, leader in enumerate((1, 2, 3)):
            await producing.reach((step + 1) * RECORDS // 5)
            await cluster.stop(leader)
            await cluster.gone(leader)
            await cluster.elect(leader % 3 + 1, isr=[i for i in cluster.state().isr if i != leader])
            await cluster.start(leader)
            await until(lambda: set(cluster.state().isr) == {1, 2, 3})
        await check(cluster, producing)
