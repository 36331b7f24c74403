"""Several log directories as Kafka's own tool and two other clients see them: sizes, and partitions that move while they are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from tools.kafka import run_tool

from barnabas.testing import Broker
from tests.waiting import wait_until

pytestmark = pytest.mark.interop

TOPIC, PARTITIONS = "moved", 4
KEYS = 50
BROKER_ID = 1
DEADLINE_S = 60.0
MOVES = 6
SMALL_SEGMENTS = {"segment.bytes": str(2**20), "file.delete.delay.ms": "100"}
COMPACTED = {**SMALL_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}


def broker(root: Path, **settings: str) -> Broker:
    config = {"log.cleaner.backoff.ms": "50", "log.dirs": f"{root / 'one'},{root / 'two'}"}
    return Broker({**config, **{key.replace("_", "."): value for key, value in settings.items()}}, data_dir=root / "one")


def described(server: Broker) -> dict[str, list[dict[str, Any]]]:
    """The answer of `kafka-log-dirs` about each directory."""
    printed = run_tool("kafka-log-dirs", "--bootstrap-server", server.bootstrap_servers, "--describe").stdout
    (answer,) = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    (found,) = answer["brokers"]
    assert all(each["error"] is None for each in found["logDirs"])
    return {each["logDir"]: each["partitions"] for each in found["logDirs"]}


def bytes_on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def homes(root: Path) -> dict[int, Path]:
    """Where the partitions lie whose moves are over."""
    return {
        index: disk
        for index in range(PARTITIONS)
        for disk in (root / "one", root / "two")
        if (disk / f"{TOPIC}-{index}").exists() and not (disk / f"{TOPIC}-{index}" / "moved.tmp").exists()
    }


def create(server: Broker, settings: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=settings)])[TOPIC].result()


def test_the_sizes_that_kafkas_tool_shows_are_those_on_the_disks(tmp_path: Path) -> None:
    with broker(tmp_path, replica_alter_log_dirs_io_max_bytes_per_second="5000") as server:
        create(server, SMALL_SEGMENTS)
        producer = Producer({"bootstrap.servers": server.bootstrap_servers})
        for number in range(2_000):
            producer.produce(TOPIC, b"%d" % number * 200, partition=number % PARTITIONS)
        assert producer.flush(DEADLINE_S) == 0
        found = described(server)
        for disk, partitions in found.items():
            sizes = {each["partition"]: each["size"] for each in partitions}
            assert sizes == {each["partition"]: bytes_on_disk(Path(disk) / each["partition"]) for each in partitions}
            assert not any(each["isFuture"] or each["offsetLag"] for each in partitions)
        assert [len(partitions) for partitions in found.values()] == [PARTITIONS / 2, PARTITIONS / 2]
        moved = homes(tmp_path)[0]
        target = next(disk for disk in found if disk != str(moved))
        admin = KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
        admin.alter_replica_log_dirs({(TOPIC, 0, BROKER_ID): target})
        (copy,) = [each for each in described(server)[target] if each["isFuture"]]
        assert copy["partition"] == f"{TOPIC}-0"
        assert copy["offsetLag"] > 0
        admin.close()


def test_kafkas_tool_for_reassignments_moves_partitions_and_sees_that_they_are_there(tmp_path: Path) -> None:
    with broker(tmp_path) as server:
        create(server, SMALL_SEGMENTS)
        wanted = {index: tmp_path / ("two" if home.name == "one" else "one") for index, home in homes(tmp_path).items()}
        partitions = [
            {"topic": TOPIC, "partition": index, "replicas": [BROKER_ID], "log_dirs": [str(disk)]}
            for index, disk in wanted.items()
        ]
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        told = []
        for action in ("--execute", "--verify"):
            arguments = ("--bootstrap-server", server.bootstrap_servers, "--reassignment-json-file", str(plan), action)
            told.append(run_tool("kafka-reassign-partitions", *arguments).stdout)
            wait_until(lambda: homes(tmp_path) == wanted, "the moves do not end")
        for index, disk in wanted.items():
            assert (
                f"Successfully started moving log directory to {disk} for replica {TOPIC}-{index} with broker {BROKER_ID}"
                in told[0]
            )
            assert f"Reassignment of replica {TOPIC}-{index}-{BROKER_ID} completed successfully." in told[1]


class Traffic:
    """An idempotent producer in a thread and a consumer, of all partitions from the first record on."""

    def __init__(self, bootstrap: str) -> None:
        self.errors: list[object] = []
        self.sent = [0] * PARTITIONS
        self.offsets: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]  # per partition: acknowledged number -> offset
        self.seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self._stopping = Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "error_cb": self.errors.append}
        )
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "error_cb": self.errors.append})
        self._consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
        self._thread = Thread(target=self._produce)
        self._thread.start()

    def _produce(self) -> None:
        while not self._stopping.is_set():
            for index in range(PARTITIONS):
                number = self.sent[index]
                key, value = b"%d" % (number % KEYS), b"%d " % number + bytes(1000)
                self._producer.produce(TOPIC, value, key, partition=index, on_delivery=self._done)
                self.sent[index] += 1
            self._producer.poll(0.001)  # the shortest wait: a few MB/s, slower than a move copies
        if self._producer.flush(DEADLINE_S):
            self.errors.append("not all was acknowledged")

    def _done(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        index, number = place_of(message)
        offset = message.offset()
        assert offset is not None
        self.offsets[index][number] = offset

    def read(self) -> int:
        """Read what is there; how many records."""
        messages = self._consumer.consume(5_000, 0.05)
        for message in messages:
            assert message.error() is None, message.error()
            index, number = place_of(message)
            self.seen[index].append(number)
        return len(messages)

    def is_read(self) -> bool:
        return not self.read() and all(seen and seen[-1] == sent - 1 for seen, sent in zip(self.seen, self.sent, strict=True))

    def stop_writing(self) -> None:
        self._stopping.set()
        self._thread.join()

    def close(self) -> None:
        self.stop_writing()
        self._consumer.close()


def place_of(message: Message) -> tuple[int, int]:
    """Partition and number of a record."""
    index, value = message.partition(), message.value()
    assert index is not None
    assert isinstance(value, bytes)
    return index, int(value.split()[0])


def _have_moved(traffic: Traffic, folder: Path, wanted: dict[int, Path]) -> bool:
    """Reads on meanwhile."""
    return traffic.read() >= 0 and homes(folder) == wanted


@pytest.mark.timeout(240)
@pytest.mark.parametrize("settings", [SMALL_SEGMENTS, COMPACTED], ids=["kept", "compacted"])
def test_partitions_move_under_load_and_no_client_notices(tmp_path: Path, settings: dict[str, str]) -> None:
    with broker(tmp_path) as server:
        create(server, settings)
        admin = KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
        traffic = Traffic(server.bootstrap_servers)
        try:
            for turn in range(MOVES):
                wanted = {index: tmp_path / ("two" if home.name == "one" else "one") for index, home in homes(tmp_path).items()}
                assert len(wanted) == PARTITIONS
                admin.alter_replica_log_dirs({(TOPIC, index, BROKER_ID): str(disk) for index, disk in wanted.items()})
                wait_until(partial(_have_moved, traffic, tmp_path, wanted), f"the moves of turn {turn} do not end")
            if settings is COMPACTED:
                wait_until(lambda: traffic.read() >= 0 and "event=cleaned topic=" in server.log, "nothing is cleaned")
            traffic.stop_writing()
            wait_until(traffic.is_read, "not everything comes")
        finally:
            traffic.close()
            admin.close()
        assert traffic.errors == []
        assert server.log.count("event=log-moved topic=") == MOVES * PARTITIONS
        assert "event=log-move-failed" not in server.log
        assert ("event=cleaned topic=" in server.log) is (settings is COMPACTED)
        for index, numbers in enumerate(traffic.seen):
            assert sorted(traffic.offsets[index]) == list(range(traffic.sent[index]))
            assert numbers == (sorted(set(numbers)) if settings is COMPACTED else list(range(traffic.sent[index])))
    with broker(tmp_path) as server:  # the moved logs open again
        for index in range(PARTITIONS):
            last = {key: number for number, key in read_again(server, index, traffic.offsets[index])}
            assert sorted(last.values()) == list(range(traffic.sent[index] - KEYS, traffic.sent[index]))


def read_again(server: Broker, index: int, offsets: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    """Number and key of every record of a partition, each of which has the offset that the producer was told."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "again", "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, index, 0)])
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            break
        key, (_, number) = message.key(), place_of(message)
        assert isinstance(key, bytes)
        assert offsets[number] == message.offset()
        yield number, key
    consumer.close()
