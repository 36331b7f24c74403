"""One timer of the event loop for a coordinator's deadlines: it fires not later than requested, and once for each `fire_by`.

Rules
  1. It may fire early, if the caller moved its deadline to a later time. So the callback checks which deadlines are due.
  2. It does not fire after `close`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.clock import Clock


class LoopTimer:
    """Calls `callback` on the running loop, by the monotonic clock."""

    def __init__(self, clock: Clock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = 0

    def fire_by(self, deadline_ms: int) -> None:
        if self._timer is not None:
            if self._at_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._at_ms = deadline_ms
        delay_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._callback()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
