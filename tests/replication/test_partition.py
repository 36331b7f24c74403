"""A partition as a core: what is committed, what readers see, who is woken."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import build_batch, read_header
from barnabas.protocol.records.record import assemble
from barnabas.replication.hosted_partitions import HostedPartitions
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.storage.markers import marker_batch

NOW_MS = 1_700_000_000_000


def open_partition(folder: Path, name: str = "topic-0", leader_epoch: int = 3) -> LeaderPartition:
    log = Log.open(
        folder / name,
        config=TopicConfig(),
        files=OsFiles(),
        now_ms=NOW_MS,
        clean_shutdown=False,
        topic_id=UUID(int=int(name[-1]) + 1),
    )
    return LeaderPartition(log, leader_id=1, leader_epoch=leader_epoch)


def batch(*values: bytes) -> memoryview:
    return memoryview(bytearray(build_batch([(None, value) for value in values], timestamp_ms=NOW_MS)))


class Waiter:
    def __init__(self) -> None:
        self.heard: list[int | str] = []

    def records_added(self, size: int) -> None:
        self.heard.append(size)

    def high_watermark_moved(self) -> None:
        self.heard.append("watermark")

    def log_start_moved(self) -> None:
        self.heard.append("start moved")

    def partition_closed(self) -> None:
        self.heard.append("closed")


def test_aborted_transactions_are_told_of_a_region_in_a_later_segment_than_the_offset(tmp_path: Path) -> None:
    """Compaction has emptied the batch that is asked for, and the segment it is in."""
    log = open_partition(tmp_path).log
    log.update_config(TopicConfig(segment_bytes=1))
    emptied = assemble(read_header(batch(b"a", b"b"))._replace(records_count=0), b"")
    log.appender.append_as_follower(memoryview(bytearray(emptied)), now_ms=NOW_MS)
    data = build_batch(
        [(None, b"x")],
        base_offset=2,
        base_sequence=0,
        transactional=True,
        producer_id=7,
        producer_epoch=0,
        timestamp_ms=NOW_MS,
    )
    log.appender.append_as_follower(memoryview(bytearray(data)), now_ms=NOW_MS)
    marker = bytearray(marker_batch(7, 0, commit=False, coordinator_epoch=0, now_ms=NOW_MS).batch.data)
    marker[:8] = (3).to_bytes(8, "big")
    log.appender.append_as_follower(memoryview(marker), now_ms=NOW_MS)
    partition = LeaderPartition(log, leader_id=1, leader_epoch=3)
    region = partition.read(0, 1_000, minimum_one=True, isolation_level=1)
    assert region is not None
    assert (region.base_offset, log.reader.segment_end(0)) == (2, 2)
    assert partition.aborted_in(region, 0) == [(7, 2)]


def test_what_a_lone_leader_appends_is_committed_and_readable(tmp_path: Path) -> None:
    partition = open_partition(tmp_path)
    data = batch(b"a", b"b")
    result = partition.append_as_leader(data, NOW_MS)
    assert (result.first_offset, result.last_offset) == (0, 1)
    assert partition.high_watermark == 2
    assert partition.is_committed(1)
    region = partition.read(0, 10_000, minimum_one=True)
    assert region is not None
    assert region.size == len(data)
    assert partition.read(2, 10_000, minimum_one=True) is None
    with pytest.raises(KafkaError) as refused:
        partition.read(3, 10_000, minimum_one=True)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.log.close()


def test_a_lone_replica_cannot_be_asked_for_more(tmp_path: Path) -> None:
    partition = open_partition(tmp_path)
    partition.update_config(TopicConfig(min_insync_replicas=2))
    assert partition.append_as_leader(batch(b"a"), NOW_MS, acks_all=True).first_offset == 0  # as in Kafka 4.3
    assert partition.high_watermark == 1
    partition.log.close()


def test_waiters_are_woken_by_appends_and_by_the_end(tmp_path: Path) -> None:
    partition = open_partition(tmp_path)
    waiter, gone = Waiter(), Waiter()
    partition.add_fetch_waiter(waiter)
    partition.add_fetch_waiter(gone)
    partition.remove_fetch_waiter(gone)
    data = batch(b"a")
    partition.append_as_leader(data, NOW_MS)
    failures: list[KafkaError | None] = []
    partition.wait_committed(5, failures.append)
    partition.log.truncator.delete_records_before(1)
    partition.tell_log_start()
    partition.close()
    assert waiter.heard == [len(data), "start moved", "closed"]
    assert gone.heard == []
    assert [error.code for error in failures if error] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    partition.log.close()


def test_commit_waiters_hear_once_their_offset_is_below_the_high_watermark(tmp_path: Path) -> None:
    partition = open_partition(tmp_path)
    heard: list[str] = []
    partition.wait_committed(0, lambda _: heard.append("first"))
    partition.wait_committed(1, lambda _: heard.append("second"))
    partition.append_as_leader(batch(b"a"), NOW_MS)
    assert heard == ["first"]
    partition.append_as_leader(batch(b"b"), NOW_MS)
    assert heard == ["first", "second"]
    partition.log.close()


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, None), (3, None), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_requests_of_other_epochs_are_refused(tmp_path: Path, epoch: int, code: ErrorCode | None) -> None:
    partition = open_partition(tmp_path)
    if code is None:
        partition.check_leader_epoch(epoch)
    else:
        with pytest.raises(KafkaError) as refused:
            partition.check_leader_epoch(epoch)
        assert refused.value.code is code
    assert partition.leader_epoch == 3
    partition.log.close()


def test_partitions_are_found_by_name_by_its_bytes_and_by_id_until_they_are_removed(tmp_path: Path) -> None:
    partitions = HostedPartitions()
    zero, one = open_partition(tmp_path, "topic-0"), open_partition(tmp_path, "topic-1")
    one.topic_id = zero.topic_id
    partitions.add(zero)
    partitions.add(one)
    assert len(partitions) == 2
    assert partitions.require("topic", 1) is one
    assert partitions.by_name_bytes(b"topic") == {0: zero, 1: one}
    assert partitions.by_id(zero.topic_id, 0) is zero
    assert partitions.remove("topic", 0) is zero
    assert partitions.remove("topic", 0) is None
    assert zero.closed
    partitions.remove("topic", 1)
    assert (len(partitions), partitions.by_name_bytes(b"topic"), partitions.by_id(zero.topic_id, 1)) == (0, None, None)
    with pytest.raises(KafkaError) as missing:
        partitions.require("topic", 0)
    assert missing.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    zero.log.close()
    one.log.close()


def test_what_is_stable_does_not_end_before_the_log_begins(tmp_path: Path) -> None:
    """The beginning of an open transaction was deleted."""
    partition = open_partition(tmp_path)
    partition.append_as_leader(batch(b"a"), NOW_MS)
    data = build_batch(
        [(None, b"x"), (None, b"y")], base_sequence=0, transactional=True, producer_id=7, producer_epoch=0, timestamp_ms=NOW_MS
    )
    partition.append_as_leader(memoryview(bytearray(data)), NOW_MS)
    assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)
    partition.log.truncator.delete_records_before(2)
    assert partition.last_stable_offset == 2
