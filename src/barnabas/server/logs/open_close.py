"""Opens all logs at the start and closes them at the end, several at once, and logs the progress.

After a clean stop there is little to read of each log. After a crash the broker reads everything past the recovery points, and the start
may take a while. Then a line in the log tells the progress every few seconds. A stop syncs the logs that changed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.errors import LogDirFailed

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.server.services import Services
    from barnabas.storage.log import Log
    from barnabas.storage.manager import FoundLog

logger = logging.getLogger(__name__)

PROGRESS_MS = 2_000  # between two log lines
CLOSING_THREADS = 8  # they wait for the disk; a file system joins the syncs of several files in one write of its journal
OPENED_AT_ONCE = 200  # logs given to the threads; a failure ends the start before the next logs are begun


async def open_logs(services: Services) -> None:
    """Open every log in `num.recovery.threads.per.data.dir` threads for each log directory.

    Raises:
        StorageError: a log cannot be opened.
    """
    found = services.logs.find(services.controller.topic_config)
    if not found:
        return
    threads = services.config.num_recovery_threads_per_data_dir * len(services.logs.directories)
    executor = services.make_executor(threads, "barnabas-opening")
    try:
        await _Opening(services, executor, len(found)).run(found)
    finally:
        await services.loop.run_in_executor(None, executor.shutdown)


async def close_logs(services: Services) -> None:
    """Close every log that needs a sync, in several threads. `LogManager.close` closes the others, and raises the errors."""
    changed = [log_ for log_ in services.logs.logs() if log_.needs_work_to_close]
    if len(changed) <= 1:
        return
    executor = services.make_executor(min(CLOSING_THREADS, len(changed)), "barnabas-closing")
    told_ms = services.clock.monotonic_ms()
    for start in range(0, len(changed), OPENED_AT_ONCE):
        piece = changed[start : start + OPENED_AT_ONCE]
        await asyncio.gather(*(services.loop.run_in_executor(executor, services.logs.close_log, each) for each in piece))
        if services.clock.monotonic_ms() - told_ms >= PROGRESS_MS:
            told_ms = services.clock.monotonic_ms()
            logger.info("event=closing-logs done=%d total=%d", start + len(piece), len(changed))
    await services.loop.run_in_executor(None, executor.shutdown)


class _Opening:
    def __init__(self, services: Services, executor: Executor, total: int) -> None:
        self._services = services
        self._executor = executor
        self._total = total
        self._done = 0
        self._bytes = 0
        self._told_ms = services.clock.monotonic_ms()

    async def run(self, found: list[FoundLog]) -> None:
        for start in range(0, len(found), OPENED_AT_ONCE):
            piece = found[start : start + OPENED_AT_ONCE]
            futures = [self._services.loop.run_in_executor(self._executor, each.open) for each in piece]
            try:
                for future in futures:
                    await asyncio.wait([future])
                    self._count(future)
            finally:  # after a failure too, the opened logs must be known, so that they get closed
                for future in futures:
                    future.cancel()
                await asyncio.gather(*futures, return_exceptions=True)
                opened = [(each, future) for each, future in zip(piece, futures, strict=True) if not future.cancelled()]
                for each, future in opened:
                    if future.exception() is None:
                        self._services.logs.adopt(each, future.result())
            for each, future in opened:
                error = future.exception()
                if isinstance(error, (LogDirFailed, OSError)):
                    self._services.logs.not_opened(each, error)
                elif error is not None:
                    raise error

    def _count(self, future: asyncio.Future[Log]) -> None:
        self._done += 1
        if future.exception() is None:
            self._bytes += future.result().size_bytes
        now_ms = self._services.clock.monotonic_ms()
        if now_ms - self._told_ms >= PROGRESS_MS:
            self._told_ms = now_ms
            logger.info("event=opening-logs done=%d total=%d bytes=%d", self._done, self._total, self._bytes)
