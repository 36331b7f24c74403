"""The coordinator's log: what becomes of writes that nobody waits for any more."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.coordinator_log import _settle


async def test_a_write_that_fails_after_its_waiter_has_gone_is_no_error_of_the_loop() -> None:
    problems: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(context))
    _settle(loop.create_future(), KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    gc.collect()
    assert problems == []
