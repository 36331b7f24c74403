"""Keeps Python's garbage collector from visiting long-lived objects.

A full collection over the logs of 5,000 partitions takes 25 to 75 ms, and stops everything else in the process for this time. Logs and
partitions are in no cycle. Reference counts free all their objects when the topic is deleted, so the collector need not know them.

Ugly: the collector can only freeze all present objects, not some. If garbage cycles exist at that moment (a connection, a failed task),
they are never collected. So the broker freezes only when it has twice as many logs as ever before: at most a dozen times.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 500  # logs; with more, a collection stops the loop for over 10 ms


class FrozenLogs:
    """The tuning of one broker."""

    def __init__(self) -> None:
        self._most = MANY // 2  # number of logs at the last freeze

    @contextmanager
    def making(self, total: int) -> Iterator[None]:
        """Make logs, up to `total` of them. If `total` is much larger than ever before, pause the collector during this, and then freeze
        the logs.
        """
        if total < 2 * self._most or not gc.isenabled():
            yield
            return
        self._most = total
        gc.collect()  # `freeze` would also keep the garbage that exists now
        gc.disable()
        try:
            yield
            gc.freeze()
        finally:
            gc.enable()
