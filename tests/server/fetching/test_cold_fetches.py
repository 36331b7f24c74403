"""Fetches of what is not in memory, beside the loop that serves others."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.records.batch import split_batches
from barnabas.server import descriptors
from barnabas.storage.integrity import READ_AHEAD_BYTES
from barnabas.testing.failing_files import FailingFiles
from tests.server.in_process import TOPIC, Client, running
from tests.storage.support import with_emptied
from tests.waiting import until

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


class NoneLeft(ColdFiles):
    """Nothing is in memory, and there are no descriptors to read it by elsewhere."""

    def dup(self, fileno: int, /) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class HeldCounted(ColdFiles):
    """Counts the descriptors for regions that are held."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._held: set[int] = set()

    def dup(self, fileno: int, /) -> int:
        made = super().dup(fileno)
        self._held.add(made)
        self.most = max(self.most, len(self._held))
        return made

    def close(self, fileno: int, /) -> None:
        self._held.discard(fileno)
        super().close(fileno)


class EvictedFiles(FailingFiles):
    """All is in memory but the first byte of each file in `evicted`, until a thread has read it. The reads of threads are recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.evicted: set[int] = set()  # inodes
        self.read_by_threads: list[int] = []  # positions

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        if not position and os.fstat(fileno).st_ino in self.evicted:
            raise BlockingIOError
        return super().preadv_nowait(fileno, buffers, position)

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            self.read_by_threads.append(position)
            if not position:
                self.evicted.discard(os.fstat(fileno).st_ino)
        return super().pread(fileno, size, position)


async def fetched(client: Client, max_bytes: int, offset: int = 0) -> list[tuple[int, int]]:
    """Base offset and number of records of each batch that a consumer gets from `offset` on."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
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
            files.read_by_threads.clear()  # the broker read its segments when it opened its logs
            assert (await fetched(client, max_bytes))[0] == (EMPTIED, 1)

    asyncio.run(test())


def test_one_cold_page_does_not_send_all_that_follow_through_the_thread(tmp_path: Path) -> None:
    """The loop serves verified data in memory again, behind the reach of the kernel's read-ahead from the disk."""

    batch_bytes = 200_000
    batches = 3 * READ_AHEAD_BYTES // batch_bytes

    async def test() -> None:
        async with running([tmp_path]) as client:
            await client.create()
            for _ in range(batches):
                await client.produce(b"x" * batch_bytes)
        files = EvictedFiles()
        async with running([tmp_path], files) as client:
            for offset in range(batches):
                assert await fetched(client, 2 * batch_bytes - 1, offset) == [(offset, 1)]
            assert max(files.read_by_threads) > 2 * READ_AHEAD_BYTES, "after a start everything is verified"
            files.read_by_threads.clear()
            files.evicted.add((tmp_path / f"{TOPIC}-0" / f"{0:020}.log").stat().st_ino)
            for offset in range(batches):
                assert await fetched(client, 2 * batch_bytes - 1, offset) == [(offset, 1)]
            assert min(files.read_by_threads) == 0
            assert max(files.read_by_threads) < READ_AHEAD_BYTES + 2 * batch_bytes

    asyncio.run(test())


async def given(client: Client, partitions: Iterable[int]) -> set[int]:
    """The partitions of which one answer has records."""
    wanted = [FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=2**20) for partition in partitions]
    request = FetchRequest(replica_id=-1, max_wait_ms=0, max_bytes=2**20, topics=[FetchTopic(topic=TOPIC, partitions=wanted)])
    found = (await client.ask(FETCH, request, FetchResponse)).responses[0].partitions
    assert {(each.error_code, each.high_watermark) for each in found} == {(0, 1)}
    return {each.partition_index for each in found if each.records}


async def test_who_reads_many_files_at_once_has_some_with_the_next_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "granted", lambda: 48)
    most = descriptors.most_held_files() // 2
    files = HeldCounted()
    async with running([tmp_path], files) as client:
        await client.create(3 * most)
        for partition in range(3 * most):
            assert await client.produce(b"%d" % partition, partition) == 0
        left = set(range(3 * most))
        for _ in range(3):
            files.read_by_threads.clear()
            some = await given(client, sorted(left))
            assert len(some) == most
            left -= some
            await until(lambda: not len(client.broker.pinned_files), "files of an answer that was sent are held")
        assert not left
        assert files.most == most
        regions = [client.broker.partitions.require(TOPIC, index).read(0, 100, minimum_one=True) for index in range(most)]
        held = [client.broker.pinned_files.hold(region) for region in regions if region is not None]
        files.read_by_threads.clear()
        assert await given(client, range(most, 3 * most)) == {most}, "where others hold as many, all the same one"
        await until(lambda: len(client.broker.pinned_files) == most)
        assert await given(client, (most + 1, 0, most + 2)) == {most + 1, 0}, "and what takes none more"
        assert len(held) == most


async def test_a_connection_ends_that_there_is_no_descriptor_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running([tmp_path], NoneLeft()) as client:
        await client.create()
        assert await client.produce(b"v") == 0
        with pytest.raises(EOFError):
            await fetched(client, 2**20)
        assert "event=cold-read-given-up" in caplog.text
