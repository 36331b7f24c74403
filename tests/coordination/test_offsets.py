"""Committed offsets: who may commit, what is kept, and for how long."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordination.group_shard import PART_BYTES
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordination.driver import GROUP, Driver
from tests.coordination.support import Config

DAY_MS = 86_400_000


def test_a_simple_consumer_commits_without_a_group() -> None:
    driver = Driver()
    assert driver.commit(5) is ErrorCode.NONE
    assert driver.fetch() == 5
    assert driver.group().protocol_type is None
    assert driver.restarted().fetch() == 5


def test_a_member_commits_in_its_generation_only() -> None:
    driver = Driver()
    (a,) = driver.stable("a")
    assert driver.commit(5, a, 1) is ErrorCode.NONE
    for member_id, generation, code in (
        (a, 0, ErrorCode.ILLEGAL_GENERATION),
        (a, 2, ErrorCode.ILLEGAL_GENERATION),
        (a, -1, ErrorCode.ILLEGAL_GENERATION),
        ("ghost", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError, match=code.name):
            driver.commit(9, member_id, generation)
    assert driver.fetch() == 5


def test_nobody_commits_while_the_assignment_is_made() -> None:
    driver = Driver()
    a = driver.new_id("a")
    driver.send_join("a", a)
    driver.settle()
    with pytest.raises(KafkaError, match="REBALANCE_IN_PROGRESS"):
        driver.commit(5, a, 1)


def test_a_transaction_commits_while_the_assignment_is_made() -> None:
    driver = Driver()
    a = driver.new_id("a")
    driver.send_join("a", a)
    driver.settle()
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=7,
        member_id=a,
        generation_id=1,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    outcome = driver.shard.commit_offsets_in_transaction(request, driver.clock.now())
    assert outcome.response.topics[0].partitions[0].error_code == ErrorCode.NONE
    request.generation_id = 2
    with pytest.raises(KafkaError, match="ILLEGAL_GENERATION"):
        driver.shard.commit_offsets_in_transaction(request, driver.clock.now())


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_no_group_is_refused(version: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError, match=code.name):
        Driver().commit(5, "m", 3, version=version)


def test_a_group_whose_name_fits_into_no_record_is_refused() -> None:
    driver = Driver()
    assert driver.commit(5, group_id="é" * 16_000) is ErrorCode.NONE
    with pytest.raises(KafkaError, match="INVALID_GROUP_ID"):
        driver.commit(5, group_id="é" * 16_001)


def test_a_commit_is_as_good_as_a_heartbeat() -> None:
    driver = Driver()
    (a,) = driver.stable("a")
    for _ in range(3):
        driver.advance(9_000)
        assert driver.commit(5, a, 1) is ErrorCode.NONE
    assert a in driver.group().members


def test_metadata_is_kept_and_bounded_as_java_counts() -> None:
    driver = Driver(Config(offset_metadata_max_bytes=4))
    assert driver.commit(1, metadata="abcd") is ErrorCode.NONE
    assert driver.commit(2, metadata="abcde") is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert driver.commit(3, metadata="\U0001f600" * 2) is ErrorCode.NONE
    assert driver.commit(4, metadata="\U0001f600" * 3) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert driver.commit(5, metadata=None) is ErrorCode.NONE
    assert driver.shard.offsets.of_group(GROUP)["t"][0].metadata == ""


def test_one_request_is_one_batch() -> None:
    driver = Driver()
    partitions = [OffsetCommitRequestPartition(partition_index=i, committed_offset=i) for i in range(3)]
    request = OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name in ("t", "u")]
    )
    outcome = driver.shard.commit_offsets(request, 9, driver.clock.now())
    assert len(outcome.records) == 6
    assert driver.fetch() == -1  # the offset is visible only after the write
    driver.carry_out(outcome)
    assert driver.fetch("u", 2) == 2


def test_a_topic_that_took_another_s_name_has_no_offsets() -> None:
    driver = Driver()
    request = OffsetCommitRequest(
        group_id=GROUP,
        topics=[
            OffsetCommitRequestTopic(
                name="t", topic_id=UUID(int=1), partitions=[OffsetCommitRequestPartition(committed_offset=3)]
            )
        ],
    )
    driver.carry_out(driver.shard.commit_offsets(request, 10, driver.clock.now()))

    def fetched(topic_id: UUID) -> int:
        topic = OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0])
        response = driver.shard.fetch_offsets(OffsetFetchRequestGroup(group_id=GROUP, topics=[topic]))
        return int(response.topics[0].partitions[0].committed_offset)

    assert fetched(UUID(int=1)) == 3
    assert fetched(UUID(int=2)) == -1
    assert driver.fetch() == 3


def test_all_offsets_of_a_group() -> None:
    driver = Driver()
    for topic, partition in (("t", 1), ("t", 0), ("u", 0)):
        driver.commit(7, topic=topic, partition=partition)
    response = driver.shard.fetch_offsets(OffsetFetchRequestGroup(group_id=GROUP, topics=None))
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics] == [("t", [0, 1]), ("u", [0])]
    assert driver.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="none", topics=None)).topics == []


def delete(driver: Driver, topic: str) -> ErrorCode:
    asked = [OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
    response = driver.carry_out(driver.shard.delete_offsets(OffsetDeleteRequest(group_id=GROUP, topics=asked)))
    return ErrorCode(response.topics[0].partitions[0].error_code)


def test_offsets_of_topics_that_are_read_are_not_deleted() -> None:
    driver = Driver()
    (a,) = driver.stable("a")
    driver.commit(5, a, 1)
    driver.commit(6, a, 1, topic="u")
    assert delete(driver, "t") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete(driver, "u") is ErrorCode.NONE
    assert (driver.fetch(), driver.fetch("u")) == (5, -1)
    assert driver.restarted().fetch("u") == -1


def test_offsets_of_other_protocols_are_not_deleted_while_they_run() -> None:
    driver = Driver()
    driver.stable("a", protocol_type="connect")
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        delete(driver, "t")


def test_a_group_is_deleted_with_its_offsets_when_it_is_empty() -> None:
    driver = Driver()
    (a,) = driver.stable("a")
    driver.commit(5, a, 1)
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        driver.shard.delete_group(GROUP)
    driver.leave(a)
    driver.carry_out(driver.shard.delete_group(GROUP))
    assert not driver.shard.groups
    assert driver.fetch() == -1
    assert not driver.restarted().shard.groups
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        driver.shard.delete_group(GROUP)


def test_offsets_go_with_their_topic() -> None:
    driver = Driver()
    driver.commit(5)
    driver.commit(6, topic="u")
    for outcome in driver.shard.delete_topics(["t"]):
        driver.carry_out(outcome)
    assert (driver.fetch(), driver.fetch("u")) == (-1, 6)


def test_what_is_forgotten_is_written_down_in_parts() -> None:
    driver = Driver()
    groups = [f"{number}-{'g' * 1_000}" for number in range(60)]
    for group_id in groups:
        driver.commit(5, group_id=group_id)
    parts = [outcome.records for outcome in driver.shard.delete_topics(["t"])]
    assert sum(map(len, parts)) == len(groups)
    assert all(sum(len(key) for key, _ in part) <= PART_BYTES for part in parts)
    expiring = list(driver.shard.expire(driver.clock.advance(30 * DAY_MS)))
    assert all(sum(len(key) for key, _ in outcome.records) <= PART_BYTES for outcome in expiring)
    for outcome in expiring:
        driver.carry_out(outcome)
    assert not driver.shard.groups


def test_a_simple_consumer_s_offsets_expire_after_their_commit() -> None:
    driver = Driver()
    driver.commit(5)
    driver.advance(3 * DAY_MS)
    driver.commit(6, topic="u")
    driver.advance(4 * DAY_MS + 600_000)
    assert (driver.fetch(), driver.fetch("u")) == (-1, 6)
    driver.advance(3 * DAY_MS)
    assert not driver.shard.groups
    assert not driver.restarted().shard.groups


def test_a_group_that_somebody_is_about_to_join_stays() -> None:
    driver = Driver()
    member_id = driver.new_id("a", session_timeout_ms=1_800_000)
    driver.advance(700_000)
    driver.send_join("a", member_id, session_timeout_ms=1_800_000)
    driver.settle()
    assert driver.joined("a").generation_id == 1


def test_a_group_s_offsets_expire_after_its_last_member_left() -> None:
    driver = Driver()
    (a,) = driver.stable("a", session_timeout_ms=1_800_000)
    driver.commit(5, a, 1)
    for _ in range(8 * 48 * 2):
        driver.advance(900_000)
        driver.heartbeat(a, 1)
    driver.leave(a)
    driver.advance(7 * DAY_MS - 600_000)
    assert driver.fetch() == 5
    driver.advance(1_200_000)
    assert not driver.shard.groups


def test_topics_nobody_reads_any_more_expire_while_the_group_runs() -> None:
    driver = Driver()
    (a,) = driver.stable("a", session_timeout_ms=1_800_000)
    driver.commit(5, a, 1)
    driver.commit(6, a, 1, topic="u")
    for _ in range(7 * 96 + 1):
        driver.advance(900_000)
        driver.heartbeat(a, 1)
    assert (driver.fetch(), driver.fetch("u")) == (5, -1)


def test_a_commit_of_version_1_is_kept_from_the_time_that_it_says() -> None:
    driver = Driver()
    for partition, age_ms in enumerate((0, 8 * DAY_MS)):
        driver.commit(5, partition=partition, at_ms=driver.clock.wall - age_ms, version=1)
    driver.advance(900_000)
    assert (driver.fetch(), driver.fetch(partition=1)) == (5, -1)


def test_a_request_s_own_retention_counts() -> None:
    driver = Driver()
    driver.commit(5, retention_ms=1_000, version=2)
    assert driver.restarted().shard.offsets.of_group(GROUP)["t"][0].expire_timestamp_ms == driver.clock.wall + 1_000
    driver.advance(600_000)
    assert driver.fetch() == -1
