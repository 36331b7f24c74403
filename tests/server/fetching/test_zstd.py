"""zstd is given to every version that has batches, as by Kafka 4.3; Kafka 3.9 refuses versions below 10 a topic of zstd."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.record import build_batch
from tests.server.in_process import TOPIC, running

VERSIONS_WITH_NAMES = range(4, 13)  # from version 13 on, requests have topic ids


@pytest.mark.parametrize("setting", ["zstd", "producer"])
async def test_every_version_with_batches_gets_zstd(tmp_path: Path, setting: str) -> None:
    batch = build_batch([(b"k", b"v" * 50)], compression=Compression.ZSTD)
    partition = FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1, partition_max_bytes=1 << 20
    )
    topics = [FetchTopic(topic=TOPIC, partitions=[partition])]
    async with running([tmp_path]) as client:
        await client.create(compression_type=setting)
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
        await client.ask((0, 7), ProduceRequest(acks=1, timeout_ms=5000, topic_data=[data]), ProduceResponse)
        for version in VERSIONS_WITH_NAMES:
            request = FetchRequest(
                replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=topics
            )
            answer: FetchResponse = await client.ask((1, version), request, FetchResponse)
            (given,) = answer.responses[0].partitions
            assert (given.error_code, given.high_watermark) == (0, 1)
            assert given.records is not None
            assert read_header(given.records).compression == Compression.ZSTD
