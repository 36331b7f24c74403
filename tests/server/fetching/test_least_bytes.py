"""`fetch.min.bytes`: the cases in which a fetch waits, and those in which it does not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.records.batch import iterate_records, split_batches
from tests.server.in_process import TOPIC, Client, running

LONG_MS = 600_000  # no test waits this long: the answer arrives, or the test hangs
BATCH = 100


async def fetch(client: Client, offset: int, min_bytes: int, *, wait_ms: int = LONG_MS, **fields: Any) -> list[int]:
    """Offsets of the records that came."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=2**20,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
        **fields,
    )
    answer = await client.ask((1, 11), request, FetchResponse)
    data = bytes(answer.responses[0].partitions[0].records or b"")
    return [r.offset for at, _ in split_batches(data) for r in iterate_records(data, at)]


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_the_rest_of_a_segment_is_given_at_once_where_more_lies_behind(tmp_path: Path, isolation_level: int) -> None:
    async with running([tmp_path]) as client:
        await client.create(internal_segment_bytes="600")
        for number in range(10):
            assert await client.produce(b"%d" % number * BATCH) == 0
        bases = [segment.base_offset for segment in client.broker.partitions.require(TOPIC, 0).log.segments]
        assert len(bases) > 2
        for base, following in pairwise(bases):
            read = await fetch(client, base, 100_000, isolation_level=isolation_level)
            assert read == list(range(base, following))
        assert await fetch(client, bases[-1], 100_000, wait_ms=1, isolation_level=isolation_level) == list(range(bases[-1], 10))
