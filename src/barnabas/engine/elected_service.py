"""The life of a service whose instances elect one that works: the engine, and a worker of Connect."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from barnabas.client.election import Election
from barnabas.security.rights import ClusterRights


class Elected(Protocol):
    """The part that works while its instance is the elected one. It has a thread."""

    def start(self) -> None:
        """Begin to work; returns at once."""

    def close(self) -> None:
        """End the work, and wait for that."""


class Closing(Protocol):
    """A part that is closed after the instance has left its group."""

    def close(self) -> None:
        """Release what it holds."""


class ElectedService:
    """Starts the parts of a service, and closes them in the order that lets another instance begin at once.

    Args:
        rights: None if callers do not log in.
        others: closed in this order.
    """

    def __init__(self, elected: Elected, election: Election, rights: ClusterRights | None, *others: Closing) -> None:
        self._elected, self._election, self._rights, self._others = elected, election, rights, others
        self._is_ready = False

    async def start(self) -> None:
        """Take part in the election; returns at once."""
        self._elected.start()
        self._election.start()
        self._is_ready = True

    async def close(self) -> None:
        """End what runs, and leave the group, so that another instance begins at once."""
        if not self._is_ready:
            return
        self._is_ready = False
        with contextlib.suppress(RuntimeError):  # the loop's threads are gone
            await asyncio.to_thread(self._elected.close)
        await self._election.close()
        for each in self._others:
            each.close()
        if self._rights is not None:
            await self._rights.close()

    def is_ready(self) -> bool:
        """Whether it was started, and not closed."""
        return self._is_ready
