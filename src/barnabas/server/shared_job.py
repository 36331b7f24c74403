"""A blocking job for many callers: one run of it serves all callers that wait.

Rules
  1. A call returns at the end of a run that began after the call. So the run covers all earlier changes.
  2. At most one run is in progress. All callers that come during it share the next run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor


class SharedJob:
    """Runs `job` in a thread of `threads` for all callers that wait for it on `loop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Executor, job: Callable[[], None]) -> None:
        self._loop, self._threads, self._job = loop, threads, job
        self._current: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def done(self) -> None:
        """Return when a run that began after this call has ended. Raises the error of the job."""
        if self._next is None:
            self._next = self._loop.create_task(self._run_after(self._current))
        await asyncio.shield(self._next)

    async def _run_after(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._current, self._next = self._next, None
        await self._loop.run_in_executor(self._threads, self._job)

    async def close(self) -> None:
        """Wait for the current run and the next one. Call this before the shutdown of the executor."""
        while running := [task for task in (self._current, self._next) if task is not None and not task.done()]:
            await asyncio.wait(running)
