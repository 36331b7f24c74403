"""A process that the supervisor keeps: its life, and the child that lives it."""

from __future__ import annotations

import logging
import time

from barnabas.engine.child import Child
from barnabas.engine.life import Action, Life, Phase
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)


class Unit:
    """Starts, ends and restarts one process.

    Args:
        what: its name in log lines.
    """

    def __init__(self, what: str, life: Life | None = None) -> None:
        self.what = what
        self.life = life or Life()
        self.child: Child | None = None
        self.restarts = 0  # starts after a failure
        self.began_ms = 0  # of the process, since the epoch
        self.is_done = False  # it has ended after all of its work

    def spawn(self) -> Child:
        """Start the process. Raises OSError or BarnabasError."""
        raise NotImplementedError

    def became_ready(self, seconds: float) -> None:
        """It works, so long after its start."""

    def has_failed(self, code: int) -> bool:
        """Whether a process that ended by itself must start again."""
        return True

    def reason(self, child: Child, code: int) -> str:
        """Why a process ended by itself, in one line."""
        return child.reason(code)

    def step(self, now_s: float, *, wanted: bool) -> None:
        """Look at the process, and do what its life needs."""
        self._look(now_s)
        action = self.life.tick(now_s, wanted=wanted and not self.is_done)
        if action is Action.START:
            self._start(now_s)
        elif self.child is not None and action is Action.TERMINATE:
            self.child.terminate()
        elif self.child is not None and action is Action.KILL:
            logger.warning("event=engine-process-killed what=%s pid=%d", self.what, self.child.pid)
            self.child.kill()

    def _look(self, now_s: float) -> None:
        child = self.child
        if child is None:
            return
        if self.life.phase is Phase.STARTING and child.is_ready:
            self.life.ready()
            self.became_ready(now_s - self.life.began_s)
        code = child.poll()
        if code is None:
            return
        child.close()
        self.child = None
        self.is_done = not self.has_failed(code)
        reason = None if self.is_done else self.reason(child, code)
        self.life.ended(now_s, reason)
        if self.life.phase is Phase.WAITING:
            logger.warning("event=engine-process-failed what=%s reason=%r", self.what, reason)
        else:
            logger.info("event=engine-process-ended what=%s code=%d", self.what, code)

    def _start(self, now_s: float) -> None:
        self.restarts += self.life.tries > 0
        self.began_ms = int(time.time() * 1000)
        try:
            self.child = self.spawn()
        except (OSError, BarnabasError) as error:
            self.life.ended(now_s, getattr(error, "strerror", None) or str(error))

    def end(self, deadline_s: float) -> None:
        """End the process before this returns; kill it at this time (of `time.monotonic`)."""
        while self.life.is_there and self.child is not None:
            now_s = time.monotonic()
            self.step(now_s, wanted=False)
            if self.child is not None and now_s >= deadline_s:
                self.child.kill()
            time.sleep(0.01)
