"""Group commit through the wire: the moments of the answers, and the number of syncs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.storage.log import Log
from barnabas.testing.failing_files import FailingFiles
from tests.server.in_process import Client, running
from tests.waiting import until


class GatedFiles(FailingFiles):
    """Syncs of files wait for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = 0

    def sync(self, fileno: int, /) -> None:
        self.waiting += 1
        assert self.gate.wait(20)
        super().sync(fileno)


async def test_all_that_come_while_a_sync_runs_share_the_next_one(tmp_path: Path) -> None:
    files = GatedFiles()
    async with running([tmp_path], files) as first:
        await first.create(flush_messages="1")
        clients = [Client(first.broker) for _ in range(8)]
        log = first.broker.partitions.require("t", 0).log
        assert await first.produce(b"before") == 0
        assert log.durable_end == 1
        files.gate.clear()
        files.waiting = 0
        before = files.counts["sync"]
        asked = [asyncio.ensure_future(first.produce(b"first"))]
        await until(lambda: files.waiting == 1)
        asked += [asyncio.ensure_future(client.produce(b"x", acks=1 - index % 2 * 2)) for index, client in enumerate(clients)]
        await until(lambda: log.log_end_offset == 10)
        assert not any(each.done() for each in asked)
        reader = Client(first.broker)
        assert await reader.fetch() == (0, [b"before"])
        files.gate.set()
        assert await asyncio.gather(*asked) == [0] * 9
        assert files.counts["sync"] - before == 2
        assert await reader.fetch() == (0, [b"before", b"first"] + [b"x"] * 8)
        for client in [*clients, reader]:
            client.close()


async def until_all_end(logs: Sequence[Log], offset: int) -> None:
    await until(lambda: all(log.log_end_offset == offset for log in logs))


async def test_partitions_share_a_round_and_their_names_are_synced_once(tmp_path: Path) -> None:
    files = GatedFiles()
    async with running([tmp_path], files) as client:
        await client.create(partitions=6, flush_messages="1")
        clients = [Client(client.broker) for _ in range(6)]
        rounds = client.broker.metrics.flush_rounds
        logs = [client.broker.partitions.require("t", index).log for index in range(6)]
        for round_number in (1, 2):
            files.gate.clear()
            files.waiting, before = 0, rounds.count
            first = asyncio.ensure_future(clients[0].produce(b"a", 0))
            await until(lambda: files.waiting == 1)
            others = [asyncio.ensure_future(clients[index].produce(b"a", index)) for index in range(1, 6)]
            await until_all_end(logs, round_number)
            files.gate.set()
            assert await asyncio.gather(first, *others) == [0] * 6
            assert rounds.count - before == 2
            if round_number == 1:
                directories = files.counts["sync_directory"]
        assert files.counts["sync_directory"] == directories
        for each in clients:
            each.close()


async def test_flush_ms_brings_records_to_the_disk_without_anybody_waiting(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create(flush_ms="20")
        log = client.broker.partitions.require("t", 0).log
        for count in (1, 2):
            assert await client.produce(b"a") == 0
            await until(lambda: log.durable_end == log.log_end_offset)
            assert log.durable_end == count


async def test_a_commit_of_offsets_waits_for_the_disk_where_the_broker_says_so(tmp_path: Path) -> None:
    files = GatedFiles()
    async with running([tmp_path], files, log_flush_interval_messages="1") as client:
        await client.create()
        assert (await commit(client, 5)) == 0
        files.gate.clear()
        files.waiting = 0
        waiting = asyncio.ensure_future(commit(client, 6))
        await until(lambda: files.waiting == 1)
        assert not waiting.done()
        files.gate.set()
        assert await waiting == 0


async def commit(client: Client, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    answer = await client.ask((8, 7), request, OffsetCommitResponse)
    return int(answer.topics[0].partitions[0].error_code)
