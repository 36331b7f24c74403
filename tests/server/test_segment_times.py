"""The loop waits for no disk to learn which times the segments hold that nobody has looked at since the start."""

from __future__ import annotations

from pathlib import Path
from threading import get_ident

from msgspec.structs import replace

from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.server import maintenance
from barnabas.server.apis.list_offsets import MAX_TIMESTAMP
from barnabas.testing.failing_files import FailingFiles
from tests.server.in_process import TOPIC, Client, running
from tests.server.wire import NOW_MS

YEAR_MS = 365 * 24 * 3_600_000
SEGMENTS = 12


class WatchedFiles(FailingFiles):
    """Notes which threads open files of indexes."""

    def __init__(self) -> None:
        super().__init__()
        self.opened_by: set[int] = set()

    def open(self, path: Path, *, create: bool = False) -> int:
        if path.suffix in {".index", ".timeindex"}:
            self.opened_by.add(get_ident())
        return super().open(path, create=create)


async def write(folder: Path) -> None:
    async with running([folder]) as client:
        await client.create(retention_ms="-1")
        log = client.broker.partitions.require(TOPIC, 0).log
        for number in range(SEGMENTS):
            assert await client.produce(b"x", time_ms=NOW_MS + number) == 0
            assert log.appender.maybe_roll(log.segments.active.created_ms + YEAR_MS)


async def offset_at(client: Client, timestamp: int) -> int:
    topic = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
    answer = await client.ask((2, 7), ListOffsetsRequest(replica_id=-1, topics=[topic]), ListOffsetsResponse)
    return int(answer.topics[0].partitions[0].offset)


async def test_times_are_looked_up_by_threads(tmp_path: Path) -> None:
    await write(tmp_path)
    for timestamp, offset in ((NOW_MS + 5, 5), (NOW_MS + SEGMENTS, -1), (MAX_TIMESTAMP, SEGMENTS - 1)):
        files = WatchedFiles()
        async with running([tmp_path], files) as client:
            files.opened_by.clear()
            log = client.broker.partitions.require(TOPIC, 0).log
            assert await offset_at(client, timestamp) == offset
            assert log.segments[0].knows("max_timestamp")
            if timestamp != MAX_TIMESTAMP:  # the broker looks up the record with the largest timestamp in the loop
                assert files.opened_by
                assert get_ident() not in files.opened_by


async def test_retention_has_threads_look(tmp_path: Path) -> None:
    await write(tmp_path)
    files = WatchedFiles()
    async with running([tmp_path], files) as client:
        log = client.broker.partitions.require(TOPIC, 0).log
        log.update_config(replace(log.config, retention_ms=1000 * YEAR_MS))
        files.opened_by.clear()
        await maintenance.apply_retention(client.broker.services)
        assert files.opened_by
        assert get_ident() not in files.opened_by
        assert log.segments[0].knows("max_timestamp")
