"""A leader with followers as a core: acknowledgements, what readers and followers see, and what is asked of the controller."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.rows import ROW, Run
from barnabas.replication.follower_partition import FollowerPartition
from barnabas.replication.hosted_partitions import HostedPartitions
from barnabas.replication.in_sync import IsrChange
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.storage.log import Log
from tests.replication.test_partition import NOW_MS, Waiter, batch, open_partition

LAG_MAX_MS = 1_000
EPOCH = 3


class State(NamedTuple):
    """The controller's word."""

    leader: int = 1
    leader_epoch: int = EPOCH
    replicas: tuple[int, ...] = (1, 2, 3)
    isr: tuple[int, ...] = (1, 2, 3)
    partition_epoch: int = 0


class FakeCluster:
    """Notes what is proposed; everybody may join but `fenced`, and who has a partition on a disk that failed (`offline`)."""

    lag_max_ms = LAG_MAX_MS

    def __init__(self) -> None:
        self.heard: dict[int, int] = {}
        self.fenced: set[int] = set()
        self.offline: set[tuple[int, UUID, int]] = set()
        self.proposed: list[IsrChange] = []

    def may_join(self, replica_id: int, broker_epoch: int, topic_id: UUID, partition: int) -> bool:
        return replica_id not in self.fenced and (replica_id, topic_id, partition) not in self.offline

    def in_sync_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        """Counted by brokers."""

    def propose(self, partition: LeaderPartition, change: IsrChange) -> None:
        self.proposed.append(change)

    @property
    def asked_for(self) -> list[tuple[int, ...]]:
        return [tuple(member.replica_id for member in change.members) for change in self.proposed]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def leader(tmp_path: Path, cluster: FakeCluster) -> LeaderPartition:
    partition = open_partition(tmp_path)
    partition.lead(State(), cluster, 0)
    return partition


def fetch(leader: LeaderPartition, replica_id: int, offset: int, now_ms: int = 0) -> None:
    leader.fetched_by(replica_id, offset, start_offset=0, broker_epoch=replica_id, now_ms=now_ms)


def code_of(error: KafkaError | None) -> ErrorCode | None:
    return None if error is None else error.code


def test_acks_of_all_wait_for_the_followers_and_acks_of_one_do_not(leader: LeaderPartition) -> None:
    leader.append_as_leader(batch(b"a"), NOW_MS)
    assert (leader.high_watermark, leader.is_kept(0)) == (0, True)
    told: list[KafkaError | None] = []
    leader.wait_acknowledged(0, told.append, acks_all=True)
    fetch(leader, 2, 1)
    assert told == []
    fetch(leader, 3, 1)
    assert told == [None]
    assert leader.high_watermark == 1


def test_a_late_fetch_of_a_process_that_has_died_commits_nothing(leader: LeaderPartition) -> None:
    leader.append_as_leader(batch(b"a"), NOW_MS)
    fetch(leader, 2, 1)
    leader.fetched_by(3, 0, start_offset=0, broker_epoch=4, now_ms=0)  # follower 3 started again, without its records
    with pytest.raises(KafkaError) as refused:
        leader.fetched_by(3, 1, start_offset=0, broker_epoch=3, now_ms=0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.high_watermark == 0
    leader.fetched_by(3, 1, start_offset=0, broker_epoch=4, now_ms=0)
    assert leader.high_watermark == 1


def test_records_are_deleted_when_enough_replicas_begin_behind_them(tmp_path: Path, cluster: FakeCluster) -> None:
    leader = open_partition(tmp_path)
    leader.update_config(TopicConfig(min_insync_replicas=2))
    leader.lead(State(isr=(1,)), cluster, 0)
    for _ in range(3):
        leader.append_as_leader(batch(b"a"), NOW_MS)
    told: list[KafkaError | None] = []
    leader.log.truncator.delete_records_before(2)
    assert not leader.is_deleted(2), "who has left the set may lead next"
    leader.wait_deleted(2, told.append)
    leader.fetched_by(2, 3, start_offset=0, broker_epoch=2, now_ms=0)
    assert cluster.asked_for == [], "it would lead with what is deleted"
    leader.fetched_by(2, 3, start_offset=2, broker_epoch=2, now_ms=0)
    assert cluster.asked_for == [(1, 2)]
    assert told == []
    leader.settle_isr((1, 2), leader_epoch=EPOCH, partition_epoch=1)
    assert told == [None]
    assert leader.is_deleted(2)


def test_who_asks_late_whether_records_are_deleted_is_told_at_once(leader: LeaderPartition) -> None:
    leader.append_as_leader(batch(b"a"), NOW_MS)
    for follower in (2, 3):
        fetch(leader, follower, 1)
    leader.log.truncator.delete_records_before(1)
    for follower in (2, 3):
        leader.fetched_by(follower, 1, start_offset=1, broker_epoch=follower, now_ms=0)
    told: list[KafkaError | None] = []
    leader.wait_deleted(1, told.append)
    assert told == [None]
    leader.close()
    leader.wait_deleted(1, told.append)
    assert code_of(told[1]) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_waits_for_the_disk_is_told_though_the_followers_have_gone(tmp_path: Path, cluster: FakeCluster) -> None:
    leader = open_partition(tmp_path)
    leader.update_config(TopicConfig(flush_messages=2))
    leader.lead(State(), cluster, 0)
    leader.append_as_leader(batch(b"a"), NOW_MS)
    told: list[KafkaError | None] = []
    leader.wait_acknowledged(0, told.append, acks_all=False)
    leader.lead(State(replicas=(1,), isr=(1,), partition_epoch=1), cluster, 0)
    leader.append_as_leader(batch(b"b"), NOW_MS)
    assert told == [None]


def test_a_word_that_is_known_already_ends_no_proposal(leader: LeaderPartition, cluster: FakeCluster) -> None:
    leader.settle_isr((1,), leader_epoch=EPOCH, partition_epoch=1)
    fetch(leader, 2, 0)
    assert cluster.asked_for == [(1, 2)]
    leader.settle_isr((1, 2), leader_epoch=EPOCH, partition_epoch=2)
    fetch(leader, 3, 0)
    assert cluster.asked_for == [(1, 2), (1, 2, 3)]
    leader.lead(State(isr=(1, 2), partition_epoch=2), cluster, 0)
    assert leader.is_proposing(cluster.proposed[1])
    leader.append_as_leader(batch(b"a"), NOW_MS)
    fetch(leader, 2, 1)
    assert leader.high_watermark == 0, "the controller may let the other in at any moment"


def run_of(*values: bytes) -> tuple[Run, memoryview]:
    """Batches of one record each as they lie among requests that arrived together."""
    buffer, rows, taken = bytearray(), b"", 0
    for number, value in enumerate(values):
        data = batch(value)
        buffer += b"request" + data
        rows += ROW.pack(number, len(buffer) - len(data), len(buffer), 1, NOW_MS)
        taken += len(data)
    return Run(rows, len(values), len(values), taken, len(buffer), has_producer=False), memoryview(buffer)


def test_a_run_waits_for_the_followers_like_its_batches_one_by_one(leader: LeaderPartition) -> None:
    first = batch(b"first")
    leader.append_as_leader(first, NOW_MS)
    consumer, follower = Waiter(), Waiter()
    leader.add_fetch_waiter(consumer)
    leader.add_fetch_waiter(follower, as_follower=True)
    run, buffer = run_of(b"a", b"b", b"c")
    assert leader.admits_run(run, buffer, acks_all=True)
    assert leader.append_run(run, buffer) == 1
    assert (leader.log.log_end_offset, leader.high_watermark, leader.is_kept(3)) == (4, 0, True)
    told: list[KafkaError | None] = []
    leader.wait_acknowledged(1, told.append, acks_all=True)
    leader.wait_acknowledged(3, told.append, acks_all=True)
    fetch(leader, 2, 4)
    fetch(leader, 3, 2)
    assert (leader.high_watermark, told) == (2, [None])
    fetch(leader, 3, 4)
    assert (leader.high_watermark, told) == (4, [None, None])
    assert sum(size for size in consumer.heard if isinstance(size, int)) == len(first) + run.size
    assert follower.heard[0] == run.size


def test_followers_read_to_the_end_and_consumers_to_the_high_watermark(leader: LeaderPartition) -> None:
    data = batch(b"a")
    consumer, follower = Waiter(), Waiter()
    leader.add_fetch_waiter(consumer)
    leader.add_fetch_waiter(follower, as_follower=True)
    leader.append_as_leader(data, NOW_MS)
    assert leader.read(0, 1_000, minimum_one=True) is None
    region = leader.read_as_follower(0, 1_000, minimum_one=True)
    assert region is not None
    assert region.size == len(data)
    assert (consumer.heard, follower.heard) == ([], [len(data)])
    fetch(leader, 2, 1)
    fetch(leader, 3, 1)
    assert (consumer.heard, follower.heard) == ([len(data)], [len(data), "watermark"])


def test_a_reader_ahead_of_the_high_watermark_waits_and_one_past_the_end_is_refused(leader: LeaderPartition) -> None:
    leader.append_as_leader(batch(b"a", b"b"), NOW_MS)
    assert leader.read(2, 1_000, minimum_one=True) is None
    with pytest.raises(KafkaError) as refused:
        leader.read(3, 1_000, minimum_one=True)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_who_falls_behind_is_to_leave_and_comes_back_when_it_has_caught_up(leader: LeaderPartition, cluster: FakeCluster) -> None:
    leader.append_as_leader(batch(b"a"), NOW_MS)
    fetch(leader, 2, 1, now_ms=900)
    leader.check_in_sync(LAG_MAX_MS + 1)
    assert cluster.asked_for == [(1, 2)]
    assert leader.high_watermark == 0, "until the controller has agreed"
    leader.settle_isr((1, 2), leader_epoch=EPOCH, partition_epoch=1)
    assert leader.high_watermark == 1
    leader.check_in_sync(LAG_MAX_MS + 2)
    assert cluster.asked_for == [(1, 2)], "it is still behind"
    fetch(leader, 3, 1, now_ms=LAG_MAX_MS + 3)
    assert cluster.asked_for == [(1, 2), (1, 2, 3)]


def test_an_idle_partition_keeps_its_followers_while_they_are_heard_of(leader: LeaderPartition, cluster: FakeCluster) -> None:
    for follower in (2, 3):
        fetch(leader, follower, 0)
    cluster.heard.update({2: 60_000, 3: 10_000})
    leader.check_in_sync(60_000)
    assert cluster.proposed == []
    leader.append_as_leader(batch(b"a"), NOW_MS)
    leader.check_in_sync(60_500)
    assert cluster.asked_for == [(1, 2)], "nothing was heard of 3 for 50 s"


def test_too_few_in_sync_refuse_new_and_waiting_producers(leader: LeaderPartition) -> None:
    leader.update_config(TopicConfig(min_insync_replicas=2))
    leader.append_as_leader(batch(b"a"), NOW_MS, acks_all=True)
    told: list[KafkaError | None] = []
    leader.wait_acknowledged(0, told.append, acks_all=True)
    leader.wait_committed(0, told.append)
    leader.settle_isr((1,), leader_epoch=EPOCH, partition_epoch=1)
    assert [code_of(error) for error in told] == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    with pytest.raises(KafkaError) as refused:
        leader.append_as_leader(batch(b"b"), NOW_MS, acks_all=True)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.append_as_leader(batch(b"b"), NOW_MS).first_offset == 1
    assert leader.high_watermark == 0, "what the last replica standing has is not committed"
    leader.update_config(TopicConfig(min_insync_replicas=1))
    assert leader.high_watermark == 2
    assert told[1:] == [None]


def test_a_fenced_follower_is_neither_asked_for_nor_waited_for(leader: LeaderPartition, cluster: FakeCluster) -> None:
    leader.settle_isr((1, 2), leader_epoch=EPOCH, partition_epoch=1)
    cluster.fenced.add(3)
    fetch(leader, 3, 0)
    leader.append_as_leader(batch(b"a"), NOW_MS)
    fetch(leader, 2, 1)
    assert (leader.high_watermark, cluster.proposed) == (1, [])
    fetch(leader, 3, 1)
    cluster.fenced.clear()
    leader.check_in_sync(1)
    assert cluster.asked_for == [(1, 2, 3)]


def test_a_refused_change_may_be_asked_for_again(leader: LeaderPartition, cluster: FakeCluster) -> None:
    leader.append_as_leader(batch(b"a"), NOW_MS)
    leader.check_in_sync(LAG_MAX_MS + 1)
    assert leader.is_proposing(cluster.proposed[0])
    leader.isr_refused(cluster.proposed[0])
    assert not leader.is_proposing(cluster.proposed[0])
    leader.check_in_sync(LAG_MAX_MS + 2)
    assert cluster.asked_for == [(1,), (1,)]
    leader.isr_refused(cluster.proposed[0])  # a late answer
    assert leader.is_proposing(cluster.proposed[1])


def test_a_replica_more_and_a_replica_less(leader: LeaderPartition, cluster: FakeCluster) -> None:
    leader.lead(State(replicas=(1,), isr=(1,), partition_epoch=1), cluster, 0)
    leader.append_as_leader(batch(b"a"), NOW_MS)
    assert leader.high_watermark == 1
    leader.lead(State(replicas=(1, 4), isr=(1,), partition_epoch=2), cluster, 0)
    leader.append_as_leader(batch(b"b"), NOW_MS)
    assert leader.high_watermark == 2, "alone in sync"
    fetch(leader, 4, 2)
    assert cluster.asked_for == [(1, 4)]
    with pytest.raises(KafkaError) as refused:
        fetch(leader, 2, 2)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader.lead(State(replicas=(1, 2, 3), isr=(1, 2, 3), partition_epoch=1), cluster, 0)
    assert leader.followers is not None
    assert leader.followers.replicas.isr == {1}, "an older word is passed over"


def test_a_new_epoch_begins_in_the_log_and_everybody_is_heard_anew(leader: LeaderPartition, cluster: FakeCluster) -> None:
    leader.append_as_leader(batch(b"a"), NOW_MS)
    waiter = Waiter()
    leader.add_fetch_waiter(waiter)
    fetch(leader, 2, 1)
    fetch(leader, 3, 1)
    leader.lead(State(leader_epoch=EPOCH + 1, partition_epoch=1), cluster, 0)
    assert leader.log.epoch_entries == [(EPOCH, 0), (EPOCH + 1, 1)]
    assert waiter.heard[-1] == "closed"
    leader.append_as_leader(batch(b"b"), NOW_MS)
    fetch(leader, 2, 2)
    assert (leader.high_watermark, leader.knows_end) == (1, True)
    fetch(leader, 3, 2)
    assert leader.high_watermark == 2


def test_a_new_leader_does_not_know_the_end_until_the_others_were_heard(tmp_path: Path, cluster: FakeCluster) -> None:
    partition = open_partition(tmp_path)
    partition.append_as_leader(batch(b"a"), NOW_MS)
    log = partition.log
    led = LeaderPartition(log, leader_id=1, leader_epoch=EPOCH + 1, high_watermark=0)
    led.lead(State(leader_epoch=EPOCH + 1), cluster, 0)
    assert (led.high_watermark, led.knows_end) == (0, False)
    fetch(led, 2, 1)
    fetch(led, 3, 1)
    assert (led.high_watermark, led.knows_end) == (1, True)


def test_who_follows_has_nothing_of_what_only_a_leader_may_do(tmp_path: Path) -> None:
    partition = open_partition(tmp_path)
    followed = FollowerPartition(partition.log, State(leader=2), flushes=None, high_watermark=0)
    for name in ("append_as_leader", "append_own", "append_run", "end_offset_for_epoch", "fetched_by", "settle_isr", "lead"):
        assert (hasattr(partition, name), hasattr(followed, name)) == (True, False), name
    partitions = HostedPartitions()
    partitions.add(followed)
    assert partitions.require("topic", 0) is followed
    with pytest.raises(KafkaError) as refused:
        partitions.require_leader("topic", 0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not followed.follow(State(leader=3, leader_epoch=EPOCH - 1))
    assert followed.follow(State(leader=3, leader_epoch=EPOCH + 1))
    assert (followed.leader_id, followed.position.leader_epoch) == (3, EPOCH + 1)


def test_who_follows_sends_readers_to_the_leader_that_are_past_the_end_of_its_log(tmp_path: Path) -> None:
    partition = open_partition(tmp_path)
    partition.append_as_leader(batch(b"a"), NOW_MS)
    followed = FollowerPartition(partition.log, State(leader=2), flushes=None, high_watermark=0)
    assert followed.read(1, 1_000, minimum_one=True) is None
    with pytest.raises(KafkaError) as refused:
        followed.read(2, 1_000, minimum_one=True)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "offset"), [(EPOCH - 1, 1), (EPOCH, 2), (EPOCH + 1, 1)], ids=["lost epoch", "past the end", "unknown epoch"]
)
def test_who_follows_sends_readers_of_another_history_to_the_leader(tmp_path: Path, epoch: int, offset: int) -> None:
    partition = open_partition(tmp_path)
    partition.lead(State(replicas=(1,), isr=(1,)), FakeCluster(), 0)
    partition.append_as_leader(batch(b"a"), NOW_MS)
    followed = FollowerPartition(partition.log, State(leader=2), flushes=None, high_watermark=1)
    for same, at in ((EPOCH, 1), (-1, 2)):  # a reader of the same history, and one that tells nothing
        followed.diverging_epoch(same, at)
    with pytest.raises(KafkaError) as refused:
        followed.diverging_epoch(epoch, offset)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_retention_leaves_what_is_not_committed(tmp_path: Path, cluster: FakeCluster) -> None:
    config = TopicConfig(segment_bytes=1024, retention_ms=1)
    partition = open_partition(tmp_path)
    partition.update_config(config)
    partition.lead(State(), cluster, 0)
    log: Log = partition.log
    for _ in range(4):
        partition.append_as_leader(batch(b"x" * 600), NOW_MS)
    for follower in (2, 3):
        fetch(partition, follower, 2)
    assert log.truncator.apply_retention(NOW_MS + 1_000, committed_end=partition.high_watermark) == 2
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)


def test_nobody_waits_for_a_follower_whose_disk_failed(leader: LeaderPartition, cluster: FakeCluster) -> None:
    """It passes for caught up, since it asks for other partitions."""
    fetch(leader, 2, 0)
    fetch(leader, 3, 0)
    cluster.offline = {(3, leader.topic_id, leader.index)}
    leader.lead(State(isr=(1, 2), partition_epoch=1), cluster, 0)
    cluster.heard = {3: 0}
    leader.append_as_leader(batch(b"a"), NOW_MS)
    fetch(leader, 2, 1)
    assert (leader.high_watermark, cluster.proposed) == (1, [])
    cluster.offline.clear()  # broker 3 started again
    fetch(leader, 3, 1)
    assert cluster.asked_for == [(1, 2, 3)]
