"""Offsets that a transaction commits: pending until its marker, then there or gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.coordination.group_records import OffsetCommitValue
from barnabas.coordination.interfaces import EndMarker
from barnabas.coordination.partitioner import partition_of
from barnabas.coordination.pending_offsets import PendingOffsets
from barnabas.coordination.result import Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.testing.no_topics import NoTopics
from tests.coordination.support import Config, ManualClock, MemoryLog

GROUP = "g"
PARTITIONS = 4
HOME = partition_of(GROUP, PARTITIONS)
FIRST, SECOND = Producer(7, 0), Producer(8, 3)
PENDING = ErrorCode.UNSTABLE_OFFSET_COMMIT


class World:
    def __init__(self) -> None:
        self.log, self.config, self.clock = MemoryLog(PARTITIONS), Config(), ManualClock()
        self.groups = GroupCoordinator(self.log, self.config, self.clock, NoTopics())

    async def restart(self) -> None:
        self.groups.close()
        self.groups = GroupCoordinator(self.log, self.config, self.clock, NoTopics())
        await self.groups.load(HOME)

    async def pend(
        self,
        producer: Producer,
        offset: int,
        partition: int = 0,
        *,
        metadata: str = "",
        member_id: str = "",
        generation: int = -1,
    ) -> ErrorCode:
        committed = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            member_id=member_id,
            generation_id=generation,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[committed])],
        )
        try:
            response = await self.groups.commit_offsets_in_transaction(request)
        except KafkaError as error:
            return error.code
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def end(self, producer: Producer, *, commit: bool) -> None:
        committed = self.groups.end_transaction(HOME, EndMarker(producer, commit, 0))
        if committed is not None:
            await committed

    async def commit(self, offset: int, partition: int = 0) -> None:
        committed = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[committed])]
        await self.groups.commit_offsets(OffsetCommitRequest(group_id=GROUP, topics=topics), 9)

    async def fetch(self, partition: int = 0, *, stable: bool = False) -> int | ErrorCode:
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[partition])]
        wanted = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        found = (await self.groups.fetch_offsets(wanted, require_stable=stable)).topics[0].partitions[0]
        return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    it = World()
    await it.groups.load(HOME)
    yield it
    it.groups.close()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("commit", [False, True])
async def test_an_offset_waits_for_its_transaction(world: World, *, commit: bool, restarts: bool) -> None:
    await world.commit(1)
    assert await world.pend(FIRST, 5) is ErrorCode.NONE
    if restarts:
        await world.restart()
    assert (await world.fetch(), await world.fetch(stable=True)) == (1, PENDING)
    assert await world.fetch(1, stable=True) == -1
    await world.end(FIRST, commit=commit)
    if restarts:
        await world.restart()
    assert (await world.fetch(), await world.fetch(stable=True)) == ((5, 5) if commit else (1, 1))


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_later_plain_commit_wins(world: World, *, restarts: bool) -> None:
    await world.pend(FIRST, 5)
    await world.commit(9)
    if restarts:
        await world.restart()
    assert (await world.fetch(), await world.fetch(stable=True)) == (9, PENDING)
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == 9


@pytest.mark.parametrize("restarts", [False, True])
async def test_the_later_of_two_transactions_wins_in_whatever_order_they_are_committed(world: World, *, restarts: bool) -> None:
    await world.pend(FIRST, 5)
    await world.pend(SECOND, 9)
    await world.end(SECOND, commit=True)
    if restarts:
        await world.restart()
    assert (await world.fetch(), await world.fetch(stable=True)) == (9, PENDING)
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == 9


async def test_an_aborted_transaction_keeps_no_earlier_one_from_its_commit(world: World) -> None:
    await world.pend(FIRST, 5)
    await world.pend(SECOND, 9)
    await world.end(SECOND, commit=False)
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == 5


async def test_transactions_do_not_touch_each_other(world: World) -> None:
    await world.pend(FIRST, 5)
    await world.pend(SECOND, 6, 1)
    await world.pend(FIRST, 7)
    await world.end(SECOND, commit=True)
    assert [await world.fetch(p, stable=True) for p in (0, 1)] == [PENDING, 6]
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == 7
    await world.end(FIRST, commit=False)  # a duplicate marker
    assert await world.fetch(stable=True) == 7


async def test_a_deleted_group_has_nothing_pending(world: World) -> None:
    await world.pend(FIRST, 5)
    await world.groups.delete_group(GROUP)
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == -1
    assert world.groups.group_count == 0
    await world.restart()
    assert await world.fetch(stable=True) == -1


async def test_a_deleted_offset_is_not_pending_any_more(world: World) -> None:
    await world.pend(FIRST, 5)
    wanted = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    await world.groups.delete_offsets(OffsetDeleteRequest(group_id=GROUP, topics=[wanted]))
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == -1


async def test_a_deleted_topic_has_nothing_pending(world: World) -> None:
    await world.pend(FIRST, 5)
    await world.groups.delete_topics(["t"])
    await world.end(FIRST, commit=True)
    assert await world.fetch(stable=True) == -1


async def test_nothing_that_is_pending_expires(world: World) -> None:
    await world.commit(1)
    await world.pend(FIRST, 5)
    shard = world.groups.shards[HOME]
    passed_ms = 2 * world.config.offsets_retention_minutes * 60_000
    assert list(shard.expire(world.clock.advance(passed_ms))) == []
    await world.end(FIRST, commit=False)
    # tombstones of the offset and its group
    assert [len(each.records) for each in shard.expire(world.clock.advance(passed_ms))] == [2]


async def test_who_may_not_commit(world: World) -> None:
    assert await world.pend(FIRST, 5, generation=3) is ErrorCode.ILLEGAL_GENERATION
    await world.commit(1)
    assert await world.pend(FIRST, 5, member_id="m", generation=3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await world.pend(FIRST, 5, metadata="x" * 5000) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await world.fetch(stable=True) == 1


async def test_an_end_elsewhere(world: World) -> None:
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        world.groups.end_transaction((HOME + 1) % PARTITIONS, EndMarker(FIRST, commit=True, coordinator_epoch=0))
    world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
        world.groups.end_transaction(HOME, EndMarker(FIRST, commit=True, coordinator_epoch=0))


async def test_the_end_is_told_once_it_is_committed(world: World) -> None:
    await world.pend(FIRST, 5)
    world.log.hold = True
    ending = asyncio.ensure_future(world.end(FIRST, commit=True))
    fetching = asyncio.ensure_future(world.fetch(stable=True))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [ending.done(), fetching.done()] == [False, False]
    world.log.commit_held()
    await ending
    assert await fetching == 5


def test_places_are_forgotten_with_their_last_producer() -> None:
    pending = PendingOffsets()
    place, value = (GROUP, "t", 0), OffsetCommitValue(offset=1)
    pending.add(1, place, value)
    pending.add(2, place, value)
    assert pending.end(1, commit=False) == []
    pending.add(1, place, value)
    assert pending.end(1, commit=True) == [(place, value)]
    assert pending.is_pending(place)
    pending.forget([place])
    assert (len(pending), list(pending.places()), pending.end(2, commit=True)) == (0, [], [])
