"""The bytes that a start after a crash must read stay bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.partition import OnlinePartition
from barnabas.server import maintenance
from barnabas.server.logs.recovery_bound import Unflushed, flushes_due
from barnabas.testing.failing_files import FailingFiles
from tests.server.in_process import TOPIC, running
from tests.storage.support import append, open_log


def partition_of(folder: Path, records: int, segment_bytes: int = 10**6) -> LeaderPartition:
    log = open_log(folder, TopicConfig(segment_bytes=segment_bytes))
    for _ in range(records):
        append(log, b"x" * 1000)
    return LeaderPartition(log, leader_id=1, leader_epoch=0)


def due(partitions: list[LeaderPartition], bound: int) -> list[tuple[OnlinePartition, int]]:
    return flushes_due([each for each in map(Unflushed.of, partitions) if each is not None], bound)


def test_the_largest_are_flushed_until_little_is_left(tmp_path: Path) -> None:
    partitions = [partition_of(tmp_path / str(count), count) for count in (5, 30, 0, 10)]
    total = sum(each.log.size_bytes for each in partitions)
    assert due(partitions, total) == []
    assert due(partitions, total - 1) == [(partitions[1], 30)]
    assert due(partitions, 12_000) == [(partitions[1], 30), (partitions[3], 10)]
    partitions[1].log.flush()
    assert partitions[1].log.unflushed_bytes == 0
    append(partitions[1].log, b"y")
    assert 0 < partitions[1].log.unflushed_bytes < 200
    assert due(partitions, 12_000) == [(partitions[3], 10)]
    for each in partitions:
        each.log.close()


def test_sealed_segments_are_always_flushed(tmp_path: Path) -> None:
    partition = partition_of(tmp_path, 20, segment_bytes=5000)
    assert due([partition], 10**9) == [(partition, partition.log.active_base_offset)]
    partition.log.flush(partition.log.active_base_offset)
    assert due([partition], 10**9) == []
    partition.log.close()


async def test_a_flush_of_an_active_segment_leaves_the_producers_as_they_are_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that came since it was chosen go with it."""
    async with running([tmp_path], FailingFiles()) as client:
        await client.create()
        partition = client.broker.partitions.require(TOPIC, 0)
        monkeypatch.setattr(maintenance, "flushes_due", lambda _: [(partition, 1)])
        for value in (b"a", b"b", b"c"):
            assert await client.produce(value) == 0
        await maintenance.flush(client.broker.services)
        assert partition.log.recovery_point == 3
        assert [int(path.stem) for path in partition.log.directory.glob("*.snapshot")] == [3]
