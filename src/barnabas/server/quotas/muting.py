"""Connections that are not read for a while because their client is over a quota (KIP-219).

The client is told how long, and waits by itself if it is a good one; that it is not read holds for the others too. A wait may be longer
than `connections.max.idle.ms`: then the connection is closed as any other that is silent, as by Kafka, and what its client owes stays owed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.server.connection import Connection

PAUSE = "quota"


class Mute:
    """Of one connection: until when it is not read."""

    __slots__ = ("_connection", "_loop", "_timer", "_until")

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        connection.on_close.append(self.end)

    @property
    def left_ms(self) -> int:
        """For how long it is not read yet."""
        return max(round((self._until - self._loop.time()) * 1000), 0)

    def extend(self, wait_ms: float) -> None:
        """Do not read it for so long from now on, if it is not for longer already."""
        until = self._loop.time() + wait_ms / 1000
        if until > self._until:
            self._until = until
            if self._timer is None:
                self._connection.pause(PAUSE)
            else:
                self._timer.cancel()
            self._timer = self._loop.call_at(until, self.end)

    def end(self) -> None:
        """Read it again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._until = 0.0
            self._connection.resume(PAUSE)


def mute(connection: Connection, loop: asyncio.AbstractEventLoop, wait_ms: int) -> None:
    """Do not read a connection for so long."""
    if connection.closed or wait_ms <= 0:
        return
    if connection.mute is None:
        connection.mute = Mute(connection, loop)
    connection.mute.extend(wait_ms)
