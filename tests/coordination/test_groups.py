"""The asyncio shell: what is written when, and who is answered when. The clock stands still unless a test moves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from barnabas.coordination.interfaces import LogEntry
from barnabas.coordination.partitioner import partition_of
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordination.support import caller, subscription
from tests.coordination.world import GROUP, PARTITIONS, World, turns
from tests.waiting import WITHIN_S


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.load()
    yield world
    for shard in world.groups.shards.values():
        shard.validate()
    world.groups.close()
    await turns()


async def test_a_group_lives_in_the_partition_of_its_name(world: World) -> None:
    await world.commit(5)
    assert list(world.log.partitions) == [partition_of(GROUP, PARTITIONS)]
    assert await world.fetch() == 5


async def test_what_was_acknowledged_is_there_after_a_restart(world: World) -> None:
    await world.commit(5)
    world.groups.close()
    world.groups = world.another()
    await world.load()
    assert await world.fetch() == 5


async def test_a_partition_that_is_not_here_is_somewhere_else() -> None:
    world = World()
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await world.commit(5)


async def test_nobody_is_answered_before_the_commit(world: World) -> None:
    world.log.hold = True
    commit = asyncio.ensure_future(world.commit(5))
    fetch = asyncio.ensure_future(world.fetch())
    await turns()
    fetch_again = asyncio.ensure_future(world.fetch())
    await turns()
    assert not commit.done()
    assert not fetch_again.done()
    world.log.commit_held()
    assert await commit is ErrorCode.NONE
    assert await fetch_again == 5
    await fetch


async def test_a_reader_does_not_wait_for_others_without_need(world: World) -> None:
    await world.commit(5)
    assert await asyncio.wait_for(world.fetch(), WITHIN_S) == 5


async def test_a_refused_commit_changes_nothing(world: World) -> None:
    await world.commit(5)
    world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.commit(6)
    world.log.refusal = None
    assert await world.fetch() == 5


async def test_a_batch_that_is_too_large_is_not_told_to_clients_of_groups(world: World) -> None:
    await world.commit(5)
    world.log.refusal = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
        await world.commit(6)
    world.log.refusal = None
    assert await world.fetch() == 5


async def test_a_lost_commit_makes_the_shard_read_again(world: World) -> None:
    await world.commit(5)
    await world.lose_a_commit(6)
    await turns()
    assert await world.fetch() == 5


async def test_a_topic_that_is_deleted_while_a_shard_is_read_again_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read, read_all = asyncio.Event(), world.log.read_all

    async def read_later(partition: int) -> AsyncGenerator[list[LogEntry], None]:
        await may_read.wait()
        async with aclosing(read_all(partition)) as parts:
            async for part in parts:
                yield part

    await world.commit(5)
    monkeypatch.setattr(world.log, "read_all", read_later)
    await world.lose_a_commit(6)
    assert world.groups.partition_of(GROUP) not in world.groups.shards
    await world.groups.delete_topics(["t"])
    may_read.set()
    await turns()
    assert world.groups.partition_of(GROUP) in world.groups.shards
    assert await world.fetch() == -1


@pytest.mark.parametrize("hold", [False, True])
async def test_a_shard_that_does_not_take_what_the_log_took_is_read_again(
    world: World, hold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.commit(5)
    world.log.hold = hold
    former = world.groups.shards[world.groups.partition_of(GROUP)]

    def take(*_: object) -> None:
        raise InvariantViolated("two and two are five")

    monkeypatch.setattr(former, "replay", take)
    with pytest.raises(InvariantViolated):
        await world.commit(6)
    await turns()
    assert world.groups.shards[world.groups.partition_of(GROUP)] is not former
    if hold:
        world.log.commit_held()
    assert await world.fetch() == 6


async def test_a_reader_of_what_is_lost_is_sent_away(world: World) -> None:
    world.log.hold = True
    lost = asyncio.ensure_future(world.commit(6))
    await turns()
    read = asyncio.ensure_future(world.fetch())
    await turns()
    world.log.lose_held(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    for waiting in (lost, read):
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await waiting


async def test_a_rebalance_over_the_loop(world: World) -> None:
    first = asyncio.ensure_future(world.join("1"))
    second = asyncio.ensure_future(world.join("2"))
    a, b = await first, await second
    assert a.generation_id == b.generation_id == 1
    leader, follower = (a, b) if a.leader == a.member_id else (b, a)
    waits = asyncio.ensure_future(
        world.groups.sync(SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=follower.member_id))
    )
    await turns()
    assert not waits.done()
    shares = [SyncGroupRequestAssignment(member_id=m.member_id, assignment=m.member_id.encode()) for m in leader.members]
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=leader.member_id, assignments=shares)
    assert (await world.groups.sync(request)).assignment == leader.member_id.encode()
    assert (await waits).assignment == follower.member_id.encode()
    alive = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=leader.member_id)
    assert (await world.groups.heartbeat(alive)).error_code == ErrorCode.NONE
    assert await world.commit(7, follower.member_id, 1) is ErrorCode.NONE
    gone = [MemberIdentity(member_id=m.member_id) for m in leader.members]
    response = await world.groups.leave(LeaveGroupRequest(group_id=GROUP, members=gone))
    assert [m.error_code for m in response.members] == [0, 0]
    assert (await world.groups.describe(GROUP)).group_state == "Empty"


async def test_the_assignment_is_given_out_only_once_it_is_committed(world: World) -> None:
    joined = await world.join("1")
    world.log.hold = True
    shares = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"A")]
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=joined.member_id, assignments=shares)
    waits = asyncio.ensure_future(world.groups.sync(request))
    await turns()
    assert not waits.done()
    world.log.commit_held()
    assert (await waits).assignment == b"A"


async def test_a_static_member_that_cannot_be_written_is_told(world: World) -> None:
    joined = await world.join("1", "i")
    shares = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"A")]
    request = SyncGroupRequest(
        group_id=GROUP, generation_id=1, member_id=joined.member_id, group_instance_id="i", assignments=shares
    )
    await world.groups.sync(request)
    world.log.refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert (await world.join("2", "i")).error_code == ErrorCode.NOT_COORDINATOR
    world.log.refusal = None
    alive = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=joined.member_id, group_instance_id="i")
    assert (await world.groups.heartbeat(alive)).error_code == ErrorCode.NONE


async def test_a_closed_connection_does_no_harm(world: World) -> None:
    world.config.group_initial_rebalance_delay_ms = 3_600_000
    waits = asyncio.ensure_future(world.join("1"))
    await turns()
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    world.groups.unload(partition_of(GROUP, PARTITIONS))


async def test_unloading_and_closing_send_those_who_wait_away(world: World) -> None:
    world.config.group_initial_rebalance_delay_ms = 3_600_000
    first = asyncio.ensure_future(world.join("1"))
    await turns()
    world.groups.unload(partition_of(GROUP, PARTITIONS))
    assert (await first).error_code == ErrorCode.NOT_COORDINATOR
    await world.load()
    second = asyncio.ensure_future(world.join("2"))
    await turns()
    world.groups.close()
    assert (await second).error_code == ErrorCode.NOT_COORDINATOR
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.commit(5)


async def test_a_broken_invariant_stops_the_shard_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.commit(5)
    shard = world.groups.shards[partition_of(GROUP, PARTITIONS)]

    def breaks(*_: object) -> None:
        raise InvariantViolated("on purpose")

    monkeypatch.setattr(shard, "leave", breaks)
    with pytest.raises(InvariantViolated):
        await world.groups.leave(LeaveGroupRequest(group_id=GROUP))
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await world.fetch()
    assert len(world.groups.shards) == PARTITIONS - 1


async def test_offsets_come_while_others_are_looked_at(world: World) -> None:
    await world.commit(5)
    found = world.groups.committed_offsets()
    assert next(found) == (GROUP, "t", 0, 5)
    shard = partition_of(GROUP, PARTITIONS)
    neighbour = next(name for name in map(str, range(1_000)) if partition_of(name, PARTITIONS) == shard)
    assert await world.commit(6, group_id=neighbour) == 0
    assert list(found) == []
    assert (neighbour, "t", 0, 6) in list(world.groups.committed_offsets())


async def test_offsets_go_with_their_topics_and_are_counted(world: World) -> None:
    await world.commit(5)
    assert list(world.groups.committed_offsets()) == [(GROUP, "t", 0, 5)]
    assert world.groups.group_count == 1
    await world.groups.delete_topics(["t"])
    assert await world.fetch() == -1


async def test_nobody_waits_for_ever_for_replicas(world: World) -> None:
    world.config.offsets_commit_timeout_ms = 1
    world.groups.close()
    world.groups = world.another()
    await world.load()
    world.log.hold = True
    for _ in range(2):
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await world.commit(5)
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.fetch()
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.groups.list_groups()
    world.log.commit_held()
    await turns()
    assert await world.fetch() == 5


async def test_what_one_shard_cannot_forget_now_others_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [next(f"g{n}" for n in range(1_000) if partition_of(f"g{n}", PARTITIONS) == index) for index in range(PARTITIONS)]
    for name in names:
        await world.commit(5, group_id=name)
    append, refused = world.log.append, partition_of(names[0], PARTITIONS)

    def refuse_one(partition: int, *rest: Any, **more: Any) -> asyncio.Future[None] | None:
        if partition == refused:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return append(partition, *rest, **more)

    monkeypatch.setattr(world.log, "append", refuse_one)
    await world.groups.delete_topics(["t"])
    assert [await world.fetch(group_id=name) for name in names] == [5, -1, -1, -1]


async def test_groups_are_listed_and_deleted(world: World) -> None:
    await world.commit(5)
    assert [(g.group_id, g.group_state, g.group_type) for g in await world.groups.list_groups()] == [(GROUP, "Empty", "classic")]
    await world.groups.delete_group(GROUP)
    assert await world.groups.list_groups() == []


async def test_what_a_classic_member_of_a_group_of_consumers_is_told_is_committed(world: World) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    await world.groups.consumer_heartbeat(request, caller(1))
    old = await world.join("old", metadata=subscription(["t"]))
    world.log.hold = True
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=old.member_id)])
    leaving = asyncio.ensure_future(world.groups.leave(leave))
    await turns()
    heartbeat = HeartbeatRequest(group_id=GROUP, member_id=old.member_id, generation_id=old.generation_id)
    beat = asyncio.ensure_future(world.groups.heartbeat(heartbeat))
    sync_request = SyncGroupRequest(group_id=GROUP, member_id=old.member_id, generation_id=old.generation_id)
    sync = asyncio.ensure_future(world.groups.sync(sync_request))
    await turns()
    assert not leaving.done()
    assert not beat.done()
    assert not sync.done()
    world.log.commit_held()
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        await beat
    assert (await sync).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    await leaving
