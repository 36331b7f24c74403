"""Sessions that wait for the next request of their caller.

A session has connections to the cluster, so that a session for each request would cost more than most statements.

Rules
  1. A session waits only if it is fresh: a request then sees nothing of the requests before it.
  2. It goes to the same caller alone, with the same rights. The host has checked the caller's log-in before. A session has the caller's
     password or token, which it needs for connections.
  3. At most `MAX_SQL_IDLE_SESSIONS` wait, each for at most `SQL_IDLE_SESSION_S`; the one that waits longest goes first.
  4. All methods run in the event loop. Sessions are closed in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from barnabas import limits
from barnabas.sql.interface import Caller, Session


class IdleSessions:
    """Owns the sessions that wait."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Caller, Session]] = []  # the one that waits longest comes first
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, caller: Caller) -> Session | None:
        """A session of this caller, the one that waits shortest; None if none waits."""
        for at in range(len(self._waiting) - 1, -1, -1):
            if self._waiting[at][1] == caller:
                return self._waiting.pop(at)[2]
        return None

    def give(self, caller: Caller, session: Session) -> None:
        """A request has ended well. Its session waits if it is fresh, and is closed otherwise."""
        if self._closed or not session.is_fresh:
            self._close([session])
            return
        loop = asyncio.get_running_loop()
        self._waiting.append((loop.time() + limits.SQL_IDLE_SESSION_S, caller, session))
        if len(self._waiting) > limits.MAX_SQL_IDLE_SESSIONS:
            self._close([self._waiting.pop(0)[2]])
        if self._timer is None:
            self._timer = loop.call_at(self._waiting[0][0], self._expire)

    def _expire(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        late = [each for each in self._waiting if each[0] <= loop.time()]
        self._waiting = self._waiting[len(late) :]
        self._close(session for _, _, session in late)
        if self._waiting:
            self._timer = loop.call_at(self._waiting[0][0], self._expire)

    def _close(self, sessions: Iterable[Session]) -> None:
        for each in sessions:
            task = asyncio.get_running_loop().create_task(asyncio.to_thread(each.close))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all sessions; those that are given later are closed too."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        self._close(session for _, _, session in waiting)
        await asyncio.gather(*self._closing, return_exceptions=True)
