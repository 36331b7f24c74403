"""A hundred partitions of Apache Kafka in copies: every batch is that of Kafka, over the wire, in the files, and for Kafka's dump tool."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tools.kafka import KafkaNode

from barnabas.testing import Broker
from tests.differential.mirroring.__main__ import CLEANING, compare_rounds
from tests.differential.mirroring.differ import Differ
from tests.differential.mirroring.load import COMPACTED, PLAIN, Load
from tests.server.mirroring.clusters import create_link
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
PARTITIONS = 100
LOAD_S = 8.0


def test_a_hundred_partitions_of_kafka_are_copied_during_load_compaction_aborts_and_deletions(tmp_path: Path) -> None:
    config = {"log.cleaner.backoff.ms": "200", "offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "2"}
    rng = random.Random(1)
    with KafkaNode(heap="512m", config=config, data_dir=tmp_path / "kafka") as kafka, Broker(CLEANING) as target:
        differ = Differ(kafka.bootstrap, target.bootstrap_servers, [kafka.data_dir], target.data_dirs)
        with Load(kafka.bootstrap, 1, plain_partitions=PARTITIONS) as load:
            create_link(target.bootstrap_servers, kafka.bootstrap, refresh_topics_interval_seconds="1")
            deadline = time.monotonic() + LOAD_S
            while time.monotonic() < deadline:
                differ.compare_prefix([each for each in load.partitions if rng.random() < 0.2])
            for _ in range(5):
                load.delete_records(rng)
            with load.pause():
                compacted = [each for each in load.partitions if each[0] == COMPACTED]
                wait_until(lambda: all(map(all, differ.have_gaps(compacted))), "source or copy is not compacted")
                found = differ.compare(load.partitions, load.ledger)
                bounds, partitions = differ.bounds(load.partitions), load.partitions
        assert sum(topic == PLAIN for topic, _ in partitions) == PARTITIONS
        assert load.ledger.aborted
        assert load.ledger.committed
        assert any(start for start, _ in bounds.values())
        assert found > PARTITIONS
        target.stop()
        kafka.end()
        differ.compare_dumps(partitions, bounds)
        assert differ.dumped > PARTITIONS


def test_kafkas_dump_tool_shows_equal_batches_in_source_and_copy() -> None:
    differ = compare_rounds(2, 3, 1.0, with_dumps=True)
    assert differ.dumped > 100
