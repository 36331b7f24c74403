"""Group commit: runs the flushes that partitions request in rounds.

Owns the rounds of each log directory, their threads, and the timers of `flush.ms`.

Rules
  1. A directory has one round at a time. A round takes every partition that has requested a flush before it; later requests wait for the
     next round. So one sync of a file serves all requests that came during the previous one, and a slow disk does not delay another.
  2. Partitions plan and finish on the loop; only `FlushPlan.run` runs in a thread. The threads divide the files of a round.
  3. A round that meets a disk error reports it once, and does not try again, because that directory is then out of use.

A round begins one turn of the loop after the first request. So it includes all requests that the loop reads in the same turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from barnabas.errors import StorageError
from barnabas.replication.online_replica import OnlineReplica
from barnabas.server.metrics import Metrics
from barnabas.storage.flushing import FlushPlan

logger = logging.getLogger(__name__)
FLUSH_THREADS = 8  # they wait for the disk; a file system joins the syncs of several files in one write of its journal
FILES_PER_THREAD = 4  # for fewer files, another thread is not worth it

Planned = Sequence[tuple[OnlineReplica, FlushPlan]]


class _Disk:
    """The rounds of one log directory."""

    __slots__ = ("is_running", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[OnlineReplica, None] = {}
        self.is_running = False


class GroupCommit:
    """The `FlushScheduler` of a broker.

    Args:
        on_error: called on the loop with the error of a disk.
        threads: FLUSH_THREADS threads; `close` shuts them down.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        metrics: Metrics,
        on_error: Callable[[StorageError], None],
        threads: Executor,
    ) -> None:
        self._loop = loop
        self._metrics = metrics
        self._on_error = on_error
        self._threads = threads
        self._disks: dict[Path, _Disk] = {}
        self._timers: dict[OnlineReplica, asyncio.TimerHandle] = {}
        self._idle: list[asyncio.Future[None]] = []
        self._closed = False

    # --- FlushScheduler

    def flush_soon(self, partition: OnlineReplica) -> None:
        home = partition.log.directory.parent
        disk = self._disks.get(home)
        if disk is None:
            disk = self._disks[home] = _Disk()
        disk.waiting[partition] = None
        if not disk.is_running:
            disk.is_running = True
            self._loop.call_soon(self._start, disk)

    def flush_later(self, partition: OnlineReplica, delay_ms: int) -> None:
        if partition not in self._timers and not self._closed:
            self._timers[partition] = self._loop.call_later(delay_ms / 1000, self._due, partition)

    def _due(self, partition: OnlineReplica) -> None:
        del self._timers[partition]
        if not partition.closed:
            self.flush_soon(partition)

    # --- rounds

    def _start(self, disk: _Disk) -> None:
        waiting, disk.waiting = disk.waiting, {}
        planned = [] if self._closed else self._plan(waiting)
        if not planned:
            self._end(disk)
            return
        started = self._loop.time()
        share = max(FILES_PER_THREAD, -(-len(planned) // FLUSH_THREADS))
        parts = [planned[at : at + share] for at in range(0, len(planned), share)]
        left = len(parts)

        def done(part: asyncio.Future[None]) -> None:
            nonlocal left
            if part.exception() is not None:  # a fault of the broker: the plans are not done, and their partitions report that
                logger.error("event=flush-failed", exc_info=part.exception())
            left -= 1
            if not left:
                self._metrics.observe_flush(len(planned), self._loop.time() - started)
                self._finish(planned)
                self._end(disk)

        for part in parts:
            self._loop.run_in_executor(self._threads, _run, part).add_done_callback(done)

    def _plan(self, waiting: dict[OnlineReplica, None]) -> list[tuple[OnlineReplica, FlushPlan]]:
        planned = []
        for partition in waiting:
            if partition.closed:
                continue
            try:
                plan = partition.plan_flush()
            except StorageError as error:
                self._on_error(error)
                continue
            if plan is not None:
                planned.append((partition, plan))
        return planned

    def _finish(self, planned: Planned) -> None:
        for partition, plan in planned:
            try:
                partition.finish_flush(plan)
            except StorageError as error:
                self._on_error(error)

    def _end(self, disk: _Disk) -> None:
        """Begin the next round in the next turn of the loop, so that it includes the requests that wait in the sockets."""
        if disk.waiting and not self._closed:
            self._loop.call_soon(self._start, disk)
            return
        disk.is_running = False
        if not any(each.is_running for each in self._disks.values()):
            idle, self._idle = self._idle, []
            for future in idle:
                if not future.done():
                    future.set_result(None)

    # --- called by the broker

    async def wait_idle(self) -> None:
        """Wait until no round runs and none is requested."""
        if any(disk.is_running for disk in self._disks.values()):
            future: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(future)
            await future

    async def close(self) -> None:
        """Begin no more rounds, and wait for the current one. The close of the logs flushes the rest."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await self.wait_idle()
        self._threads.shutdown()


def _run(planned: Planned) -> None:
    for _, plan in planned:
        plan.run()
