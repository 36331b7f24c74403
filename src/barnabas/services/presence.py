"""Ends the work for a client that goes away. It needs no task of its own, which would cost a short request a tenth of its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


class Gone(Exception):
    """The client closed the connection."""


class Presence:
    """The client of one connection, whose requests are answered one after the other. All methods run in the event loop."""

    def __init__(self) -> None:
        self._is_gone = False
        self._end_work: Callable[..., object] | None = None

    def leave(self) -> None:
        """The connection is lost."""
        self._is_gone = True
        if self._end_work is not None:
            self._end_work()

    async def during(self, work: Awaitable[_T]) -> _T:
        """The result of the work, which is cancelled when the client goes away. Raises Gone after the work has ended."""
        task = asyncio.current_task()
        assert task is not None
        was_gone, self._end_work = self._is_gone, task.cancel
        if was_gone:
            task.cancel()
        try:
            found = await work
        except asyncio.CancelledError:
            if not self._is_gone:
                raise
            task.uncancel()
            raise Gone from None
        finally:
            self._end_work = None
        if self._is_gone:
            raise Gone
        return found
