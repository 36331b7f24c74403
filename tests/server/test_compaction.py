"""Compaction in a running broker: in its own process, whatever happens to that, to the topic or to the broker."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from barnabas.testing import Broker

DEADLINE_S = 30
CONFIG: dict[str, str | int | bool] = {"log.cleaner.backoff.ms": 50, "log.segment.delete.delay.ms": 0}
COMPACTED = {"cleanup.policy": "compact", "internal.segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01"}
VALUE = "x" * 200


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"


class Client:
    """A topic of one partition and what was written to it."""

    def __init__(self, broker: Broker, topic: str, config: dict[str, str]) -> None:
        self.broker, self.topic = broker, topic
        self.servers: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
        self.admin = AdminClient(self.servers)
        self.admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(10)
        self.last: dict[bytes, bytes] = {}

    def write(self, count: int, keys: int = 20) -> None:
        producer = Producer({**self.servers, "enable.idempotence": True, "batch.num.messages": 10})
        for number in range(count):
            key, value = f"{number % keys}", f"{number}{VALUE}"
            producer.produce(self.topic, key=key, value=value)
            self.last[key.encode()] = value.encode()
        assert producer.flush(20) == 0

    def read(self) -> list[tuple[int, bytes, bytes]]:
        consumer = Consumer({**self.servers, "group.id": "reader", "enable.partition.eof": True, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        found: list[tuple[int, bytes, bytes]] = []
        try:
            while True:
                message = consumer.poll(10)
                assert message is not None
                if message.error():
                    return found
                found.append((message.offset() or 0, message.key(), message.value()))  # type: ignore[arg-type]
        finally:
            consumer.close()

    def set(self, **settings: str) -> None:
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(10)

    @property
    def folder(self) -> Path:
        return self.broker.data_dir / f"{self.topic}-0"

    def is_clean(self) -> bool:
        """Whether all but the active segment is clean, says the checkpoint."""
        checkpoint = self.broker.data_dir / "cleaner-offset-checkpoint"
        active = max(int(path.stem) for path in self.folder.glob("*.log"))
        return checkpoint.exists() and f"{self.topic} 0 {active}" in checkpoint.read_text().splitlines()

    def check(self) -> None:
        """The last value of every key is there, and of the clean part nothing else."""
        active = max(int(path.stem) for path in self.folder.glob("*.log"))
        left = self.read()
        assert {key: value for _, key, value in left} == self.last
        clean = [key for offset, key, _ in left if offset < active]
        assert len(clean) == len(set(clean))
        assert not [path for path in self.folder.iterdir() if path.suffix in (".cleaned", ".swap")]


def cleaner_pids(broker: Broker) -> list[int]:
    return [int(pid) for pid in re.findall(r"cleaner process started pid=(\d+)", broker.log)]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture(name="broker")
def _broker() -> Iterator[Broker]:
    with Broker(config=CONFIG) as broker:
        yield broker
    assert not any(map(is_running, cleaner_pids(broker)))


def test_of_each_key_the_last_record_stays(broker: Broker) -> None:
    client = Client(broker, "compacted", COMPACTED)
    client.write(2000)
    wait_until(client.is_clean, "clean")
    client.check()
    pid = cleaner_pids(broker)[-1]
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
    client.write(500)
    wait_until(client.is_clean, "clean again")
    client.check()
    assert cleaner_pids(broker) == [pid]
    broker.restart()
    client.servers = {"bootstrap.servers": broker.bootstrap_servers}
    client.check()
    assert not is_running(pid)


def test_a_new_policy_counts_at_once(broker: Broker) -> None:
    client = Client(broker, "not-yet", {**COMPACTED, "cleanup.policy": "delete"})
    client.write(1000)
    assert not cleaner_pids(broker)
    client.set(cleanup_policy="compact,delete")
    wait_until(client.is_clean, "clean")
    client.check()


def test_a_process_that_dies_is_replaced(broker: Broker) -> None:
    client = Client(broker, "killed", COMPACTED)
    client.write(1000)
    wait_until(client.is_clean, "clean")
    os.kill(cleaner_pids(broker)[-1], signal.SIGKILL)
    client.write(1000)
    wait_until(client.is_clean, "clean again")
    assert len(cleaner_pids(broker)) == 2
    client.check()


def test_a_killed_broker_takes_its_process_along(broker: Broker) -> None:
    client = Client(broker, "orphan", COMPACTED)
    client.write(1000)
    wait_until(client.is_clean, "clean")
    pid = cleaner_pids(broker)[-1]
    broker.kill()
    wait_until(lambda: not is_running(pid), "the process ended")
    broker.start()
    client.check()


def test_deleting_a_topic_ends_its_cleaning() -> None:
    with Broker(config={**CONFIG, "log.cleaner.io.max.bytes.per.second": 50_000}) as broker:
        client = Client(broker, "short-lived", COMPACTED)
        client.write(2000)
        wait_until(lambda: "cleaning topic=short-lived" in broker.log, "cleaning")
        client.admin.delete_topics(["short-lived"])["short-lived"].result(10)
        wait_until(lambda: not client.folder.exists(), "deleted")
        other = Client(broker, "short-lived", COMPACTED)
        other.write(300)
        wait_until(
            lambda: "cleaning topic=short-lived partition=0 first_dirty_offset=0" in broker.log.split("given up")[-1], "again"
        )
        assert "given up" in broker.log
        pids = cleaner_pids(broker)
    assert not any(map(is_running, pids))


def test_a_corrupt_log_is_left_alone_and_others_are_not(broker: Broker) -> None:
    bad, good = Client(broker, "bad", {**COMPACTED, "cleanup.policy": "delete"}), Client(broker, "good", COMPACTED)
    bad.write(300)
    path = min(bad.folder.glob("*.log"))
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff")
    bad.set(cleanup_policy="compact")
    wait_until(lambda: "log is not compacted any more topic=bad" in broker.log, "given up")
    assert str(path) in broker.log
    good.write(1000)
    wait_until(good.is_clean, "clean")
    good.check()


def test_committed_offsets_survive_compaction_and_a_restart() -> None:
    with Broker(config={**CONFIG, "log.cleaner.min.cleanable.ratio": "0.01"}) as broker:
        client = Client(broker, "read", {})
        client.write(100)
        consumer = Consumer({**client.servers, "group.id": "committer", "enable.auto.commit": False})
        consumer.committed([TopicPartition("read", 0)], timeout=10)  # which waits for the coordinator
        client.topic = "__consumer_offsets"
        client.set(internal_segment_bytes="4096")
        for number in range(1, 101):
            consumer.commit(offsets=[TopicPartition("read", 0, number)], asynchronous=False)
        consumer.close()
        offsets = broker.data_dir / "__consumer_offsets-0"
        wait_until(lambda: "cleaned topic=__consumer_offsets" in broker.log, "cleaned")
        size = sum(path.stat().st_size for path in offsets.glob("*.log"))
        assert size < 100 * 100
        broker.restart()
        again = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "committer"})
        assert [place.offset for place in again.committed([TopicPartition("read", 0)], timeout=10)] == [100]
        again.close()
