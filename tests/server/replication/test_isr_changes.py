"""Changes of in-sync sets on their way to the controller: no request asks for more than one commit can take."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.cluster.metadata import store_entries
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.server.replication import isr_changes
from tests.server.replication.cluster import TOPIC, Controller, cluster_of
from tests.waiting import until

PARTITIONS = 7


async def test_many_changes_go_in_several_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_entries, "CHUNK", 2)
    monkeypatch.setattr(isr_changes, "MAX_CHUNKS_PER_REQUEST", 2)
    asked: list[list[int]] = []

    class Counting(Controller):
        async def send(self, controller_id: int, request: AlterPartitionRequest) -> AlterPartitionResponse:
            asked.append([data.partition_index for topic in request.topics for data in topic.partitions])
            return await super().send(controller_id, request)

    async with cluster_of(tmp_path, 2) as cluster:
        await cluster.create(*[(1,)] * PARTITIONS)
        counting = Counting(cluster)
        counting.reachable.clear()  # all changes wait first
        cluster.brokers[1].isr._peers = counting  # type: ignore[assignment]  # has the methods that the code calls
        for partition in range(PARTITIONS):
            state = cluster.state(partition)
            await cluster.change(TOPIC, partition, replace(state, replicas=(1, 2), partition_epoch=state.partition_epoch + 1))
        await until(lambda: asked)
        followers = [cluster.leader(1, partition).followers for partition in range(PARTITIONS)]
        await until(lambda: all(each is not None and each.change is not None for each in followers))
        counting.reachable.set()
        await until(lambda: all(cluster.state(partition).isr == (1, 2) for partition in range(PARTITIONS)))
        assert sorted(number for request in asked for number in request) == list(range(PARTITIONS))
        assert all(len({number // 2 for number in request}) <= 2 for request in asked)
