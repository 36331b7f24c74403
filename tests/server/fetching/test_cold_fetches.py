"""Fetches of what is not in memory, beside the loop that serves others."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.records.batch import split_batches
from barnabas.testing.failing_files import FailingFiles
from tests.server.in_process import TOPIC, Client, running
from tests.storage.support import with_emptied

FETCH = (1, 11)
EMPTIED, BATCHES = 6, 10
SEGMENT_BYTES = "700"  # three batches


class ColdFiles(FailingFiles):
    """Of a segment nothing is in memory before a thread has read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.read_by_threads: set[int] = set()  # inodes

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        if os.fstat(fileno).st_ino not in self.read_by_threads:
            raise BlockingIOError
        return super().preadv_nowait(fileno, buffers, position)

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            self.read_by_threads.add(os.fstat(fileno).st_ino)
        return super().pread(fileno, size, position)


async def fetched(client: Client, max_bytes: int) -> list[tuple[int, int]]:
    """Base offset and number of records of each batch that a consumer gets from the start on."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=TOPIC, partitions=[wanted])]
    request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=2**20, topics=topics)
    answer = await client.ask(FETCH, request, FetchResponse)
    (found,) = answer.responses[0].partitions
    assert found.error_code == 0
    return [(header.base_offset, header.records_count) for _, header in split_batches(bytes(found.records or b""))]


@pytest.mark.parametrize("max_bytes", [100, 183, 2**20])
def test_who_reads_what_compaction_emptied_gets_the_records_behind_it(tmp_path: Path, max_bytes: int) -> None:
    """A region of nothing but emptied batches would make a consumer take its buffer for too small."""

    async def test() -> None:
        async with running([tmp_path]) as client:
            await client.create(internal_segment_bytes=SEGMENT_BYTES)
            for _ in range(BATCHES):
                await client.produce(b"x" * 130)
        for path in sorted((tmp_path / f"{TOPIC}-0").glob("*.log"))[:2]:
            path.write_bytes(with_emptied(path.read_bytes(), EMPTIED))
            path.with_suffix(".index").unlink()
            path.with_suffix(".timeindex").unlink()
        files = ColdFiles()
        async with running([tmp_path], files) as client:
            files.read_by_threads.clear()  # in which the broker opens its logs
            assert (await fetched(client, max_bytes))[0] == (EMPTIED, 1)

    asyncio.run(test())
