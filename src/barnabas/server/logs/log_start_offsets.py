"""Where logs begin, written down for those who promise that nothing below comes back: DeleteRecords, and followers to their leaders.

Rules
  1. One run serves all who ask while another is under way; a log is told of its start as it was when its caller asked.
  2. A directory that cannot be written to is a failure for the logs that lie there, and for no others.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.errors import StartsUnwritten
from barnabas.server.services import Services
from barnabas.server.shared_job import SharedJob
from barnabas.storage.log import Log


class LogStartOffsets(SharedJob):
    """Writes the checkpoints of all logs' starts, in one run for all who wait."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.loop, services.io_threads, lambda: services.logs.checkpoints.write_log_start_offsets())

    async def keep(self, logs: Iterable[Log]) -> None:
        """Return when the starts of these logs are on the disk.

        Raises:
            StorageError: those of some of them could not be written.
        """
        marks = [(log, log.truncator.start_mark) for log in logs]
        try:
            await self.done()
        except StartsUnwritten as error:
            if not error.paths.isdisjoint(str(log.directory.parent) for log, _ in marks):
                raise
        for log, mark in marks:
            log.truncator.start_written(mark)
