"""Requests that are served while partitions are read, prepared and taken away."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.coordination.interfaces import LogEntry
from barnabas.coordination.partitioner import partition_of
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from tests.coordination.world import GROUP, PARTITIONS, World, turns


async def test_nothing_is_served_while_loading() -> None:
    world = World()
    await world.load()
    partition = partition_of(GROUP, PARTITIONS)
    for offset in range(3_000):
        await world.commit(offset)
    world.groups.close()
    world.groups = world.another()
    loading = asyncio.ensure_future(world.groups.load(partition))
    await turns(1)
    with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        await world.fetch()
    with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        await world.groups.list_groups()
    assert (await world.groups.heartbeat(HeartbeatRequest(group_id=GROUP, member_id="m"))).error_code == ErrorCode.NONE
    await loading
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        await world.groups.heartbeat(HeartbeatRequest(group_id=GROUP, member_id="m"))
    assert await world.fetch() == 2_999
    world.groups.close()


async def test_taken_away_while_loading() -> None:
    world = World()
    await world.load()
    for offset in range(3_000):
        await world.commit(offset)
    world.groups.close()
    world.groups = world.another()
    loading = asyncio.ensure_future(world.groups.load(partition_of(GROUP, PARTITIONS)))
    await turns(1)
    world.groups.unload(partition_of(GROUP, PARTITIONS))
    await loading
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await world.fetch()
    world.groups.close()


async def test_a_partition_that_cannot_be_read_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def fails(_: int) -> list[tuple[bytes, bytes | None]]:
        raise OSError("no such disk")

    with monkeypatch.context() as patch:
        patch.setattr(world.log, "read_all", fails)
        with pytest.raises(OSError, match="no such disk"):
            await world.groups.load(partition_of(GROUP, PARTITIONS))
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await world.fetch()
    await world.load()
    assert await world.commit(5) is ErrorCode.NONE
    world.groups.close()


async def test_a_record_that_cannot_be_read_does_not_hide_the_others() -> None:
    world = World()
    await world.load()
    await world.commit(5)
    partition = partition_of(GROUP, PARTITIONS)
    world.log.partitions[partition][:0] = [
        LogEntry((b"\x00\x01\x00", b"")),
        LogEntry((b"\x00\x09\x00", b"")),
        LogEntry((b"\x00\x01\x00\x00\x00\x00\x00\x00", b"")),
    ]
    world.groups.close()
    world.groups = world.another()
    await world.load()
    assert await world.fetch() == 5
    world.groups.close()


async def test_the_topic_is_prepared_once_by_whoever_comes_first() -> None:
    world = World()
    calls = []

    async def prepare() -> None:
        calls.append(1)
        await asyncio.sleep(0)
        await world.load()

    world.groups = world.another(prepare)
    await asyncio.gather(world.commit(1), world.commit(2), world.groups.prepare())
    assert len(calls) == 1
    assert await world.fetch() == 2
    world.groups.close()


async def test_a_preparation_that_fails_is_tried_again() -> None:
    world = World()
    calls = []

    async def prepare() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await world.load()

    world.groups = world.another(prepare)
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.commit(1)
    assert await world.commit(1) is ErrorCode.NONE
    world.groups.close()
