"""How often others had their turn of the loop while something was done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

Answer = TypeVar("Answer")


async def turns_of(asked: Awaitable[Answer]) -> tuple[Answer, int]:
    """The result, and the number of turns that others had meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(count())
    try:
        return await asked, turns
    finally:
        other.cancel()
        with suppress(asyncio.CancelledError):
            await other
