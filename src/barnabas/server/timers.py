"""What the broker does again and again: each job has an interval and runs on the loop, one run at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.server.metrics import LOOP_LAG_INTERVAL_MS, Metrics

logger = logging.getLogger(__name__)
Job = Callable[[], Awaitable[None] | None]


class Timers:
    """Runs jobs until closed; a job that fails is logged and runs again at its next time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, interval_ms: float, job: Job, name: str, first_ms: float | None = None) -> None:
        """Run `job` each `interval_ms`; the first time after `first_ms`, if that is shorter."""
        first_ms = interval_ms if first_ms is None else min(interval_ms, first_ms)
        self._tasks.append(self._loop.create_task(self._run(first_ms / 1000, interval_ms / 1000, job, name), name=name))

    def watch_loop(self, metrics: Metrics) -> None:
        """Measure how late the loop is."""
        self._tasks.append(self._loop.create_task(self._watch(metrics), name="loop-lag"))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, pause_s: float, interval_s: float, job: Job, name: str) -> None:
        while True:
            await asyncio.sleep(pause_s)
            pause_s = interval_s
            try:
                result = job()
                if result is not None:
                    await result
            except Exception:
                logger.exception("event=periodic-job-failed job=%s", name)

    async def _watch(self, metrics: Metrics) -> None:
        interval_s = LOOP_LAG_INTERVAL_MS / 1000
        while True:
            due = self._loop.time() + interval_s
            await asyncio.sleep(interval_s)
            metrics.observe_loop_lag(max(self._loop.time() - due, 0) * 1000)
