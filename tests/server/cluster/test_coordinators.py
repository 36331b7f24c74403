"""Coordinators of a cluster's groups: where they are, and the loads of what they keep."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from msgspec.structs import replace

from barnabas.cluster.planning.instructions import ChangeReplica
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.server.cluster.in_process import ELSEWHERE, Cluster, create, running
from tests.waiting import asked_until


async def test_groups_are_where_their_partition_is_led_and_move_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        client = cluster.clients[cluster.others[0]]
        assert await create(client, "t") == ErrorCode.NONE
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        found = [(await each.ask((10, 4), request, FindCoordinatorResponse)).coordinators[0] for each in cluster.clients.values()]
        (first,) = {answer.node_id for answer in found}
        assert [answer.error_code for answer in found] == [ErrorCode.NONE] * 3
        keep = partial(cluster.clients[first].commit_offset, "g", 42)
        assert await asked_until(keep, lambda code: code not in ELSEWHERE) == ErrorCode.NONE
        other = next(broker_id for broker_id in cluster.brokers if broker_id != first)
        assert await cluster.clients[other].commit_offset("g", 7) == ErrorCode.NOT_COORDINATOR
        await cluster.stop(first)
        await cluster.until(lambda: len(cluster.controller.metadata.brokers) == 2)
        client = next(iter(cluster.clients.values()))
        second = (await client.ask((10, 4), request, FindCoordinatorResponse)).coordinators[0].node_id
        assert second != first
        assert await kept_by(cluster, second) == 42
        await cluster.start(first)
        await cluster.until(
            lambda: all(len(s.isr) == 3 for s in cluster.controller.metadata.topics["__consumer_offsets"].partitions)
        )
        assert await kept_by(cluster, second) == 42


async def test_what_the_disk_did_not_let_be_read_is_read_at_the_next_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, count=1, offsets_topic_replication_factor="1", offsets_topic_num_partitions="1") as cluster:
        broker = cluster.brokers[1]
        coordinators, loads = broker.coordinators, list[asyncio.Future[None]]()
        await broker.groups.prepare()
        await cluster.until(lambda: broker.groups.shards)
        topic = broker.metadata.topics["__consumer_offsets"]
        term = replace(topic.partitions[0], leader_epoch=topic.partitions[0].leader_epoch + 1)
        change = ChangeReplica("__consumer_offsets", 0, topic.topic_id, term)
        monkeypatch.setattr(coordinators, "_later", lambda work: loads.append(asyncio.ensure_future(work)))
        with monkeypatch.context() as patch:
            patch.setattr(coordinators, "_all_committed", AsyncMock(side_effect=OSError(errno.EIO, "the disk")))
            coordinators.resign([change])
            coordinators.follow([change])
            await asyncio.gather(*loads)
        assert not broker.groups.shards
        assert broker.metrics.read_errors == 1
        coordinators.follow([change])  # as after an in-sync set change
        await asyncio.gather(*loads)
        assert broker.groups.shards


async def test_a_term_that_ends_while_it_is_loaded_does_not_end_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, count=1, offsets_topic_replication_factor="1", offsets_topic_num_partitions="1") as cluster:
        broker = cluster.brokers[1]
        coordinators, committed = broker.coordinators, asyncio.Event()
        loads: list[asyncio.Future[None]] = []
        told: list[str] = []
        await broker.groups.prepare()
        await cluster.until(lambda: broker.groups.shards)
        state = broker.metadata.topics["__consumer_offsets"].partitions[0]

        async def all_committed(*_: object) -> None:
            told.append("is to be loaded")
            if len(told) == 1:
                await committed.wait()
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

        def lead(epoch: int) -> None:
            term = replace(state, leader_epoch=epoch)
            change = ChangeReplica("__consumer_offsets", 0, broker.metadata.topics["__consumer_offsets"].topic_id, term)
            coordinators.resign([change])
            coordinators.follow([change])

        monkeypatch.setattr(coordinators, "_all_committed", all_committed)
        monkeypatch.setattr(coordinators, "_later", lambda work: loads.append(asyncio.ensure_future(work)))
        lead(state.leader_epoch + 1)
        await cluster.until(lambda: len(told) == 1)
        lead(state.leader_epoch + 2)
        await cluster.until(lambda: broker.groups.shards)
        shard = broker.groups.shards[0]
        committed.set()
        await asyncio.gather(*loads)
        lead(state.leader_epoch + 2)  # as after an in-sync set change
        assert broker.groups.shards == {0: shard}


async def kept_by(cluster: Cluster, broker_id: int) -> int:
    """The offset that the group has there, once it is loaded."""
    ask = partial(cluster.clients[broker_id].committed_offset, "g")
    code, offset = await asked_until(ask, lambda answer: answer[0] != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert code == ErrorCode.NONE
    return offset
