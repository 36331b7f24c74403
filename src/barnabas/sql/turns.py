"""Turns of sessions at something that they share and that asks the cluster.

A turn may last until the cluster's client gives up. Each session that waits for its own turn would then wait as long again, one after
another. So all that waited meanwhile get the failure of the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.client.errors import ConnectionFailed, TimedOut
from barnabas.sql.running import Running

LOOK_S = 0.05  # between two looks whether the statement was cancelled while it waits


class Turns:
    """A lock that a cancelled statement stops waiting for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed_at = -1.0
        self._failure: ConnectionFailed | TimedOut | None = None

    @contextmanager
    def turn(self, running: Running) -> Iterator[None]:
        """Hold the lock. Raises SqlError if the statement was cancelled, ClientError if the cluster gave no answer meanwhile."""
        began = time.monotonic()
        while not self._lock.acquire(timeout=LOOK_S):
            running.check()
        try:
            if self._failure is not None and self._failed_at >= began:
                raise self._failure
            self._failure = None
            yield
        except (ConnectionFailed, TimedOut) as error:
            if error is not self._failure:
                self._failed_at, self._failure = time.monotonic(), error
            raise
        finally:
            self._lock.release()
