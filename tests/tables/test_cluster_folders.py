"""Data folders of the members of a cluster: leaders and followers, beside running brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from barnabas.client.results import NewTopic
from barnabas.tables import TableError
from barnabas.tables.folder_source import FolderSource
from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.server.cluster.processes import three_brokers
from tests.tables.consumer import CommittedConsumer
from tests.tables.sources import Row, rows_of
from tests.tables.writing import BrokerWriter
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def brokers(shared_zookeeper: ZooKeeper) -> Iterator[list[Broker]]:
    settings = {"zookeeper.session.timeout.ms": 15_000, "replica.high.watermark.checkpoint.interval.ms": 100}
    with three_brokers(settings, shared_zookeeper) as processes:
        yield processes


@pytest.fixture
def writer(brokers: list[Broker]) -> Iterator[BrokerWriter]:
    with closing(BrokerWriter(",".join(each.bootstrap_servers for each in brokers))) as made:
        yield made


def test_every_replica_gives_the_committed_rows(brokers: list[Broker], writer: BrokerWriter) -> None:
    topic = "replicated"
    writer.client.create_topics([NewTopic(topic, 1, 3, {"min.insync.replicas": "2", "internal.segment.bytes": "600"})])
    committed, aborted, opened = (writer.transaction() for _ in range(3))
    servers = ",".join(each.bootstrap_servers for each in brokers)
    with closing(CommittedConsumer(servers)) as consumer:
        sources = [FolderSource(topic, each.data_dirs) for each in brokers]
        for number in range(10):
            writer.append(topic, 0, [(None, b"plain %d" % number)])
            committed.append(topic, 0, [(None, b"committed %d" % number)])
            aborted.append(topic, 0, [(None, b"aborted %d" % number)])
            for source in sources:
                end = source.snapshot().partitions[0].end
                assert end <= writer.last_stable(topic, 0)
            committed.end(commit=True)
            aborted.end(commit=False)
        opened.append(topic, 0, [(None, b"open")])
        writer.append(topic, 0, [(None, b"behind")])
        end = writer.last_stable(topic, 0)
        rows = [Row(each.offset, each.value) for each in consumer.read(topic, 0, 0, end)]
        assert len(rows) == 20
        for source in sources:
            wait_until(lambda source=source: source.snapshot().partitions[0].end == end)  # type: ignore[misc]  # mypy sees no type of the default
            snapshot = source.snapshot()
            assert rows_of(source, snapshot) == rows
            assert source.end_of_epoch(0, snapshot.epochs[0]) >= end
            source.close()


def test_a_folder_has_the_partitions_whose_replicas_are_there(brokers: list[Broker], writer: BrokerWriter) -> None:
    topic = "spread"
    writer.client.create_topics([NewTopic(topic, 3, 1, {})])
    for partition in range(3):
        writer.append(topic, partition, [(None, b"%d" % partition)])
    found: dict[int, list[Row]] = {}
    for broker in brokers:
        with closing(FolderSource(topic, broker.data_dirs)) as source:
            wait_until(lambda source=source: all(each.end for each in source.snapshot().partitions.values()))  # type: ignore[misc]  # mypy sees no type of the default
            snapshot = source.snapshot()
            found |= {each: rows_of(source, snapshot, each) for each in snapshot.partitions}
    assert found == {each: [Row(0, b"%d" % each)] for each in range(3)}
    with closing(FolderSource("nowhere", brokers[0].data_dirs)) as source, pytest.raises(TableError, match="there is no topic"):
        source.snapshot()
