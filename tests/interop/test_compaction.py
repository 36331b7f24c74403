"""Our cleaner and Kafka's on the same bytes: both leave the same records, and Kafka's dump tool reads what ours wrote."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import KafkaNode, run_tool

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import iterate_records
from barnabas.storage.log import Log
from tests.interop.test_java import _dump
from tests.storage.compaction.support import batches, compact, engine_of, engines, task_of
from tests.storage.support import open_log
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(600),  # three Kafka brokers and tools one after another: 120 s at a load of 12 on two cores
]

TOPIC = "topic"  # `open_log` uses the folder topic-0
SEGMENT_BYTES = 1_048_576
CONFIG = {"log.cleaner.backoff.ms": "100", "log.cleaner.enable": "false"}
TOPIC_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES), "min.cleanable.dirty.ratio": "0.01"}
CLEANING_TIMEOUT_S = 60.0


class Left(NamedTuple):
    """A record that is left, or the marker of a transaction."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    is_control: bool


def test_the_same_records_are_left(tmp_path: Path) -> None:
    kafka = tmp_path / "kafka"
    with KafkaNode(config=CONFIG, heap="512m", data_dir=kafka) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=TOPIC_CONFIG)])[TOPIC].result()
        _produce(node.bootstrap)
    ours = {name: tmp_path / name for name in engines()}
    for folder in ours.values():
        folder.mkdir()
        shutil.copytree(kafka / f"{TOPIC}-0", folder / f"{TOPIC}-0")
    with KafkaNode(config={**CONFIG, "log.cleaner.enable": "true"}, heap="512m", data_dir=kafka):
        _wait_until_cleaned(kafka)
    theirs = _open(kafka)
    expected = _left(theirs)
    assert sum(record.is_control for record in expected) > 5
    assert sum(record.value is None for record in expected) > 5
    theirs.close()
    contents = set()
    now_ms = int(time.time() * 1000)
    for name, folder in ours.items():
        log = _open(folder)
        before = len(_left(log))
        compact(log, engine_of(name), task_of(log, now_ms=now_ms, segment_bytes=SEGMENT_BYTES))
        assert _left(log) == expected
        assert before - len(expected) > 5000
        _dump([path for path in sorted(log.directory.iterdir()) if path.suffix in {".log", ".index", ".timeindex", ".txnindex"}])
        contents.add(tuple(data for _, data in batches(log)))
        visible = _visible(log)
        log.close()
    assert len(contents) == 1
    shutil.rmtree(kafka / f"{TOPIC}-0")
    shutil.copytree(next(iter(ours.values())) / f"{TOPIC}-0", kafka / f"{TOPIC}-0")
    with KafkaNode(config=CONFIG, heap="512m", data_dir=kafka) as node:  # Kafka serves the log that barnabas cleaned
        arguments = ["--topic", TOPIC, "--from-beginning", "--isolation-level", "read_committed", "--timeout-ms", "60000"]
        arguments += ["--max-messages", str(len(visible))]
        seen = run_tool("kafka-console-consumer", "--bootstrap-server", node.bootstrap, *arguments, check=False).stdout
    assert seen.splitlines() == visible


def _open(folder: Path) -> Log:
    policy = frozenset({"compact"})
    return open_log(folder, TopicConfig(cleanup_policy=policy, segment_bytes=SEGMENT_BYTES))


def _left(log: Log) -> list[Left]:
    return [
        Left(record.offset, record.timestamp, record.key, record.value, header.is_control)
        for header, data in batches(log)
        for record in iterate_records(data)
    ]


def _visible(log: Log) -> list[str]:
    """The output of a reader of committed records."""
    aborted = log.reader.aborted_transactions(0, log.log_end_offset)
    return [
        "null" if record.value is None else record.value.decode()
        for header, data in batches(log)
        if not header.is_control
        and not any(a.producer_id == header.producer_id and a.first_offset <= header.base_offset < a.last_offset for a in aborted)
        for record in iterate_records(data)
    ]


def _produce(bootstrap: str) -> None:
    """All codecs, with and without idempotence, transactions that commit and abort, tombstones; some 6 MB."""
    chance = random.Random(4)
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        common = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 50,
            "batch.num.messages": 40,
            "log_level": 0,
        }
        plain = Producer({**common, "enable.idempotence": number % 2 == 0})
        _send(plain, chance, 3000)
        plain.flush()
        transactional = Producer({**common, "transactional.id": f"transaction-{number}"})
        transactional.init_transactions()
        for round_ in range(6):
            transactional.begin_transaction()
            _send(transactional, chance, 200)
            if round_ % 3 == 1:
                transactional.flush()
                transactional.abort_transaction()
            else:
                transactional.commit_transaction()
    last = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    _send(last, chance, 3000)
    last.flush()


def _send(producer: Producer, chance: random.Random, count: int) -> None:
    for _ in range(count):
        value = None if chance.random() < 0.1 else chance.randbytes(60).hex()
        producer.produce(TOPIC, key=f"key-{chance.randrange(900)}", value=value)
        producer.poll(0)


def _wait_until_cleaned(data_dir: Path) -> None:
    """Until Kafka's cleaner has written down that all but the active segment is clean."""
    checkpoint = data_dir / "cleaner-offset-checkpoint"

    def is_clean() -> bool:
        active = max(int(path.stem) for path in (data_dir / f"{TOPIC}-0").glob("*.log"))
        return checkpoint.exists() and f"{TOPIC} 0 {active}" in checkpoint.read_text().splitlines()

    wait_until(is_clean, "Kafka did not clean the log", within_s=CLEANING_TIMEOUT_S)
