"""Deletes files that no log uses any more after `file.delete.delay.ms`, and at the latest when the broker stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.server.services import report_later
from barnabas.storage.garbage import Garbage, remove_all

if TYPE_CHECKING:
    from barnabas.server.services import Services


class DelayedRemoval:
    """The files of one broker that wait for their removal."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waiting: dict[Garbage, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def remove_later(self, garbage: Garbage, delay_ms: float) -> None:
        self._waiting[garbage] = None
        self._services.loop.call_later(delay_ms / 1000, self._remove, garbage)

    def _remove(self, garbage: Garbage) -> None:
        if garbage in self._waiting:  # otherwise the stop of the broker has removed it
            del self._waiting[garbage]
            services = self._services
            report_later(services.faults, services.loop.run_in_executor(services.io_threads, garbage.remove))

    async def close(self) -> None:
        """Remove all waiting files at once; raises StorageError."""
        waiting = list(self._waiting)
        self._waiting.clear()
        await self._services.loop.run_in_executor(self._services.io_threads, remove_all, waiting)
