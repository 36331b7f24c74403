"""Tries a call again while it raises RetriableError: `errors.retry.timeout` and `errors.retry.delay.max.ms`.

An error that a later try may mend is never tolerated: with a registry that is away, all records would be left out. So the task fails
when the time is over, and the engine starts it again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from barnabas.connect.config_def import ConfigDef, Type
from barnabas.connect.errors import RetriableError
from barnabas.engine.reasons import one_line

Answer = TypeVar("Answer")
FIRST_PAUSE_S = 0.2
TELL_S = 5.0  # of tries, before the status says why
TIMEOUT, LONGEST = "errors.retry.timeout", "errors.retry.delay.max.ms"
_CONFIG = ConfigDef().define(TIMEOUT, Type.LONG, 0).define(LONGEST, Type.LONG, 60_000)


class Retries:
    """The settings of a connector about errors that a later try may mend.

    Args:
        config: of the connector.
        stopping: of the task; it ends a pause.
    """

    def __init__(self, config: Mapping[str, str], stopping: threading.Event, log: logging.Logger) -> None:
        given = _CONFIG.parse(config)
        self._timeout_s: float = given[TIMEOUT] / 1000
        self._longest_s: float = max(given[LONGEST], 0) / 1000
        self._stopping, self._log = stopping, log
        self.hindrance: str | None = None  # why a call is tried again, when that lasts

    def tried(self, call: Callable[[], Answer], *, without_end: bool = False) -> Answer:
        """The answer to a call. Raises RetriableError when the time is over, or the task stops.

        Args:
            without_end: try again whatever the timeout is, as Kafka Connect does for writes of a sink.
        """
        pause_s, began_s = min(FIRST_PAUSE_S, self._longest_s), time.monotonic()
        while True:
            try:
                answer = call()
            except RetriableError as error:
                wait_s = pause_s if error.after_s is None else error.after_s
                is_late = time.monotonic() + wait_s - began_s > self._timeout_s
                if not without_end and self._timeout_s >= 0 and is_late:
                    raise
                self._log.warning("event=tried-again pause_s=%.1f reason=%r", wait_s, str(error))
                if self._stopping.wait(wait_s):
                    raise
                if time.monotonic() - began_s >= TELL_S:
                    self.hindrance = one_line(error)
                pause_s = min(2 * pause_s, self._longest_s)
            else:
                self.hindrance = None
                return answer
