"""The coordinator's log: the records that are read back, and the end of writes that no caller waits for any more."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest

from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, KafkaError
from barnabas.server import coordinator_log
from barnabas.server.broker import Broker
from barnabas.server.coordinator_log import READ_AT_ONCE_BYTES, PartitionedLog, _settle
from barnabas.testing.failing_files import FailingFiles
from tests.server.in_process import TOPIC, running
from tests.server.wire import NOW_MS

YEAR_MS = 365 * 24 * 3_600_000


async def test_a_write_that_fails_after_its_waiter_has_gone_is_no_error_of_the_loop() -> None:
    problems: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(context))
    _settle(loop.create_future(), KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    gc.collect()
    assert problems == []


def log_of(broker: Broker) -> PartitionedLog:
    return PartitionedLog(broker.services, broker.pinned_files, TOPIC, 1)


async def records_in(log: PartitionedLog) -> list[Record | None]:
    return [entry.record async for part in log.read_all(0) for entry in part]


async def test_everything_is_read_however_many_segments_there_are(tmp_path: Path) -> None:
    """Also where offsets have grown past the bytes of a segment, as in a log that was compacted again and again."""
    keys = [b"%d" % number for number in range(200)]
    async with running([tmp_path]) as client:
        await client.create()
        log = log_of(client.broker)
        for key in keys:
            assert log.append(0, [(key, b"")], NOW_MS) is None
            stored = client.broker.partitions.require(TOPIC, 0).log
            assert stored.appender.maybe_roll(stored.segments.active.created_ms + YEAR_MS)
        assert await records_in(log) == [(key, b"") for key in keys]
    async with running([tmp_path]) as client:
        assert await records_in(log_of(client.broker)) == [(key, b"") for key in keys]


async def test_much_is_read_by_threads_with_descriptors_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And damage in it is left out."""
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await client.create()
        log = log_of(client.broker)
        records = [(b"%d" % number, b"x" * 1000) for number in range(400)]
        for record in records:
            assert log.append(0, [record], NOW_MS) is None
        path = client.broker.partitions.require(TOPIC, 0).log.segments.active.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    loop_thread = get_ident()
    reading: set[int] = set()

    def pread(fileno: int, size: int, position: int) -> bytes:
        if size > READ_AT_ONCE_BYTES:
            reading.add(get_ident())
        return os.pread(fileno, size, position)

    monkeypatch.setattr(coordinator_log, "READ_BYTES", 100_000)
    async with running([tmp_path], files) as client:
        monkeypatch.setattr(files, "pread", pread)
        assert await records_in(log_of(client.broker)) == [
            *records[:200],
            *records[201:],
        ]
    assert reading
    assert loop_thread not in reading
