"""Removes the logs of partitions that this broker must not have any more.

Requests do not find a partition any more before its log is removed. The broker renames the folder before it answers the deletion, and
deletes the files later, in the background. If the broker stops before, or a disk fails to rename, the next start removes the files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.server.logs.batched_jobs import PART, in_turns, run_in_parts
from barnabas.server.services import report_later
from barnabas.storage.garbage import Garbage, remove_all

if TYPE_CHECKING:
    from barnabas.cluster.planning.instructions import DeleteLog
    from barnabas.server.cleaning.cleaner import LogCleaner
    from barnabas.server.logs.log_dir_moves import LogDirMoves
    from barnabas.server.services import Services

THREADS_NAME = "barnabas-deleting"


class LogRemover:
    """Removes the logs of one broker."""

    def __init__(self, services: Services, cleaner: LogCleaner, log_dir_moves: LogDirMoves) -> None:
        self._services = services
        self._cleaner = cleaner
        self._log_dir_moves = log_dir_moves
        self._removals: dict[asyncio.Task[object], Sequence[Garbage]] = {}

    async def remove(self, instructions: Sequence[DeleteLog]) -> None:
        """Remove the partitions and rename their folders; a background task then deletes the files."""
        services = self._services
        gone = []
        async for i in in_turns(instructions):
            partition = services.partitions.remove(i.topic, i.partition)
            self._cleaner.forget([(i.topic, i.partition)])
            if partition is not None and not partition.is_offline:
                gone.append(partition)
        await self._cleaner.leave([(each.topic, each.index) for each in gone])
        async for each in in_turns(gone):
            self._log_dir_moves.stop(each.topic, each.index)
            await self._log_dir_moves.settle(each.topic, each.index)
        retired = [services.logs.removal.retire(each.topic, each.index) async for each in in_turns(gone)]
        parts = [retired[at : at + PART] for at in range(0, len(retired), PART)]
        outcomes = await run_in_parts(
            services, [partial(services.logs.removal.rename_folders, part) for part in parts], THREADS_NAME
        )
        outcomes += await run_in_parts(services, [partial(services.logs.removal.forget, retired)], THREADS_NAME)
        failures = [each for each in outcomes if each is not None]
        if failures:  # the topic is gone from the metadata; its folders are removed at the next start
            for left in retired:
                left.garbage.close()
            services.faults.report(failures[0])
            return
        garbage = [each.garbage for each in retired]
        removal: asyncio.Task[object] = services.loop.create_task(self._remove(garbage), name="removal of deleted logs")
        self._removals[removal] = garbage
        removal.add_done_callback(self._removals.pop)
        report_later(services.faults, removal)

    async def _remove(self, garbage: Sequence[Garbage]) -> None:
        """Remove the files of deleted logs, with at most one thread, because reads wait for the other threads."""
        for at in range(0, len(garbage), PART):
            removing = self._services.loop.run_in_executor(self._services.io_threads, remove_all, garbage[at : at + PART])
            try:
                await asyncio.shield(removing)
            finally:
                if not removing.done():
                    await asyncio.wait([removing])

    async def close(self) -> None:
        """Leave the remaining files of deleted logs to the next start, and close them."""
        removals = dict(self._removals)
        for removal in removals:
            removal.cancel()
        await asyncio.gather(*removals, return_exceptions=True)
        for garbage in removals.values():
            for each in garbage:
                each.close()
