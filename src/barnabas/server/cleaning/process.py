"""The broker's side of the cleaner process: starts it at the first cleaning, talks to it, and ends it when it is idle.

Rules
  1. There is at most one process. A thread starts it, because that takes milliseconds; the loop reads from it.
  2. When the process dies, all its cleanings fail with `CleanerDied`; the next cleaning starts another process.
  3. After `IDLE_S` seconds without work the process is ended, because the page cache needs the memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from barnabas.errors import BarnabasError, CorruptLog, SegmentsGone
from barnabas.storage.compaction.task import CleanedGroup, CleaningResult, CleaningTask

logger = logging.getLogger(__name__)

IDLE_S = 60.0
STOP_TIMEOUT_S = 5.0
LONGEST_LINE = 16 * 1024 * 1024  # bytes; the report of a group that replaces a million segments
COMMAND = (sys.executable, "-P", "-m", "barnabas.server.cleaning.worker")  # -P: no imports from the current folder

Progress = Callable[[int, int], None]
OnGroup = Callable[[CleanedGroup], Awaitable[None]]


class CleanerDied(BarnabasError):
    """The cleaner process ended before its work was done."""


class Cleaner(Protocol):
    """Carries out cleanings for a broker, outside of its loop."""

    async def clean(self, task: CleaningTask, *, rate: float, on_group: OnGroup, on_progress: Progress) -> CleaningResult:
        """See `CleanerProcess.clean`."""

    def cancel(self, directory: Path) -> None: ...

    async def update_rate(self, rate: float) -> None: ...

    async def close(self) -> None: ...


class _Running(Struct, eq=False):
    """A cleaning in the process, with its reports in order; None as a report stands for the end of the process."""

    number: int
    directory: Path
    stopped: bool = False  # the last report has arrived
    reports: asyncio.Queue[dict[str, Any] | None] = field(default_factory=asyncio.Queue)


class CleanerProcess:
    """Carries out cleanings in another process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Executor) -> None:
        self._loop = loop
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._running: dict[int, _Running] = {}
        self._next_number = 0
        self._rate = sys.float_info.max
        self._starting = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    async def clean(self, task: CleaningTask, *, rate: float, on_group: OnGroup, on_progress: Progress) -> CleaningResult:
        """Clean a log; `on_group` gets each finished segment, one at a time.

        Args:
            rate: limit of all cleanings together for reads and writes, in bytes per second.

        Raises:
            CleanerDied: the process ended; another attempt may succeed.
            SegmentsGone: from `on_group`, or after `cancel`.
            CorruptLog: the log has a damaged batch.
            OSError: a file could not be read or written.
        """
        await self._ensure_started(rate)
        self._next_number += 1
        running = self._running[self._next_number] = _Running(self._next_number, task.directory)
        try:
            await self._send({"clean": running.number, "task": json.loads(task.to_json())})
            while True:
                report = await running.reports.get()
                running.stopped = _is_last(report)
                result = await self._on_report(report, task.directory, on_group, on_progress)
                if result is not None:
                    return result
        except (BarnabasError, OSError):
            await self._wait_until_stopped(running)
            raise
        finally:
            del self._running[running.number]
            if not self._running:
                self._idle = self._loop.call_later(IDLE_S, self._end_idle)

    def cancel(self, directory: Path) -> None:
        """Stop the cleaning of a log that is deleted or moved; its `clean` raises SegmentsGone."""
        for running in self._running.values():
            if running.directory == directory:
                running.reports.put_nowait({"cancelled": True})

    async def _wait_until_stopped(self, running: _Running) -> None:
        """Make the process stop a cleaning; otherwise it might write files with the names that the next cleaning uses."""
        if not running.stopped:
            await self._send_quietly({"cancel": running.number})
        while not running.stopped and self._process is not None:
            running.stopped = _is_last(await running.reports.get())

    async def _on_report(
        self, report: dict[str, Any] | None, directory: Path, on_group: OnGroup, on_progress: Progress
    ) -> CleaningResult | None:
        if report is None:
            raise CleanerDied("the cleaner process ended")
        if "cancelled" in report:
            raise SegmentsGone(directory.name)
        if "progress" in report:
            on_progress(*report["progress"])
        elif "group" in report:
            base, replaced, before, after = report["group"]
            await on_group(CleanedGroup(base, tuple(replaced), before, after))
        elif "corrupt" in report:
            raise CorruptLog(*report["corrupt"])
        elif "failed" in report:
            number, text = report["failed"]
            raise OSError(number, text)
        elif "done" in report:
            return CleaningResult(*report["done"])
        return None

    async def update_rate(self, rate: float) -> None:
        """Change the limit in bytes per second, also for cleanings under way."""
        if rate != self._rate and self._process is not None:
            self._rate = rate
            await self._send_quietly({"bytes_per_second": rate})

    async def close(self) -> None:
        """End the process; its cleanings fail."""
        if self._process is not None:
            self._end(self._process)
        await asyncio.gather(*self._ending)

    async def _ensure_started(self, rate: float) -> None:
        async with self._starting:
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            if self._process is None:
                self._process = process = await self._loop.run_in_executor(self._threads, _start)
                self._reading = self._loop.create_task(self._read(process), name="cleaner-process")
                self._rate = sys.float_info.max
                logger.info("event=cleaner-process-started pid=%d", process.pid)
        await self.update_rate(rate)

    async def _read(self, process: subprocess.Popen[bytes]) -> None:
        """Pass the reports of the process to their cleanings, until the process ends."""
        reader = asyncio.StreamReader(limit=LONGEST_LINE, loop=self._loop)
        transport, _ = await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
        try:
            while line := await reader.readline():
                report = json.loads(line)
                running = self._running.get(report["clean"])
                if running is not None:
                    running.reports.put_nowait(report)
        finally:
            transport.close()
            if self._process is process:
                self._end(process)
            for running in self._running.values():
                running.reports.put_nowait(None)

    async def _send(self, order: dict[str, Any]) -> None:
        try:
            async with self._writing:
                if self._process is None:
                    raise CleanerDied("the cleaner process ended")
                await self._loop.run_in_executor(self._threads, _write, self._process, order)
        except (OSError, ValueError) as error:  # ValueError: its standard input is closed
            raise CleanerDied(str(error)) from error

    async def _send_quietly(self, order: dict[str, Any]) -> None:
        """Send an order that does not matter if the process is gone."""
        try:
            await self._send(order)
        except CleanerDied as error:
            logger.debug("event=cleaner-process-gone error=%r", str(error))

    def _end_idle(self) -> None:
        if self._process is not None and not self._running:
            self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Use the process no more, and make it end."""
        self._process = None
        ending = self._loop.create_task(self._wait(process), name="cleaner-process-end")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _wait(self, process: subprocess.Popen[bytes]) -> None:
        code = await self._loop.run_in_executor(self._threads, _stop, process)
        if self._reading is not None and self._reading is not asyncio.current_task():
            await asyncio.wait([self._reading], timeout=STOP_TIMEOUT_S)
        logger.info("event=cleaner-process-ended pid=%d exit_code=%d", process.pid, code)


def _is_last(report: dict[str, Any] | None) -> bool:
    """Whether the process is done with a cleaning. The report that `cancel` adds has no number and does not show this."""
    return report is None or ("clean" in report and "progress" not in report and "group" not in report)


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)


def _write(process: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
    assert process.stdin is not None
    data = memoryview(json.dumps(order).encode() + b"\n")
    while data:
        data = data[process.stdin.write(data) :]


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Close the standard input of the process and wait for its end; after a timeout, kill it. Returns the exit code."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        return process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
