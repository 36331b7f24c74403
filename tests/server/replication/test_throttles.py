"""Replicas that catch up keep to their rate. Replicas that need no throttle continue beside them (KIP-73)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.quota.rate import UNLIMITED
from barnabas.server.broker import Broker
from tests.server.replication.cluster import TOPIC, Cluster, cluster_of
from tests.storage.support import batch
from tests.waiting import until

RECORDS = 50
NOTHING, EVERYTHING = "0", str(UNLIMITED)
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def set_rates(cluster: Cluster, rate: str) -> None:
    """Dynamic settings of all brokers."""
    for broker in cluster.brokers.values():
        broker.update_config(broker.config.with_dynamic(dict.fromkeys(RATES, rate)))


def produce(broker: Broker, partition: int, count: int = RECORDS) -> None:
    leader = broker.partitions.require_leader(TOPIC, partition)
    for _ in range(count):
        leader.append_as_leader(memoryview(batch(b"x" * 1_000)), broker.clock.now_ms())


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_out_of_sync_waits_for_its_rate_and_others_do_not(tmp_path: Path, side: str) -> None:
    names = {"leader": "0:1", "follower": "0:2"}[side]
    async with cluster_of(tmp_path, 2, **{f"{side}_replication_throttled_rate": NOTHING}) as cluster:
        await cluster.create((1,), (1,), **{f"{side}_replication_throttled_replicas": names})
        for partition in (0, 1):
            produce(cluster.brokers[1], partition)
            state = cluster.state(partition)
            await cluster.change(TOPIC, partition, replace(state, replicas=(1, 2), partition_epoch=state.partition_epoch + 1))
        await until(lambda: cluster.ends(1) == {1: RECORDS, 2: RECORDS} and 2 in cluster.state(1).isr)
        assert cluster.ends(0) == {1: RECORDS, 2: 0}
        assert 2 not in cluster.state(0).isr
        set_rates(cluster, EVERYTHING)
        await until(lambda: cluster.ends(0) == {1: RECORDS, 2: RECORDS} and 2 in cluster.state(0).isr)


async def test_a_replica_in_sync_is_not_held_back_and_counts(tmp_path: Path) -> None:
    async with cluster_of(tmp_path, 2) as cluster:
        names = {"leader_replication_throttled_replicas": "*", "follower_replication_throttled_replicas": "*"}
        await cluster.create((1, 2), **names)
        await until(lambda: cluster.follower(2).follower_state.has_caught_up)
        set_rates(cluster, NOTHING)
        produce(cluster.brokers[1], 0)
        await until(lambda: cluster.marks() == {1: RECORDS, 2: RECORDS})
        size = cluster.replica(1).log.size_bytes
        assert cluster.brokers[1].throttles.sending.passed == size
        assert cluster.brokers[2].throttles.fetching.passed == size
