"""The cleaner process as a part of the simulation: the same work on the same disk, in pieces.

Owns the cleaner's descriptors, which are not the broker's, and the pace of its work.

Rules
  1. It changes the disk exactly as `cleaning.worker` does; between two groups of segments other events run, and the broker
     replaces one group while the cleaner writes the next one.
  2. The cleaner dies with its broker, or alone (`kill_in` of its files). Then another process does the next cleaning.

**Ugly:** no other event runs within a group, and the cleaner ignores its rate limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from barnabas.errors import BarnabasError, SegmentsGone
from barnabas.server.cleaning.process import CleanerDied, OnGroup, Progress
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.compaction.plain import PlainEngine
from barnabas.storage.compaction.task import CleanedGroup, CleaningResult, CleaningTask
from barnabas.testing.simulation.files import FaultyFiles, ProcessKilled
from barnabas.testing.simulation.loop import VirtualLoop

Report = CleanedGroup | CleaningResult | Exception


class SimulatedCleaner:
    """A `server.cleaning.process.Cleaner` without a process.

    Args:
        open_files: opens the disk for a process that starts now.
        random: decides the pauses.
    """

    def __init__(self, loop: VirtualLoop, open_files: Callable[[], FaultyFiles], random: Random) -> None:
        self._loop = loop
        self._open_files = open_files
        self._random = random
        self._running: dict[asyncio.Queue[Report], Path] = {}
        self.files = open_files()
        self.groups = 0

    async def clean(self, task: CleaningTask, *, rate: float, on_group: OnGroup, on_progress: Progress) -> CleaningResult:
        if self.files.dead:
            self.files = self._open_files()
        reports: asyncio.Queue[Report] = asyncio.Queue()
        self._running[reports] = task.directory
        worker = self._loop.create_task(self._work(CleaningTask.from_json(task.to_json()), reports, on_progress), name="cleaning")
        try:
            while True:
                report = await reports.get()
                if isinstance(report, CleanedGroup):
                    self.groups += 1
                    await on_group(report)
                elif isinstance(report, CleaningResult):
                    return report
                else:
                    raise report
        finally:
            del self._running[reports]
            worker.cancel()
            if not self._loop.dead:  # in a dead loop this coroutine is being closed, and must not await
                await asyncio.wait([worker])

    async def _work(self, task: CleaningTask, reports: asyncio.Queue[Report], on_progress: Progress) -> None:
        cleaning = clean(task, self.files, PlainEngine(), on_progress)
        try:
            while True:
                await asyncio.sleep(self._random.choice((0.0005, 0.01, 0.1)) * self._random.random())
                try:
                    reports.put_nowait(next(cleaning))
                except StopIteration as end:
                    reports.put_nowait(end.value)
                    return
        except (BarnabasError, OSError) as error:
            reports.put_nowait(error)
        except ProcessKilled:
            reports.put_nowait(CleanerDied("the cleaner process ended"))
        finally:
            with suppress(ProcessKilled):
                cleaning.close()

    def cancel(self, directory: Path) -> None:
        for reports, cleaned in self._running.items():
            if cleaned == directory:
                reports.put_nowait(SegmentsGone(directory.name))

    async def update_rate(self, rate: float) -> None:
        """Does nothing: the simulation decides the pace."""

    async def close(self) -> None:
        """Does nothing: the caller has cancelled the current cleaning."""
