"""The work for a client ends when the client goes away, and nothing else ends it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from barnabas.services.presence import Gone, Presence


class Work:
    """Waits until it is let go, and notes how it ended."""

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()
        self.ends: list[str] = []

    async def run(self) -> str:
        self.begun.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")
        return "result"


async def test_work_that_ends_gives_its_result() -> None:
    work, presence = Work(), Presence()
    work.released.set()
    assert await presence.during(work.run()) == "result"
    presence.leave()


async def test_a_client_that_goes_away_cancels_the_work() -> None:
    work, presence = Work(), Presence()
    task = asyncio.create_task(presence.during(work.run()))
    await work.begun.wait()
    presence.leave()
    with pytest.raises(Gone):
        await task
    assert work.ends == ["cancelled"]
    assert not task.cancelling()


async def test_work_for_a_client_that_has_gone_ends_at_its_first_wait() -> None:
    work, presence = Work(), Presence()
    presence.leave()
    with pytest.raises(Gone):
        await asyncio.create_task(presence.during(work.run()))
    assert work.ends == ["cancelled"]


async def test_a_client_that_goes_away_while_the_work_ends_gets_nothing() -> None:
    presence = Presence()

    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            presence.leave()
            await asyncio.sleep(0)
        return "result"

    with pytest.raises(Gone):
        await asyncio.create_task(presence.during(stubborn()))


async def test_a_time_limit_and_another_cancellation_keep_their_meaning() -> None:
    work, presence = Work(), Presence()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await presence.during(work.run())
    task = asyncio.create_task(presence.during(work.run()))
    work.begun.clear()
    await work.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
