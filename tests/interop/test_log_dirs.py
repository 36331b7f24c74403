"""Several log directories as Kafka's own tool, kafka-python and confluent-kafka see them: sizes, and partitions that move while they are used."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from tools.kafka import run_tool

from barnabas.testing import Broker

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
    """What `kafka-log-dirs` tells of each directory."""
    printed = run_tool("kafka-log-dirs", "--bootstrap-server", server.bootstrap_servers, "--describe").stdout
    (answer,) = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    (found,) = answer["brokers"]
    assert all(each["error"] is None for each in found["logDirs"])
    return {each["logDir"]: each["partitions"] for each in found["logDirs"]}


def bytes_on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


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
    with broker(tmp_path, replica_alter_log_dirs_io_max_bytes_per_second="100000") as server:
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


@pytest.mark.timeout(240)
@pytest.mark.parametrize("settings", [SMALL_SEGMENTS, COMPACTED], ids=["kept", "compacted"])
def test_partitions_move_under_load_and_no_client_notices(tmp_path: Path, settings: dict[str, str]) -> None:
    errors: list[object] = []
    sent = [0] * PARTITIONS
    offsets: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
    stopping = Event()

    def done(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)
            return
        value, index, offset = message.value(), message.partition(), message.offset()
        assert isinstance(value, bytes)
        assert index is not None
        assert offset is not None
        offsets[index][int(value.split()[0])] = offset

    def produce(bootstrap: str) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "error_cb": errors.append}
        )
        while not stopping.is_set():
            for index in range(PARTITIONS):
                number = sent[index]
                producer.produce(TOPIC, b"%d " % number + bytes(1000), b"%d" % (number % KEYS), partition=index, on_delivery=done)
                sent[index] += 1
            producer.poll(0)
            if len(producer) > 5_000:
                producer.poll(0.01)
        errors.extend([None] * producer.flush(DEADLINE_S))

    with broker(tmp_path, replica_alter_log_dirs_io_max_bytes_per_second="20000000") as server:
        create(server, settings)
        bootstrap = server.bootstrap_servers
        reader = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "error", "error_cb": errors.append}
        )
        reader.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        writer = Thread(target=produce, args=(bootstrap,))
        writer.start()
        seen: list[list[int]] = [[] for _ in range(PARTITIONS)]

        def read() -> int:
            messages = reader.consume(5_000, 0.05)
            for message in messages:
                assert message.error() is None, message.error()
                index, value = message.partition(), message.value()
                assert index is not None
                assert isinstance(value, bytes)
                seen[index].append(int(value.split()[0]))
            return len(messages)

        try:
            for turn in range(MOVES):
                wanted = {index: tmp_path / ("two" if home.name == "one" else "one") for index, home in homes(tmp_path).items()}
                assert len(wanted) == PARTITIONS
                admin.alter_replica_log_dirs({(TOPIC, index, BROKER_ID): str(disk) for index, disk in wanted.items()})

                def is_over(wanted: dict[int, Path] = wanted) -> bool:
                    read()
                    return homes(tmp_path) == wanted

                wait_until(is_over, f"the moves of turn {turn} do not end")
        finally:
            stopping.set()
            writer.join()
        wait_until(
            lambda: not read() and all(each and each[-1] == last - 1 for each, last in zip(seen, sent, strict=True)), "read"
        )
        assert errors == []
        log = server.log
        assert log.count("moved topic=") == MOVES * PARTITIONS
        assert "move failed" not in log
        for index, numbers in enumerate(seen):
            assert sorted(offsets[index]) == list(range(sent[index]))
            assert numbers == sorted(set(numbers)), "once and in order"
            if settings is SMALL_SEGMENTS:
                assert numbers == list(range(sent[index]))
        if settings is COMPACTED:
            assert "cleaned topic=" in log
        reader.close()
        admin.close()
    with broker(tmp_path) as server:  # what was moved opens again
        reader = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "g", "enable.partition.eof": True})
        for index in range(PARTITIONS):
            last: dict[bytes, int] = {}
            reader.assign([TopicPartition(TOPIC, index, 0)])
            while True:
                message = reader.poll(DEADLINE_S)
                assert message is not None
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    break
                key, value, offset = message.key(), message.value(), message.offset()
                assert isinstance(value, bytes)
                assert isinstance(key, bytes)
                last[key] = int(value.split()[0])
                assert offsets[index][last[key]] == offset
            assert sorted(last.values()) == list(range(sent[index] - KEYS, sent[index]))
        reader.close()
