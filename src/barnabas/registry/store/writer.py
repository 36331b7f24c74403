"""Turns commands into writes, several at once.

Waiting commands are decided together, in the state of the last replayed record, and written with one request. If a decision
could depend on an earlier command in the same write, the command waits for the next write. So each decision sees everything
that was written before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from functools import partial
from typing import Any, NamedTuple

from barnabas import limits
from barnabas.registry.core import errors, records
from barnabas.registry.core.commands import Command, Outcome
from barnabas.registry.core.records import Record
from barnabas.registry.core.registry import Registry
from barnabas.registry.store.interface import Fenced, Store, StoreFailed, TooLarge
from barnabas.registry.store.large_work import LargeWork
from barnabas.web.routing import HttpError

logger = logging.getLogger(__name__)
BATCH_BYTES = 256 * 1024  # bytes of records in one write; a larger command gets its own write


class NotTheWriter(Exception):
    """Another registry is the writer, or none is yet."""


class _Waiting(NamedTuple):
    command: Command
    done: asyncio.Future[Any]


class _Batch:
    """Commands that are written together."""

    def __init__(self) -> None:
        self.members: list[tuple[_Waiting, Outcome]] = []
        self.records: list[Record] = []
        self.touched: set[object] = set()
        self.reserved: dict[str, int] = {}
        self.size = 0

    def takes(self, outcome: Outcome, size: int) -> bool:
        """Whether the outcome is still right together with the others in the batch."""
        if not self.members:
            return True
        if outcome.touched is None or None in self.touched or self.size + size > BATCH_BYTES:
            return False
        return not (outcome.touched & self.touched)

    def add(self, waiting: _Waiting, outcome: Outcome, size: int) -> None:
        """Add a command."""
        self.members.append((waiting, outcome))
        self.records += outcome.records
        self.touched |= {None} if outcome.touched is None else outcome.touched
        self.size += size
        if outcome.new_id >= 0:
            self.reserved[outcome.context] = outcome.new_id


class Writer:
    """Decides commands and writes their records, while this registry is the writer."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry = registry
        self._store = store
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._large = LargeWork(1)
        self.is_writer = False
        self.writes = 0

    async def take_over(self) -> None:
        """Become the writer. Raises StoreFailed."""
        await self._store.become_writer()
        self.is_writer = True
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def step_down(self) -> None:
        """Stop writing; waiting commands are refused."""
        self.is_writer = False
        while self._waiting:
            _fail(self._waiting.popleft().done, NotTheWriter())

    async def submit(self, command: Command) -> Any:
        """The answer to a command, after its records were replayed.

        Raises:
            NotTheWriter: nothing was done.
            HttpError: the command is refused, or the write failed.
        """
        if not self.is_writer:
            raise NotTheWriter
        if len(self._waiting) >= limits.MAX_WAITING_REGISTRATIONS:
            raise HttpError(429, "Too many requests wait for the writer", 42901)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(command, done))
        self._wake.set()
        return await done

    async def close(self) -> None:
        """Stop; waiting commands are refused."""
        self.step_down()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._large.close()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = await self._decide()
                if batch.members:
                    await self._write(batch)
                else:
                    await asyncio.sleep(0)

    async def _decide(self) -> _Batch:
        batch, later = _Batch(), deque[_Waiting]()
        while self._waiting and None not in batch.touched:
            waiting = self._waiting.popleft()
            if waiting.done.done():
                continue
            try:
                handle = partial(self._registry.handle, waiting.command, batch.reserved)
                outcome = await self._large.run(self._registry.characters_of(waiting.command), handle)
            except HttpError as error:
                _fail(waiting.done, error)
                continue
            except asyncio.CancelledError:
                _fail(waiting.done, NotTheWriter())
                raise
            except Exception as error:  # an error in one command must not stop the writer
                logger.exception("event=registry-command-failed command=%s", type(waiting.command).__name__)
                _fail(waiting.done, errors.store_failed(f"Error while handling the request: {type(error).__name__}"))
                continue
            if not outcome.records:
                waiting.done.set_result(outcome.answer)
                continue
            size = sum(len(key) + len(value or b"") for key, value in map(records.encode, outcome.records))
            if batch.takes(outcome, size):
                batch.add(waiting, outcome, size)
                continue
            later.append(waiting)
            if outcome.touched is None or batch.size + size > BATCH_BYTES:
                break
            batch.touched |= outcome.touched  # later commands on the same subject must not overtake this one
        self._waiting.extendleft(reversed(later))
        return batch

    async def _write(self, batch: _Batch) -> None:
        failure: Exception | None = None
        try:
            await self._store.append(batch.records)
            self.writes += 1
        except TooLarge:
            failure = errors.schema_too_large()
        except Fenced:
            logger.info("event=registry-writer-fenced")
            failure = NotTheWriter()
            self.step_down()
        except StoreFailed as error:
            logger.warning("event=registry-write-failed reason=%r", str(error))
            failure = errors.timed_out("Register operation timed out")
            await self._recover()
        for waiting, outcome in batch.members:
            if failure is not None:
                _fail(waiting.done, failure)
            elif not waiting.done.done():
                waiting.done.set_result(outcome.answer)

    async def _recover(self) -> None:
        """After a write with an unknown outcome: fence it, and read whether it was appended."""
        try:
            await self._store.become_writer()
        except StoreFailed as error:
            logger.warning("event=registry-writer-lost reason=%r", str(error))
            self.step_down()


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
