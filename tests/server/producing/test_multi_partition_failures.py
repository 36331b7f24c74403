"""Requests for several partitions of which some fail after they were taken: on the disk, or while they wait."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.producing import multi_partition
from barnabas.testing.failing_files import SYNCS, FailingFiles
from tests.server.in_process import STORAGE_ERROR, running
from tests.server.producing.multi_partition_requests import (
    PARTITIONS,
    TOGETHER,
    VERSIONS,
    Sent,
    batch_of,
    create,
    everywhere,
    frame_of,
    pipelined,
    told,
)
from tests.waiting import until


async def test_what_the_disk_refuses_of_some_partitions_is_refused(tmp_path: Path, taken: list[int]) -> None:
    files = FailingFiles()
    folders = [tmp_path / "home", tmp_path / "full"]
    async with running(folders, files) as client:
        full = client.broker.logs.directories[1]
        for index in range(PARTITIONS):
            client.broker.logs.prefer(TOGETHER[0], index, full)
            client.broker.logs.prefer(TOGETHER[1], index, client.broker.logs.directories[0])
        await create(client)
        requests = [everywhere(b"%d" % number) for number in range(6)]
        assert len(await pipelined(client, requests)) == 6
        files.fill(full.path)
        refused = await pipelined(client, requests)
        for number, answer in enumerate(refused):
            lost = [(index, STORAGE_ERROR, -1) for index in range(PARTITIONS)]
            kept = [(index, 0, 12 + 2 * number) for index in range(PARTITIONS)]
            assert told(answer) == lost + kept
        files.heal()
        again = await pipelined(client, requests)
        assert [told(answer)[0] for answer in again] == [(0, 0, 12 + 2 * number) for number in range(6)]
        assert [told(answer)[-1] for answer in again] == [(PARTITIONS - 1, 0, 24 + 2 * number) for number in range(6)]
    assert sum(taken) >= 15


async def test_without_answers_to_give_a_refusal_of_the_disk_closes_the_connection(
    tmp_path: Path, taken: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await create(client)
        await pipelined(client, [everywhere(b"v", acks=0), everywhere(b"v")])
        files.fill(tmp_path)
        frame = frame_of(client, everywhere(b"v", acks=0), TOGETHER, 0)
        await client.in_thread(partial(client.line.socket.sendall, frame))
        assert await client.in_thread(client.line.is_closed)
        files.heal()
    assert "acks=0 failed with KAFKA_STORAGE_ERROR" in caplog.text
    assert "met a fault of the broker" not in caplog.text


async def test_what_does_not_get_to_the_disk_is_refused(tmp_path: Path, taken: list[int]) -> None:
    files = FailingFiles()
    async with running([tmp_path / "one", tmp_path / "two"], files) as client:
        broken = client.broker.logs.directories[1]
        for name in TOGETHER:
            for index in range(PARTITIONS):
                client.broker.logs.prefer(name, index, broken)  # a broker stops if its first directory fails
        await create(client, {"flush_messages": "1"})
        requests = [everywhere(b"%d" % number) for number in range(6)]
        assert [told(answer)[0] for answer in await pipelined(client, requests)] == [(0, 0, 2 * number) for number in range(6)]
        assert sum(taken) >= 5
        files.fail(SYNCS, broken.path)
        frames = b"".join(frame_of(client, each, TOGETHER, number) for number, each in enumerate(requests))

        def ask() -> list[bytes]:
            client.line.socket.sendall(frames)
            return [client.line.receive() for _ in requests]

        for answer in await client.in_thread(ask):
            assert {code for _, code, _ in told(answer)} == {STORAGE_ERROR}


class Slow:
    """Partitions whose batches wait until the test lets them go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[tuple[int, Any]] = []
        monkeypatch.setattr(multi_partition, "must_wait", lambda *_: True)
        monkeypatch.setattr("barnabas.replication.leader_partition.LeaderPartition._advance", lambda *_: None)
        monkeypatch.setattr("barnabas.replication.leader_partition.LeaderPartition.wait_acknowledged", self._wait)

    def _wait(self, last_offset: int, done: Any, *, acks_all: bool) -> None:
        assert acks_all
        self.waiting.append((last_offset, done))


@pytest.mark.parametrize("version", VERSIONS)
async def test_answers_wait_for_all_partitions_and_tell_of_those_that_failed(
    version: int, tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        await pipelined(client, [everywhere(b"v", version, -1)])
        slow = Slow(monkeypatch)
        both = [Sent([(0, 0, batch_of(b"a")), (0, 1, batch_of(b"b"))], version, -1)] * 2
        asked = asyncio.ensure_future(pipelined(client, both))
        await until(lambda: len(slow.waiting) >= 2)
        assert sorted(last for last, _ in slow.waiting[-2:])[-1] == 3
        for round_ in range(len(slow.waiting) // 2):
            (_, first), (_, second) = slow.waiting[2 * round_ : 2 * round_ + 2]
            second(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
            first(None)
            first(None)
        answers = await asked
    late = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert [told(answer, version) for answer in answers] == [[(0, 0, 2), (1, late, -1)], [(0, 0, 3), (1, late, -1)]]


async def test_what_waits_for_too_long_is_told_so(tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        short = Sent([(0, 0, batch_of(b"a")), (0, 1, batch_of(b"b"))], acks=-1, timeout_ms=1)
        await pipelined(client, [short])
        slow = Slow(monkeypatch)
        (answer,) = await pipelined(client, [short])
        assert told(answer) == [(0, ErrorCode.REQUEST_TIMED_OUT, -1), (1, ErrorCode.REQUEST_TIMED_OUT, -1)]
        for _, done in slow.waiting:
            done(None)  # after the answer: no effect
        monkeypatch.undo()
        assert len(await pipelined(client, [everywhere(b"v")])) == 1
