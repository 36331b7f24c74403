"""Runs many jobs, as for a topic with thousands of partitions: on the loop a few in each turn, in threads a part at a time.

The jobs wait for the disk, and a file system combines the work of several threads: syncs of two threads share a commit of the journal,
syncs of one thread wait for one commit each. Few jobs run in two of the broker's I/O threads; many jobs get their own threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.errors import StorageError

if TYPE_CHECKING:
    from barnabas.server.services import Services

T = TypeVar("T")

PER_TURN = 100  # items; each takes a few microseconds

THREADS = 4
PART = 25  # jobs handed to a thread at once
FEW = 2 * PART


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """`items` one by one, with a turn of the loop for other work now and then."""
    for count, each in enumerate(items):
        if count % PER_TURN == PER_TURN - 1:
            await asyncio.sleep(0)
        yield each


async def run_in_parts(services: Services, jobs: Sequence[Callable[[], T]], name: str) -> list[T | StorageError]:
    """The result of each job, or the StorageError that it raised; any other exception ends all jobs.

    Args:
        name: the prefix of the names of the threads.
    """
    if not jobs:
        return []
    few = len(jobs) <= FEW
    size = (len(jobs) + 1) // 2 if few else PART
    threads = services.io_threads if few else services.make_executor(THREADS, name)
    try:
        running = [services.loop.run_in_executor(threads, _run, jobs[at : at + size]) for at in range(0, len(jobs), size)]
        done = await asyncio.gather(*running)
    finally:
        if not few:
            await services.loop.run_in_executor(None, threads.shutdown)
    return [each for part in done for each in part]


def _run(jobs: Sequence[Callable[[], T]]) -> list[T | StorageError]:
    done: list[T | StorageError] = []
    for job in jobs:
        try:
            done.append(job())
        except StorageError as error:
            done.append(error)
    return done
