"""The broker's periodic jobs: each job has an interval and runs on the loop, one run at a time.

Jobs run at whole intervals after the first job was added, not after their own last run. So jobs that are due in the same second run in one
turn of the loop and wake an idle broker only once. A missed run is not repeated.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable

from barnabas.server.metrics import IDLE_LOOP_LAG_INTERVAL_MS, LOOP_LAG_INTERVAL_MS, Metrics

logger = logging.getLogger(__name__)
LEAST_MS = 1.0  # between two runs; an interval of 0 would leave the loop no time for anything else
BUSY = 0.05  # the share of the loop's time from which on the loop counts as busy
CLOCK_STEP_S = 0.002  # the loop counts in milliseconds, and may wake up one before a job is due
Job = Callable[[], Awaitable[None] | None]


class PeriodicJobs:
    """Runs jobs until `close`. If a job fails, the error is logged, and the job runs again at its next time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: list[asyncio.Task[None]] = []
        self._began_s: float | None = None  # when the first job was added

    def every(self, interval_ms: float, job: Job, name: str, first_ms: float | None = None) -> None:
        """Run `job` every `interval_ms`; the first time after `first_ms` if that is shorter."""
        first_ms = interval_ms if first_ms is None else min(interval_ms, first_ms)
        due_s = self._now() + first_ms / 1000
        self._tasks.append(self._loop.create_task(self._run(due_s, max(interval_ms, LEAST_MS) / 1000, job, name), name=name))

    def watch_loop(self, metrics: Metrics) -> None:
        """Measure the delay of the loop; often while it is busy with requests."""
        due_s = self._now() + LOOP_LAG_INTERVAL_MS / 1000
        self._tasks.append(self._loop.create_task(self._watch(due_s, metrics), name="loop-lag"))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, due_s: float, interval_s: float, job: Job, name: str) -> None:
        while True:
            await self._reach(due_s)
            try:
                result = job()
                if result is not None:
                    await result
            except Exception:
                logger.exception("event=periodic-job-failed job=%s", name)
            due_s = self._next(interval_s)

    async def _watch(self, due_s: float, metrics: Metrics) -> None:
        looked_s, worked_ns = self._loop.time(), metrics.worked_ns
        while True:
            await self._reach(due_s)
            now_s = self._loop.time()
            metrics.observe_loop_lag(max(now_s - due_s, 0) * 1000)
            is_busy = metrics.worked_ns - worked_ns > BUSY * (now_s - looked_s) * 1e9
            looked_s, worked_ns = now_s, metrics.worked_ns
            due_s = self._next((LOOP_LAG_INTERVAL_MS if is_busy else IDLE_LOOP_LAG_INTERVAL_MS) / 1000)

    def _now(self) -> float:
        now_s = self._loop.time()
        if self._began_s is None:
            self._began_s = now_s
        return now_s

    def _next(self, interval_s: float) -> float:
        """The next time that is a whole number of intervals after the beginning."""
        assert self._began_s is not None
        whole = math.floor((self._loop.time() - self._began_s + CLOCK_STEP_S) / interval_s)
        return self._began_s + (whole + 1) * interval_s

    async def _reach(self, due_s: float) -> None:
        await asyncio.sleep(due_s - self._loop.time())
