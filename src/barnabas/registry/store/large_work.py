"""Threads for large schemas, so that the event loop answers others meanwhile.

The event loop alone changes the state. A thread only reads it, and a decision that was made in a thread is written by the loop's tasks.

A thread shares the interpreter with the event loop in turns of 5 ms. Only the garbage collector takes longer: a full collection visits
the millions of objects of a large schema at once, for about a second. So it waits until the schema is forgotten again.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from barnabas import limits

MOST_S = 60.0  # the longest time without a garbage collection
Value = TypeVar("Value")


class _Collector:
    """The garbage collector, off while large work runs, but for a minute at most."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._until = 0.0

    def stop(self) -> None:
        with self._lock:
            if not self._running and gc.isenabled():
                self._until = time.monotonic() + MOST_S
                gc.disable()
            self._running += 1

    def go_on(self) -> None:
        with self._lock:
            self._running -= 1
            if self._until and (not self._running or time.monotonic() > self._until):
                self._until = 0.0
                gc.enable()


_collector = _Collector()


def _uncollected(work: Callable[[], Value]) -> Value:
    _collector.stop()
    try:
        return work()
    finally:
        _collector.go_on()


class LargeWork:
    """Runs small work at once, and large work in threads of its own.

    Args:
        threads: how many run at the same time; further work waits in order.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "large-schemas")

    async def run(self, characters: int, work: Callable[[], Value]) -> Value:
        """The result of `work`, which parses or compares so many characters of schemas."""
        if characters <= limits.MAX_CHARACTERS_AT_ONCE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, _uncollected, work)

    def close(self) -> None:
        """Start nothing more; work that runs goes on to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
