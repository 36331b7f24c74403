"""Leaving Apache Kafka while consumers and idempotent producers run: they go on here, without a gap and without an error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tools.kafka import KafkaNode

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.mirror_migrate import Migration
from barnabas.testing import Broker
from tests.interop.following import Follower, Forwarder, begun, java_program, wait_read
from tests.server.mirroring.clusters import create, create_link, ends
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
TOPIC, RECORDS = "orders", 500
MOST_REPEATED = 100  # read and not committed yet at the switch


class LibrdkafkaWriter:
    def __init__(self, servers: str) -> None:
        self._producer = Producer({
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "reconnect.backoff.max.ms": 500,
            "metadata.recovery.strategy": "rebootstrap",
            "metadata.recovery.rebootstrap.trigger.ms": 2000,
        })  # fmt: skip
        self._failures: list[str] = []
        self._count = 0

    def write(self, count: int) -> None:
        """Write records; each must be acknowledged."""
        for _ in range(count):
            self._producer.produce(TOPIC, f"python-{self._count}", key=str(self._count), on_delivery=self._told)
            self._count += 1
        left = self._producer.flush(120)
        assert not left, f"{left} records are not answered"
        assert self._failures == []

    def _told(self, error: object, _: object) -> None:
        if error is not None:
            self._failures.append(str(error))


class JavaWriter:
    def __init__(self, servers: str, folder: Path) -> None:
        self._errors = (folder / "producer.log").open("wb")
        self._process = subprocess.Popen(
            java_program("Produce.java", servers, TOPIC),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._count = 0

    def write(self, count: int) -> None:
        """As that of LibrdkafkaWriter."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += count
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        assert told == f"{self._count}\n", Path(self._errors.name).read_text()[-3000:]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


@pytest.fixture
def kafka() -> Iterator[KafkaNode]:
    config = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    with KafkaNode(heap="512m", config=config) as node:
        create(node.bootstrap, TOPIC, 3)
        yield node


def test_live_consumers_and_idempotent_producers_move_from_kafka(kafka: KafkaNode, tmp_path: Path) -> None:
    with ExitStack() as stack:
        target = stack.enter_context(Broker())
        theirs, ours = kafka.bootstrap, target.bootstrap_servers
        forwarder = Forwarder(theirs)
        stack.callback(forwarder.close)
        programs = {"java": java_program("Follow.java"), "python": [sys.executable, str(HERE / "python" / "follow.py")]}
        consumers = []
        for name, command in programs.items():
            consumers.append(Follower([*command, forwarder.address, TOPIC, name], tmp_path, name))
            stack.callback(consumers[-1].close)
        java = JavaWriter(forwarder.address, tmp_path)
        stack.callback(java.close)
        writers: list[LibrdkafkaWriter | JavaWriter] = [LibrdkafkaWriter(forwarder.address), java]
        create_link(ours, theirs, topics=TOPIC, sync_group_offsets_interval_seconds="1")
        for writer in writers:
            writer.write(RECORDS)
        wait_until(lambda: begun(consumers), "not all consumers read", within_s=120)
        wait_read(consumers, ends(theirs, TOPIC))
        with Brokers(Connection(ours)) as brokers:
            run = Migration(brokers, "link", 120, lambda _: None)
            done = run.promote(run.catch_up(0).topics, run.wait_quiet(3))
        assert done.topics == [TOPIC]
        kafka.end()
        forwarder.target = ours
        for writer in writers:
            writer.write(RECORDS)
        final = ends(ours, TOPIC)
        assert sum(final.values()) == 2 * 2 * RECORDS  # nothing twice
        wait_read(consumers, final)
        for consumer in consumers:
            assert consumer.changed == []
            assert consumer.repeated() <= MOST_REPEATED, consumer.name
