"""Requests whose connection is gone before their work has begun."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

from barnabas.protocol.messages.delete_records import DeleteRecordsRequest
from tests.server.in_process import running
from tests.server.wire import framed
from tests.waiting import until

DELETE_RECORDS = (21, 2)


async def test_a_request_that_is_cancelled_before_it_begins_leaves_nothing_unawaited(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        await _cancel_before_it_begins(tmp_path)
        gc.collect()  # Python warns here about a coroutine that was never awaited
    assert [each for each in warned if "never awaited" in str(each.message)] == []


async def _cancel_before_it_begins(folder: Path) -> None:
    async with running([folder]) as client:
        await client.create()
        (connection,) = client.broker.connections
        frame = memoryview(framed(DELETE_RECORDS, DeleteRecordsRequest(topics=[], timeout_ms=1_000)))
        client.broker.dispatch(connection, frame, 0, len(frame))
        connection.close()
        await until(lambda: not client.broker.connections)
