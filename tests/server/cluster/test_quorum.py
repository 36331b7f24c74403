"""DescribeQuorum: who is controller, and how far each broker knows what the store has."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from tests.server.cluster.in_process import Cluster, create, running
from tests.waiting import asked_until

QUESTION = DescribeQuorumRequest(
    topics=[RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)])]
)


async def described(cluster: Cluster, broker_id: int) -> ResponsePartitionData:
    answer = await cluster.clients[broker_id].ask((55, 2), QUESTION, DescribeQuorumResponse)
    assert answer.error_code == ErrorCode.NONE
    assert [node.node_id for node in answer.nodes] == sorted(cluster.brokers)
    (partition,) = answer.topics[0].partitions
    assert isinstance(partition, ResponsePartitionData)
    return partition


async def test_every_broker_tells_the_same_of_all(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        before = 0
        for name in ("a", "b"):
            await create(cluster.clients[1], name)
            told = await asked_until(
                lambda: asyncio.gather(*(described(cluster, broker_id) for broker_id in cluster.brokers)),
                lambda found: len({voter.log_end_offset for each in found for voter in each.current_voters}) == 1,
            )
            assert {each.leader_id for each in told} == {cluster.controller.config.broker_id}
            assert {each.leader_epoch for each in told} == {1}
            for each in told:
                assert [voter.replica_id for voter in each.current_voters] == [1, 2, 3]
                assert {voter.log_end_offset for voter in each.current_voters} == {each.high_watermark}
                assert all(voter.last_caught_up_timestamp > 0 for voter in each.current_voters)
                assert not each.observers
            assert before < min(each.high_watermark for each in told)
            before = max(each.high_watermark for each in told)
        first = cluster.controller.config.broker_id
        await cluster.stop(first)
        left = next(iter(cluster.brokers))
        await cluster.until(lambda: cluster.brokers[left].metadata.controller_id in cluster.brokers)
        after = await described(cluster, left)
        assert after.leader_id != first
        assert after.leader_epoch == 2
        assert [voter.replica_id for voter in after.current_voters] == sorted(cluster.brokers)


async def test_a_broker_that_lags_is_behind_and_one_without_an_answer_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as cluster:
        late, silent = cluster.others
        cluster.stores[late].hold_watches()
        await create(cluster.clients[silent], "t", replication_factor=1)

        async def never() -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(cluster.brokers[silent].controller, "position", never)
        told = await described(cluster, late)
        ends = {voter.replica_id: voter.log_end_offset for voter in told.current_voters}
        assert ends[told.leader_id] == told.high_watermark > ends[late] > 0
        assert ends[silent] == -1
        assert {v.last_caught_up_timestamp for v in told.current_voters if v.replica_id == silent} == {-1}
        cluster.stores[late].release_watches()
        told = await described(cluster, late)
        assert {v.log_end_offset for v in told.current_voters if v.replica_id != silent} == {told.high_watermark}
