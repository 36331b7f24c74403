"""A folder of ours, carried to Apache Kafka: its checkpoints, indexes, snapshots and compacted segments are taken as they are."""

from __future__ import annotations

import re
import shutil
import struct
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import KafkaNode, run_tool

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import AppendOrigin, Record, build_batch
from barnabas.storage import checkpoints
from barnabas.testing import Broker
from tests.interop.test_java import _dump
from tests.storage.support import FILES, NOW, append, open_log
from tests.waiting import wait_until

pytestmark = pytest.mark.interop
WAIT_S = 60
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CONFIG: dict[str, str | int | bool] = {"log.cleaner.backoff.ms": 50, "offsets.topic.num.partitions": 1}
FOR_EVER = {"retention.ms": "-1"}
SMALL = {**FOR_EVER, "internal.segment.bytes": "20000", "index.interval.bytes": "500"}
TOPICS = {"kept": {}, "cut": {}, "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}}
CUT_AT = 500
START = int(time.time() * 1000) - 60_000  # ms; recent, because Kafka drops old producers when it reads the snapshot
CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANED_OFFSETS,
)
Seen = dict[str, tuple[int, list[tuple[int, int, bytes | None, bytes | None]]]]


def create(servers: str, settings: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics(
        [NewTopic(name, 1, 1, config={**settings, **own}) for name, own in TOPICS.items()]
    ).values():
        future.result(WAIT_S)


def fill(servers: str) -> None:
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "enable.idempotence": True,
                             "batch.num.messages": 20, "log_level": 0})  # fmt: skip
        for number in range(400):
            for topic in TOPICS:
                producer.produce(topic, key=str(number % 50), value=f"{codec} {number} {'x' * 150}", timestamp=START + number)
            producer.poll(0)
        assert producer.flush(WAIT_S) == 0
    admin = AdminClient({"bootstrap.servers": servers})
    place = TopicPartition("cut", 0, CUT_AT)
    admin.delete_records([place])[place].result(WAIT_S)


def read(servers: str) -> Seen:
    """Where each topic begins, and its records."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "enable.partition.eof": True,
                         "auto.offset.reset": "earliest", "log_level": 0})  # fmt: skip
    seen: Seen = {}
    for topic in TOPICS:
        bounds = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)
        assert bounds is not None
        consumer.assign([TopicPartition(topic, 0, bounds[0])])
        records = []
        while (message := consumer.poll(WAIT_S)) is not None and not message.error():
            records.append((message.offset() or 0, message.timestamp()[1], message.key(), message.value()))
        seen[topic] = bounds[0], records
    consumer.close()
    return seen


def wait_until_compacted(folder: Path) -> None:
    def is_compacted() -> bool:
        active = max(int(path.stem) for path in (folder / "compacted-0").glob("*.log"))
        checkpoint = folder / checkpoints.CLEANED_OFFSETS
        return bool(active) and checkpoint.exists() and f"compacted 0 {active}" in checkpoint.read_text().splitlines()

    wait_until(is_compacted, "the log was not compacted", within_s=WAIT_S)


def carry_over(ours: Path, kafka: Path) -> None:
    """Put our partitions and checkpoints in the place of Kafka's, whose metadata knows the topics by ids of its own."""
    for topic in TOPICS:
        metadata = (kafka / f"{topic}-0" / checkpoints.PARTITION_METADATA).read_bytes()
        shutil.rmtree(kafka / f"{topic}-0")
        shutil.copytree(ours / f"{topic}-0", kafka / f"{topic}-0")
        (kafka / f"{topic}-0" / checkpoints.PARTITION_METADATA).write_bytes(metadata)
    for name in CHECKPOINTS:
        offsets = {key: offset for key, offset in checkpoints.read_offsets(FILES, ours / name).items() if key[0] in TOPICS}
        assert offsets
        FILES.replace_file(kafka / name, checkpoints.encode_offsets(offsets))


@pytest.mark.timeout(300)
def test_kafka_serves_what_barnabas_wrote(tmp_path: Path) -> None:
    ours, kafka = tmp_path / "ours", tmp_path / "kafka"
    with Broker(CONFIG, data_dir=ours) as broker:
        create(broker.bootstrap_servers, SMALL)
        fill(broker.bootstrap_servers)
        wait_until_compacted(ours)
        before = read(broker.bootstrap_servers)
    assert before["cut"][0] == CUT_AT
    assert len(before["compacted"][1]) < len(before["kept"][1]) == 2000
    files = [path for path in ours.rglob("*") if path.suffix in (".log", ".index", ".timeindex", ".snapshot")]
    assert sum(path.suffix == ".log" for path in files) > 6
    _dump(sorted(files))
    with KafkaNode(heap="512m", data_dir=kafka) as node:
        create(node.bootstrap, FOR_EVER)
    carry_over(ours, kafka)
    with KafkaNode(heap="512m", data_dir=kafka) as node:
        assert read(node.bootstrap) == before
        told = run_tool(
            "kafka-transactions",
            "--bootstrap-server",
            node.bootstrap,
            "describe-producers",
            "--topic",
            "kept",
            "--partition",
            "0",
        )
        sequences = {line.split("\t")[3].strip() for line in told.stdout.splitlines()[1:]}
        assert sequences == {"399"}
        log = node.log
    assert not re.search("corrupt|rebuil|recover|truncat", log, re.IGNORECASE), log[-3000:]


def test_the_index_of_aborted_transactions_is_read_by_the_dump_tool(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(segment_bytes=2000))
    for number in range(30):
        append(log, b"v" * 50, producer_id=7, producer_epoch=0, base_sequence=number, transactional=1)
        marker = Record(0, NOW, struct.pack(">hh", 0, number % 2), struct.pack(">hi", 0, 0))
        batch = build_batch([marker], producer_id=7, producer_epoch=0, transactional=True, control=True)
        log.appender.append_as_leader(batch, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    log.close()
    files = sorted(path for path in log.directory.iterdir() if path.suffix in (".txnindex", ".snapshot", ".log", ".index"))
    _dump(files)
    indexes = [path for path in files if path.suffix == ".txnindex"]
    assert len(indexes) > 2
    dumped = run_tool("kafka-dump-log", "--files", ",".join(map(str, indexes))).stdout
    entries = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+)", dumped)
    assert [tuple(map(int, entry)) for entry in entries] == [(7, 4 * n, 4 * n + 1) for n in range(15)]
