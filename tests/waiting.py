"""How tests wait for what other processes, threads and connections do in their own time: until a condition holds, never for a span of time.

Looks again and again, because what is waited for has nobody to tell; a condition that does not come true fails the test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Answer = TypeVar("Answer")
WITHIN_S = 60.0
LOOK_AGAIN_S = 0.01


def wait_until(condition: Callable[[], object], what: str = "it did not come about", *, within_s: float = WITHIN_S) -> None:
    """Wait in a test of processes or threads; `what` is said where it was in vain."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_AGAIN_S)


async def until(condition: Callable[[], object], what: str = "it did not come about", *, within_s: float = WITHIN_S) -> None:
    """Wait in a test that runs brokers in its own event loop."""

    async def look() -> object:
        return condition()

    await asked_until(look, bool, what, within_s=within_s)


async def asked_until(
    ask: Callable[[], Awaitable[Answer]],
    suffices: Callable[[Answer], object],
    what: str = "no answer sufficed",
    *,
    within_s: float = WITHIN_S,
) -> Answer:
    """The first answer of brokers in the test's own event loop that suffices."""
    deadline = time.monotonic() + within_s
    while not suffices(answer := await ask()):
        assert time.monotonic() < deadline, f"{what}; the last one: {answer}"
        await asyncio.sleep(LOOK_AGAIN_S)
    return answer


def wait_while(
    found: Callable[[], object],
    what: str = "it did not end",
    *,
    within_s: float = WITHIN_S,
    look_again_s: float = LOOK_AGAIN_S,
) -> None:
    """Wait until `found` finds nothing any more, such as a reason that holds something back; the last one is told with `what`."""
    deadline = time.monotonic() + within_s
    while last := found():
        assert time.monotonic() < deadline, f"{what} within {within_s:g} s: {last}"
        time.sleep(look_again_s)


def wait_through(work: Callable[[], Answer], *errors: type[Exception], within_s: float = WITHIN_S) -> Answer:
    """Repeat `work` until it raises none of these errors; the last one is raised where it was in vain."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return work()
        except errors:
            if time.monotonic() > deadline:
                raise
        time.sleep(LOOK_AGAIN_S)
