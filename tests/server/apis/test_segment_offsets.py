"""ListOffsets 0: times are those of segments' files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.server.apis.segment_offsets import EARLIEST, LATEST
from tests.server.in_process import TOPIC, Client, running

CHANGED_S = (1_000, 2_000, 3_000)  # the modification times of the three segment files
FUTURE_MS = 1 << 50


async def _offsets(client: Client, timestamp: int, count: int = 10) -> list[int]:
    place = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[place])])
    answer: ListOffsetsResponse = await client.ask((2, 0), request, ListOffsetsResponse)
    (found,) = answer.topics[0].partitions
    assert found.error_code == 0
    return list(found.old_style_offsets)


async def test_a_time_stands_for_the_segments_that_were_changed_no_later(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create(segment_bytes=str(1 << 20))
        for _ in CHANGED_S:
            assert await client.produce(b"v" * 700_000) == 0
        for offset, seconds in enumerate(CHANGED_S):
            os.utime(tmp_path / f"{TOPIC}-0" / f"{offset:020}.log", (seconds, seconds))
        for timestamp, wanted in (
            (LATEST, [3, 2, 1, 0]),
            (EARLIEST, [0]),
            (FUTURE_MS, [3, 2, 1, 0]),
            (3_000_000, [2, 1, 0]),
            (2_999_999, [1, 0]),
            (1_000_000, [0]),
            (999_999, []),
        ):
            assert await _offsets(client, timestamp) == wanted
            assert await _offsets(client, timestamp, 2) == wanted[:2]
        assert await _offsets(client, LATEST, 0) == []


@pytest.mark.parametrize("oldest", ["kafka-3", "kafka-4"])
async def test_old_versions_are_refused_where_the_setting_says_so(tmp_path: Path, oldest: str) -> None:
    async with running([tmp_path], api_versions_oldest=oldest) as client:
        await client.create()
        if oldest == "kafka-3":
            assert await _offsets(client, LATEST) == [0]
        else:
            with pytest.raises(EOFError):
                await _offsets(client, LATEST)
