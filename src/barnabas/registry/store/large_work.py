"""Threads for large schemas, so that the event loop can answer other requests.

Only the event loop changes the state. A thread only reads it, and tasks of the event loop write the decision of a thread.

A thread shares the interpreter with the event loop in turns of 5 ms. Only the garbage collector blocks longer: a full
collection visits the millions of objects of a large schema, for about a second. So it waits until the schema is freed.
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
    """Turns the garbage collector off while large work runs, for at most a minute."""

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
        threads: the maximum number of threads; further work waits in order.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "large-schemas")

    async def run(self, characters: int, work: Callable[[], Value]) -> Value:
        """The result of `work`; it parses or compares this number of characters of schemas."""
        if characters <= limits.MAX_CHARACTERS_AT_ONCE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, _uncollected, work)

    def close(self) -> None:
        """Start no more work; running work continues to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
