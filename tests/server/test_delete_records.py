"""DeleteRecords: what was acknowledged stays deleted, whatever happens to the broker next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.server.grouped import GroupedJob
from barnabas.testing import Broker

WAIT_S = 20


class Client:
    """Asks for one topic of one partition; made anew after a restart, for librdkafka remembers that the broker was away."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.topic = topic
        self._settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        self.admin = AdminClient(self._settings)

    def create(self) -> None:
        self.admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(WAIT_S)

    def delete(self) -> None:
        self.admin.delete_topics([self.topic])[self.topic].result(WAIT_S)

    def produce(self, count: int) -> None:
        producer = Producer(self._settings)
        for number in range(count):
            producer.produce(self.topic, str(number))
        assert producer.flush(WAIT_S) == 0

    def delete_before(self, offset: int) -> int:
        place = TopicPartition(self.topic, 0, offset)
        return int(next(iter(self.admin.delete_records([place]).values())).result(WAIT_S).low_watermark)

    def bounds(self) -> tuple[int, int]:
        consumer = Consumer({**self._settings, "group.id": "g"})
        try:
            found = consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=WAIT_S)
            assert found is not None
            return found
        finally:
            consumer.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def crash(broker: Broker) -> Client:
    broker.kill()
    broker.start()
    return Client(broker, "t")


def test_what_was_deleted_stays_deleted_after_a_crash(broker: Broker) -> None:
    client = Client(broker, "t")
    client.create()
    client.produce(10)
    assert client.delete_before(4) == 4
    client = crash(broker)
    assert client.bounds() == (4, 10)
    assert client.delete_before(3) == 4
    assert client.delete_before(-1) == 10
    client = crash(broker)
    assert client.bounds() == (10, 10)
    with pytest.raises(KafkaException, match="out of range"):
        client.delete_before(11)


def test_a_topic_made_anew_keeps_its_records(broker: Broker) -> None:
    client = Client(broker, "t")
    client.create()
    client.produce(10)
    assert client.delete_before(7) == 7
    client.delete()
    client.create()
    client.produce(3)
    client = crash(broker)
    assert client.bounds() == (0, 3)


async def test_all_who_ask_while_a_job_runs_share_the_next_run() -> None:
    runs = 0
    go_on, begun = threading.Event(), threading.Event()

    def job() -> None:
        nonlocal runs
        runs += 1
        begun.set()
        assert go_on.wait(WAIT_S)

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as threads:
        grouped = GroupedJob(loop, threads, job)
        first = loop.create_task(grouped.done())
        await loop.run_in_executor(None, begun.wait, WAIT_S)
        others = [loop.create_task(grouped.done()) for _ in range(10)]
        await asyncio.sleep(0)
        assert runs == 1
        go_on.set()
        await asyncio.gather(first, *others)
        assert runs == 2
        await grouped.close()


async def test_a_job_that_fails_fails_for_those_who_waited_for_it_only() -> None:
    outcomes: list[OSError | None] = [OSError("no"), None]

    def job() -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    with ThreadPoolExecutor(1) as threads:
        grouped = GroupedJob(asyncio.get_running_loop(), threads, job)
        with pytest.raises(OSError, match="no"):
            await grouped.done()
        await grouped.done()
        await grouped.close()
