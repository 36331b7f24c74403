"""The life of a supervised process: when it starts, when it ends, and when it starts again. No I/O.

Rules
  1. A process that is wanted starts. One that is not wanted any more is told to end, and killed if it has not ended in time.
  2. A process that ends by itself starts again after a pause. The pause doubles with each failure in a row, up to a limit.
  3. A process that has run for long has not failed in a row.
"""

from __future__ import annotations

import math
from enum import Enum


class Phase(Enum):
    """The present part of a process' life."""

    OFF = "off"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    WAITING = "waiting"  # for the next try


class Action(Enum):
    """A task of the owner of the process."""

    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"


class Life:
    """Of one process. Times are seconds of one clock.

    Args:
        first_pause_s, most_pause_s: before the process starts again.
        long_run_s: see rule 3.
        stop_s: after this time, a process that was told to end is killed.
    """

    def __init__(
        self, *, first_pause_s: float = 1.0, most_pause_s: float = 60.0, long_run_s: float = 60.0, stop_s: float = 15.0
    ) -> None:
        self._first_pause_s, self._most_pause_s, self._long_run_s, self._stop_s = first_pause_s, most_pause_s, long_run_s, stop_s
        self.phase = Phase.OFF
        self.tries = 0  # failures in a row
        self.reason: str | None = None  # of the last failure; None after the process was ready
        self.next_try_s = math.inf  # only while it waits
        self.began_s = -math.inf
        self._kill_at_s = math.inf

    @property
    def is_there(self) -> bool:
        """Whether there is a process."""
        return self.phase in (Phase.STARTING, Phase.RUNNING, Phase.ENDING)

    def tick(self, now_s: float, *, wanted: bool) -> Action | None:
        """Time has passed."""
        if self.phase in (Phase.STARTING, Phase.RUNNING):
            if not wanted:
                self.phase, self._kill_at_s = Phase.ENDING, now_s + self._stop_s
                return Action.TERMINATE
            return None
        if self.phase is Phase.ENDING:
            if now_s >= self._kill_at_s:
                self._kill_at_s = math.inf
                return Action.KILL
            return None
        if not wanted:
            self.forget()
            return None
        if self.phase is Phase.WAITING and now_s < self.next_try_s:
            return None
        self.phase, self.began_s, self.next_try_s = Phase.STARTING, now_s, math.inf
        return Action.START

    def ready(self) -> None:
        """The process says that it works."""
        if self.phase is Phase.STARTING:
            self.phase, self.reason = Phase.RUNNING, None

    def ended(self, now_s: float, reason: str | None) -> None:
        """The process is gone.

        Args:
            reason: why, if it failed; None if it did all of its work.
        """
        if self.phase is Phase.ENDING or reason is None:
            self.forget()
            return
        if self.phase is Phase.RUNNING and now_s - self.began_s >= self._long_run_s:
            self.tries = 0
        pause_s = min(self._first_pause_s * 2 ** min(self.tries, 30), self._most_pause_s)
        self.tries += 1
        self.phase, self.reason, self.next_try_s = Phase.WAITING, reason, now_s + pause_s

    def forget(self) -> None:
        """There is no process, and what was before does not count."""
        self.phase, self.tries, self.reason, self.next_try_s = Phase.OFF, 0, None, math.inf
