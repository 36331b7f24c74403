"""Large work runs in threads; the loop answers meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading

from barnabas import limits
from barnabas.registry.store.large_work import LargeWork


async def test_small_work_runs_on_the_loop_and_large_work_beside_it() -> None:
    large = LargeWork(1)
    try:
        here = threading.get_ident()
        assert await large.run(limits.MAX_CHARACTERS_AT_ONCE, threading.get_ident) == here
        assert await large.run(limits.MAX_CHARACTERS_AT_ONCE + 1, threading.get_ident) != here
    finally:
        large.close()


async def test_no_more_large_work_runs_at_once_than_there_are_threads() -> None:
    threads = limits.MAX_LARGE_REQUESTS_AT_ONCE
    large = LargeWork(threads)
    go_on, lock, running, most = threading.Event(), threading.Lock(), 0, 0
    all_busy = threading.Event()

    def work() -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == threads:
                all_busy.set()
        assert not gc.isenabled(), "a full collection would stop the loop"
        go_on.wait(30)
        with lock:
            running -= 1
        return True

    try:
        tasks = [asyncio.ensure_future(large.run(limits.MAX_CHARACTERS_AT_ONCE + 1, work)) for _ in range(3 * threads)]
        assert await asyncio.to_thread(all_busy.wait, 30)
        go_on.set()
        assert all(await asyncio.gather(*tasks))
        assert most == threads
        assert gc.isenabled()
    finally:
        go_on.set()
        large.close()
