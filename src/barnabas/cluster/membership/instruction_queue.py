"""A queue of instructions from the metadata to the replicas: executed in order, one run at a time.

The metadata must not wait for disks: a controller that creates a thousand logs must still elect leaders. So a task of its own
executes the queue, and one run takes all waiting instructions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.cluster.membership.commands import Apply
from barnabas.cluster.planning.instructions import Instruction

logger = logging.getLogger(__name__)


class InstructionQueue:
    """A queue with one reader.

    Args:
        on_idle: called each time when all instructions were executed.
    """

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self._waiting: list[Instruction] = []
        self._apply: Apply | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether all instructions were executed."""
        return not self._waiting and self._task is None

    def start(self, apply: Apply) -> None:
        """Start executing instructions."""
        self._apply = apply
        self._begin()

    def hand(self, instructions: Sequence[Instruction]) -> None:
        self._waiting += instructions
        self._begin()

    async def done(self) -> None:
        """Wait until all instructions so far were executed."""
        while self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Finish the current run."""
        self._apply = None
        await self.done()

    def _begin(self) -> None:
        if self._task is None and self._waiting and self._apply is not None:
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting and self._apply is not None:
                run, self._waiting = self._waiting, []
                try:
                    await self._apply(run)
                except Exception:
                    logger.exception("event=instructions-failed count=%d", len(run))
        finally:
            self._task = None
            self._on_idle()
