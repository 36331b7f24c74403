"""Where logs begin, written down for those who promise that nothing below comes back: DeleteRecords, and followers to their leaders.

Rule: one run serves all who ask while another is under way; a log is told of its start as it was when its caller asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor

from barnabas.server.grouped import GroupedJob
from barnabas.storage.log import Log


class LogStarts(GroupedJob):
    """Writes the checkpoints of all logs' starts, in one run for all who wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Executor, checkpoint: Callable[[], None]) -> None:
        super().__init__(loop, threads, checkpoint)

    async def keep(self, logs: Iterable[Log]) -> None:
        """Return when the starts of these logs are on the disk.

        Raises:
            StorageError: they could not be written.
        """
        marks = [(log, log.start_mark) for log in logs]
        await self.done()
        for log, mark in marks:
            log.start_written(mark)
