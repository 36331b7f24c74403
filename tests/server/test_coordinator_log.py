"""The coordinator's log: what is read back, and what becomes of writes that nobody waits for any more."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.coordinator_log import PartitionedLog, _settle
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


async def test_everything_is_read_however_many_segments_there_are(tmp_path: Path) -> None:
    """Also where offsets have grown past the bytes of a segment, as in a log that was compacted again and again."""
    keys = [b"%d" % number for number in range(200)]
    async with running([tmp_path]) as client:
        await client.create()
        log = PartitionedLog(client.broker, TOPIC, 1)
        for key in keys:
            await log.append(0, [(key, b"")], NOW_MS)
            assert client.broker.partitions.require(TOPIC, 0).log.maybe_roll(NOW_MS + YEAR_MS)
        assert [entry.record for entry in log.read_all(0)] == [(key, b"") for key in keys]
    async with running([tmp_path]) as client:
        log = PartitionedLog(client.broker, TOPIC, 1)
        assert [entry.record for entry in log.read_all(0)] == [(key, b"") for key in keys]
