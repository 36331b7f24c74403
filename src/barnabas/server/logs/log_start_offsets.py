"""Writes the checkpoints of logs for callers that promise that deleted records do not come back: DeleteRecords, and followers.

Rules
  1. All callers that come during one run share the next one. A log then learns that its state at the time of the call is written.
  2. If a directory cannot be written, this is a failure for the logs in it, and for no others.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.errors import StartsUnwritten
from barnabas.server.services import Services
from barnabas.server.shared_job import SharedJob
from barnabas.storage.log import Log


class LogStartOffsets(SharedJob):
    """Writes the checkpoints of all logs (start offsets, and truncations), in one run for all waiting callers."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.loop, services.io_threads, lambda: services.logs.checkpoints.write_log_start_offsets())

    async def keep(self, logs: Iterable[Log]) -> None:
        """Return when the start offsets of these logs are on the disk.

        Raises:
            StorageError: the start offsets of some of these logs could not be written.
        """
        marks = [(log, log.truncator.start_mark) for log in logs]
        try:
            await self.done()
        except StartsUnwritten as error:
            if not error.paths.isdisjoint(str(log.directory.parent) for log, _ in marks):
                raise
        for log, mark in marks:
            log.truncator.start_written(mark)
