"""Compaction in a cluster: what one replica removes, the others are not to miss."""

from __future__ import annotations

from pathlib import Path

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.records.batch import iterate_records, split_batches
from barnabas.server.broker import Broker
from tests.server.cluster.in_process import Cluster, running
from tests.server.wire import NOW_MS

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}


async def create(cluster: Cluster) -> None:
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in COMPACTED.items()]
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=2, configs=configs)
    answer = await cluster.clients[1].ask((19, 7), CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE


def records(broker: Broker) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of what is committed."""
    found = broker.partitions.require("t", 0)
    pairs, offset = [], 0
    while (region := found.read(offset, 2**20, minimum_one=True)) is not None:
        data = memoryview(broker.environment.files.pread(region.fileno, region.size, region.position))
        for at, header in split_batches(data):
            pairs += [(r.key and bytes(r.key), r.value and bytes(r.value)) for r in iterate_records(data, at)]
            offset = header.next_offset
    return pairs


async def test_a_tombstone_stays_until_every_replica_has_seen_it(tmp_path: Path) -> None:
    async with running(tmp_path, count=2, log_cleaner_backoff_ms="20") as cluster:
        await create(cluster)
        (state,) = cluster.controller.metadata.topics["t"].partitions
        leader, follower = state.leader, next(n for n in state.replicas if n != state.leader)
        client, broker = cluster.clients[leader], cluster.brokers[leader]
        written = 0

        async def write(key: bytes, value: bytes | None) -> None:
            nonlocal written
            written += 1
            assert await client.produce(value, key=key, time_ms=NOW_MS + 10 * written) == ErrorCode.NONE

        async def clean() -> None:
            """Let one more cleaning of the leader's log come to its end."""
            runs = broker.cleaner.statistics.runs
            await write(b"other", b"%d" % written)
            await write(b"other", b"%d" % written)
            await cluster.until(lambda: broker.cleaner.statistics.runs > runs)

        await write(b"deleted", b"1")
        await write(b"other", b"1")
        await cluster.stop(follower)
        await write(b"deleted", None)
        for _ in range(4):
            await clean()
        assert (b"deleted", None) in records(broker), "who is away has not seen it"
        assert (b"deleted", b"1") not in records(broker)
        back = await cluster.start(follower)
        await cluster.until(lambda: len(broker.metadata.topics["t"].partitions[0].isr) == 2)
        for _ in range(2):
            await clean()
        await cluster.until(lambda: all(key == b"other" for each in (broker, back) for key, _ in records(each)))
