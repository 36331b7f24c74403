"""`flush.messages` and `flush.ms`: what is held back until it is on the disk, as a core with the scheduler played by the test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, LogDirFailed, StorageExhausted
from barnabas.protocol.records.batch import build_batch
from barnabas.replication.follower_partition import FollowerPartition
from barnabas.replication.follower_state import FollowerState
from barnabas.replication.hosted_partitions import HostedPartitions
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.online_replica import OnlineReplica
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.log import Log
from tests.replication.test_partition import NOW_MS, Waiter, batch
from tests.replication.test_partition_followers import State


class Scheduler:
    """Notes what is asked for; `run` does it."""

    def __init__(self) -> None:
        self.wanted: list[OnlineReplica] = []
        self.delays: list[int] = []

    def flush_soon(self, partition: OnlineReplica) -> None:
        if partition not in self.wanted:
            self.wanted.append(partition)

    def flush_later(self, partition: OnlineReplica, delay_ms: int) -> None:
        self.delays.append(delay_ms)

    def run(self, partition: OnlineReplica) -> None:
        self.wanted.clear()
        plan = partition.plan_flush()
        assert plan is not None
        plan.run()
        partition.finish_flush(plan)


class NoSync(OsFiles):
    def sync(self, fileno: int, /) -> None:
        raise OSError(5, "Input/output error")


def open_log(folder: Path, config: TopicConfig, files: Files | None = None, *, recovery_point: int = 0) -> Log:
    return Log.open(
        folder / "topic-0",
        config=config,
        files=files or OsFiles(),
        now_ms=NOW_MS,
        clean_shutdown=False,
        recovery_point=recovery_point,
        topic_id=UUID(int=1),
    )


def opened(folder: Path, config: TopicConfig, files: Files | None = None) -> tuple[LeaderPartition, Scheduler]:
    scheduler = Scheduler()
    return LeaderPartition(open_log(folder, config, files), leader_id=1, leader_epoch=3, flushes=scheduler), scheduler


def test_with_flush_messages_1_nothing_is_committed_or_seen_before_it_is_on_the_disk(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_messages=1))
    waiter = Waiter()
    heard: list[KafkaError | None] = []
    partition.add_fetch_waiter(waiter)
    data = batch(b"a", b"b")
    result = partition.append_as_leader(data, NOW_MS)
    partition.wait_committed(result.last_offset, heard.append)
    assert (partition.high_watermark, scheduler.wanted, heard, waiter.heard) == (0, [partition], [], [])
    assert partition.read(0, 10_000, minimum_one=True) is None
    plan = partition.plan_flush()
    assert plan is not None
    later = partition.append_as_leader(batch(b"c"), NOW_MS)  # comes during the flush, which does not cover it
    plan.run()
    partition.finish_flush(plan)
    assert (partition.high_watermark, heard, waiter.heard) == (2, [None], [len(data)])
    assert not partition.is_committed(later.last_offset)
    assert scheduler.wanted == [partition]
    scheduler.run(partition)
    assert (partition.high_watermark, scheduler.wanted) == (3, [])
    assert waiter.heard == [len(data), len(batch(b"c"))]
    partition.log.close()


def test_who_takes_over_while_a_flush_runs_hears_that_all_is_on_the_disk(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_messages=1))
    partition.append_as_leader(batch(b"a"), NOW_MS)
    plan = partition.plan_flush()
    assert plan is not None
    partition.close()
    followed = FollowerPartition(partition.log, State(leader=2, leader_epoch=4), flushes=scheduler, high_watermark=0)
    heard: list[bool] = []
    followed.on_ready = lambda: heard.append(followed.is_ready)
    assert (followed.needs_flush, followed.is_ready) == (True, False)
    plan.run()
    partition.finish_flush(plan)
    assert (followed.is_ready, heard) == (True, [])
    assert followed.plan_flush() is None
    assert heard == [True]
    partition.log.close()


def test_the_time_until_a_flush_counts_for_who_takes_over_too(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_ms=700))
    partition.append_as_leader(batch(b"a"), NOW_MS)
    assert scheduler.delays == [700]
    partition.close()
    followed = FollowerPartition(partition.log, State(leader=2, leader_epoch=4), flushes=scheduler, high_watermark=0)
    followed.resume_flushing()
    assert (scheduler.delays, scheduler.wanted) == ([700, 700], [])
    scheduler.run(followed)
    followed.resume_flushing()
    assert scheduler.delays == [700, 700], "all is on the disk"
    partition.log.close()


def test_what_was_taken_of_an_answer_before_the_disk_was_full_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, scheduler = open_log(tmp_path, TopicConfig(flush_messages=1)), Scheduler()
    followed = FollowerPartition(log, State(leader=2, leader_epoch=4), flushes=scheduler, high_watermark=0)

    def takes_a_part(*_: object) -> None:
        log.appender.append_as_follower(batch(b"a"), now_ms=NOW_MS)
        raise StorageExhausted("one", "there is no room")

    monkeypatch.setattr(FollowerState, "receive", takes_a_part)
    answer: Any = SimpleNamespace(records=b"two batches")
    with pytest.raises(StorageExhausted):
        followed.receive(followed.position, answer, NOW_MS)
    assert (followed.is_ready, scheduler.wanted) == (False, [followed])
    scheduler.run(followed)
    assert followed.is_ready
    log.close()


def test_who_leads_after_a_flush_of_who_followed_commits_it(tmp_path: Path) -> None:
    log, scheduler = open_log(tmp_path, TopicConfig(flush_messages=1)), Scheduler()
    first = LeaderPartition(log, leader_id=1, leader_epoch=3, flushes=scheduler)
    first.append_as_leader(batch(b"a"), NOW_MS)
    plan = first.plan_flush()
    assert plan is not None
    first.close()
    after = LeaderPartition(log, leader_id=1, leader_epoch=4, flushes=scheduler)
    plan.run()
    first.finish_flush(plan)
    assert after.high_watermark == 0
    assert after.plan_flush() is None
    assert after.high_watermark == 1
    log.close()


def test_with_flush_messages_3_fewer_than_three_committed_records_are_not_on_the_disk(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_messages=3))
    partition.append_as_leader(batch(b"a"), NOW_MS)
    partition.append_as_leader(batch(b"b"), NOW_MS)
    assert (partition.high_watermark, scheduler.wanted) == (2, [])
    partition.append_as_leader(batch(b"c"), NOW_MS)
    assert (partition.high_watermark, scheduler.wanted) == (2, [partition])
    partition.append_as_leader(batch(b"d"), NOW_MS)
    assert partition.high_watermark == 2
    scheduler.run(partition)
    assert (partition.high_watermark, partition.log.durable_end) == (4, 4)
    partition.append_as_leader(batch(b"e"), NOW_MS)
    assert (partition.high_watermark, scheduler.wanted) == (5, [])
    partition.log.close()


def test_flush_ms_counts_from_the_first_record_that_is_not_on_the_disk_and_holds_nothing_back(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_ms=50))
    for value in (b"a", b"b", b"c"):
        partition.append_as_leader(batch(value), NOW_MS)
    assert (partition.high_watermark, scheduler.delays, scheduler.wanted) == (3, [50], [])
    scheduler.run(partition)
    assert partition.log.durable_end == 3
    assert scheduler.delays == [50]
    partition.append_as_leader(batch(b"d"), NOW_MS)
    assert (partition.high_watermark, scheduler.delays) == (4, [50, 50])
    partition.log.close()


def test_settings_take_effect_on_what_is_held_back(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_messages=1))
    partition.append_as_leader(batch(b"a"), NOW_MS)
    partition.update_config(TopicConfig())
    assert (partition.high_watermark, partition.log.durable_end) == (1, 0)
    partition.append_as_leader(batch(b"b"), NOW_MS)
    scheduler.wanted.clear()
    partition.update_config(TopicConfig(flush_messages=1))
    assert (partition.high_watermark, scheduler.wanted) == (2, [partition])
    partition.append_as_leader(batch(b"c"), NOW_MS)
    assert partition.high_watermark == 2
    scheduler.run(partition)
    assert partition.high_watermark == 3
    partition.log.close()


def test_what_a_crash_left_is_shown_after_it_is_on_the_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(flush_messages=1))
    log.appender.append_as_leader(batch(b"a"), leader_epoch=3, now_ms=NOW_MS)
    log.appender.append_as_leader(batch(b"b"), leader_epoch=3, now_ms=NOW_MS)
    log.abandon()
    scheduler = Scheduler()
    log = open_log(tmp_path, TopicConfig(flush_messages=1), recovery_point=1)
    partition = LeaderPartition(log, leader_id=1, leader_epoch=4, flushes=scheduler)
    assert (partition.high_watermark, partition.needs_flush) == (1, True)
    scheduler.run(partition)
    assert (partition.high_watermark, partition.needs_flush) == (2, False)
    log.close()


def test_after_a_failed_sync_nothing_is_committed_any_more(tmp_path: Path) -> None:
    files = NoSync()
    partition, scheduler = opened(tmp_path, TopicConfig(flush_messages=1), files)
    heard: list[KafkaError | None] = []
    partition.append_as_leader(batch(b"a"), NOW_MS)
    partition.wait_committed(0, heard.append)
    with pytest.raises(LogDirFailed):
        scheduler.run(partition)
    assert (partition.high_watermark, heard) == (0, [])
    files.sync = OsFiles().sync  # type: ignore[method-assign]  # a second sync would succeed, but prove nothing
    with pytest.raises(LogDirFailed):
        partition.plan_flush()
    partitions = HostedPartitions()
    partitions.add(partition)
    partitions.take_offline(partition)
    assert [error.code for error in heard if error is not None] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert (list(partitions), len(partitions), partitions.is_offline("topic", 0)) == ([], 0, True)
    found = partitions.by_name_bytes(b"topic")
    assert found is not None
    stand_in = found[0]
    assert (stand_in.is_leader, stand_in.is_offline, stand_in.closed) == (False, True, True)
    for name in ("log", "append_as_leader", "read", "check_leader_epoch"):
        assert (hasattr(partition, name), hasattr(stand_in, name)) == (True, False), name
    for require in (partitions.require, partitions.require_leader):
        with pytest.raises(KafkaError) as refused:
            require("topic", 0)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    partition.log.close()


def test_a_retry_of_a_batch_that_is_not_on_the_disk_is_not_acknowledged_either(tmp_path: Path) -> None:
    partition, scheduler = opened(tmp_path, TopicConfig(flush_messages=1))
    sent = bytearray(build_batch([(None, b"a")], timestamp_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=0))
    partition.append_as_leader(memoryview(bytearray(sent)), NOW_MS)
    again = partition.append_as_leader(memoryview(bytearray(sent)), NOW_MS)
    assert (again.duplicate, again.last_offset) == (True, 0)
    assert not partition.is_committed(again.last_offset)
    scheduler.run(partition)
    assert partition.is_committed(again.last_offset)
    partition.log.close()
