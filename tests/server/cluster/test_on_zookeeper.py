"""Broker processes on a real ZooKeeper are killed, stand still and are stopped in order, while a producer and a group go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.server.cluster.processes import three_brokers
from tests.waiting import wait_until

WITHIN_S = 60
SESSION_TIMEOUT_MS = 15_000  # a slow broker keeps its session, and peers find a dead broker before its session ends
CLIENT: dict[str, Any] = {"log_level": 0}
# A client of librdkafka asks a suspended broker for the leader until the request times out, by default after one minute.
# A short timeout makes the client report errors. Tests that allow no error keep the default, for busy brokers.
IMPATIENT: dict[str, Any] = {**CLIENT, "socket.timeout.ms": 3_000}


@pytest.fixture(scope="module")
def brokers(shared_zookeeper: ZooKeeper) -> Iterator[list[Broker]]:
    settings = {
        "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
        "zookeeper.connection.timeout.ms": WITHIN_S * 1000,
        "offsets.topic.replication.factor": 3,
        "min.insync.replicas": 2,
    }
    with three_brokers(settings, shared_zookeeper) as processes:
        yield processes


ENDS_OF_CONNECTIONS = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}


class Traffic:
    """A producer of numbers that retries until they are acknowledged, and a group of one that reads them."""

    def __init__(self, servers: str, topic: str, client: dict[str, Any] = CLIENT) -> None:
        self.topic = topic
        self._client = client
        self.errors: list[str] = []  # errors reported to clients, without closed connections: a broker that stops closes its own
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self.seen: set[int] = set()
        self._servers = servers
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._servers, "enable.idempotence": True, "error_cb": self._error, **self._client}
        )
        number = 0
        while not self._stopping.is_set():
            producer.produce(self.topic, str(number).encode(), callback=self._told)
            number += 1
            producer.poll(0.005)
        producer.flush(WITHIN_S)

    def _error(self, error: KafkaError) -> None:
        if error.code() not in ENDS_OF_CONNECTIONS:
            self.errors.append(str(error))

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged.append(int(message.value() or b""))

    def _consume(self) -> None:
        settings = {
            "bootstrap.servers": self._servers,
            "group.id": self.topic,
            "auto.offset.reset": "earliest",
            "error_cb": self._error,
            **self._client,
        }
        consumer = Consumer(settings)
        consumer.subscribe([self.topic])
        deadline: float | None = None
        while deadline is None or (time.monotonic() < deadline and not self.seen.issuperset(self.acknowledged)):
            message = consumer.poll(0.2)
            error = message.error() if message is not None else None
            if error is not None:
                self._error(error)
            elif message is not None:
                self.seen.add(int(message.value() or b""))
            if deadline is None and self._stopping.is_set() and not self._threads[0].is_alive():
                deadline = time.monotonic() + WITHIN_S
        consumer.close()

    def wait_for_more(self, count: int = 100) -> None:
        """Until so many more were acknowledged and read, and all that was acknowledged by then was read: in every partition it goes on."""
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted)
        acknowledged = set(self.acknowledged)
        wait_until(lambda: self.seen.issuperset(acknowledged))


class Members:
    """The brokers by their ids, as an administrator sees them."""

    def __init__(self, brokers: list[Broker], topic: str, client: dict[str, Any] = CLIENT) -> None:
        self.brokers, self.topic = brokers, topic
        self.servers = ",".join(broker.bootstrap_servers for broker in brokers)
        self._admin = AdminClient({"bootstrap.servers": self.servers, **client})
        self._admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(WITHIN_S)

    def all_in_sync(self) -> bool:
        partitions = self._admin.list_topics(self.topic, timeout=WITHIN_S).topics[self.topic].partitions
        return all(len(partition.isrs) == 3 for partition in partitions.values())

    @property
    def controller(self) -> Broker:
        return self.brokers[self._admin.list_topics(timeout=WITHIN_S).controller_id - 1]

    @property
    def leader(self) -> Broker:
        """Of the first partition."""
        partitions = self._admin.list_topics(self.topic, timeout=WITHIN_S).topics[self.topic].partitions
        return self.brokers[partitions[0].leader - 1]


@pytest.mark.timeout(300)  # starts of brokers and waits of clients take long on a busy machine
def test_brokers_come_and_go_and_nothing_acknowledged_is_lost(brokers: list[Broker]) -> None:
    members = Members(brokers, "t", IMPATIENT)
    with Traffic(members.servers, "t", IMPATIENT) as traffic:
        traffic.wait_for_more()
        controller = members.controller
        controller.kill()
        traffic.wait_for_more()
        found = f"event=broker-found-dead broker={brokers.index(controller) + 1} "
        # One report is enough: the controller then removes the registration, and the other broker stops its probes.
        others = [broker for broker in brokers if broker is not controller]
        wait_until(lambda: any(found in broker.log for broker in others), "the end of the session was waited for")
        controller.start()
        wait_until(members.all_in_sync)
        leader = members.leader
        assert leader.pid is not None
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            traffic.wait_for_more()
        finally:
            os.kill(leader.pid, signal.SIGCONT)
        wait_until(members.all_in_sync)
        traffic.wait_for_more()
    assert traffic.failed == []
    assert traffic.seen.issuperset(traffic.acknowledged)


@pytest.mark.timeout(300)
def test_clients_are_told_of_no_error_while_each_broker_is_stopped_and_started(brokers: list[Broker]) -> None:
    members = Members(brokers, "rolled")
    with Traffic(members.servers, "rolled") as traffic:
        traffic.wait_for_more()
        for broker in brokers:
            broker.stop()
            traffic.wait_for_more()
            broker.start()
            wait_until(members.all_in_sync)
        traffic.wait_for_more()
    assert traffic.failed == []
    assert traffic.errors == []
    assert traffic.seen.issuperset(traffic.acknowledged)
