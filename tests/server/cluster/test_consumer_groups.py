"""Groups of the consumer protocol in a cluster: another coordinator goes on where the last one stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.server.cluster.in_process import ELSEWHERE, Cluster, create, running
from tests.waiting import asked_until


async def heartbeat(
    cluster: Cluster, member_id: str, epoch: int, owned: Any = None
) -> tuple[int, ConsumerGroupHeartbeatResponse]:
    """The answer of whoever coordinates the group, and who that is."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[] if epoch == 0 else owned,
    )

    async def ask() -> tuple[int, Any]:
        client = next(iter(cluster.clients.values()))
        found = await client.ask((10, 4), FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), FindCoordinatorResponse)
        coordinator = found.coordinators[0].node_id
        if coordinator not in cluster.clients:
            return coordinator, None
        return coordinator, await cluster.clients[coordinator].ask((68, 1), request, ConsumerGroupHeartbeatResponse)

    return await asked_until(ask, lambda told: told[1] is not None and told[1].error_code not in ELSEWHERE)


async def test_members_keep_epochs_and_partitions_when_the_coordinator_stops(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await create(next(iter(cluster.clients.values())), "t", partitions=4) == ErrorCode.NONE
        first, joined = await heartbeat(cluster, "m", 0)
        assert (joined.error_code, joined.member_epoch) == (ErrorCode.NONE, 2)
        assert joined.assignment is not None
        (given,) = joined.assignment.topic_partitions
        assert given.partitions == [0, 1, 2, 3]
        _, waits = await heartbeat(cluster, "n", 0)
        await cluster.stop(first)
        await cluster.until(lambda: len(cluster.controller.metadata.brokers) == 2)
        owned = [RequestTopicPartitions(topic_id=given.topic_id, partitions=given.partitions)]
        second, answer = await heartbeat(cluster, "m", 2, owned)
        assert second != first
        assert answer.error_code == ErrorCode.NONE
        described = await cluster.clients[second].ask(
            (69, 1), ConsumerGroupDescribeRequest(group_ids=["g"]), ConsumerGroupDescribeResponse
        )
        assert {m.member_id for m in described.groups[0].members} == {"m", "n"}
        assert described.groups[0].group_epoch >= waits.member_epoch
