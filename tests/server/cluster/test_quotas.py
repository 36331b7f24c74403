"""Quotas in a cluster: set at any broker, held at each, and those of changes at the controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

from confluent_kafka import Consumer

from barnabas.cluster.metadata.declared import Kind
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.server.quotas.group_members import GroupMembers
from tests.server.cluster.in_process import Cluster, running
from tests.server.quotas import set_quota_by
from tests.waiting import WITHIN_S

CLIENT_ID = "limits"  # the client id of the test connections


async def set_at(cluster: Cluster, broker_id: int, names: dict[str, str | None], **quotas: float | None) -> None:
    """Set a quota at one broker, and wait until all know it."""
    before = {id_: len(broker.metadata.declarations(Kind.QUOTA)) for id_, broker in cluster.brokers.items()}
    client = cluster.clients[broker_id]
    await client.in_thread(lambda: set_quota_by(client.line, names, **quotas))
    await cluster.until(lambda: all(len(b.metadata.declarations(Kind.QUOTA)) > before[id_] for id_, b in cluster.brokers.items()))


async def test_what_is_set_at_one_broker_holds_at_all(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        asked = cluster.others[0]
        # the client may save up 5.5 mutations
        await set_at(cluster, asked, {"client_id": CLIENT_ID}, controller_mutation_rate=0.5)
        await cluster.until(lambda: all(broker.client_quotas is not None for broker in cluster.brokers.values()))
        topics = [CreatableTopic(name=f"t{n}", num_partitions=4, replication_factor=1) for n in range(3)]
        request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        answer = await cluster.clients[asked].ask((19, 7), request, CreateTopicsResponse)
        assert [topic.error_code for topic in answer.topics] == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert answer.throttle_time_ms > 2_000
        (line,) = [c for c in cluster.brokers[asked].connections if c.mute is not None]
        assert line.mute is not None
        assert line.mute.left_ms > 2_000, "who was asked lets its client wait for what the controller found"
        budget = cluster.brokers[asked].quotas.budget("User:ANONYMOUS", CLIENT_ID)
        assert budget is not None
        assert budget.mutations is not None
        assert budget.mutations.wait_ms(cluster.brokers[asked].quotas.now_ms()) > 2_000, (
            "so it does where the client connects anew"
        )


async def test_members_of_a_group_are_known_on_all_brokers(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        broker_id = next(iter(cluster.brokers))
        assert await cluster.clients[broker_id].create() == 0
        await set_at(cluster, broker_id, {"group": "readers"}, consumer_byte_rate=1_000.0)
        servers = ",".join(f"127.0.0.1:{broker.endpoints[0].port}" for broker in cluster.brokers.values())
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "client.id": "reader"})
        loop = asyncio.get_running_loop()
        try:
            consumer.subscribe(["t"])
            members: list[GroupMembers] = [broker.quotas.members for broker in cluster.brokers.values()]
            async with asyncio.timeout(WITHIN_S):
                while not all(each.groups_of("reader", "127.0.0.1") == ("readers",) for each in members):
                    await loop.run_in_executor(None, consumer.poll, 0.05)
                    await asyncio.gather(*(each.refresh() for each in members))
            assert members[0].groups_of("stranger", "127.0.0.1") == ()
        finally:
            await loop.run_in_executor(None, consumer.close)
