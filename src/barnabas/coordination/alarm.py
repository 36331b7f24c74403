"""One timer of the loop for whoever has deadlines: it rings no later than asked, and never by itself again.

Rules
  1. It may ring early, for a deadline that was moved later meanwhile; whoever is rung looks what is due.
  2. After `close` it does not ring.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.clock import Clock


class Alarm:
    """Calls `ring` on the running loop, by the steady clock."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = 0

    def ring_by(self, deadline_ms: int) -> None:
        if self._timer is not None:
            if self._at_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._at_ms = deadline_ms
        delay_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._ring()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
