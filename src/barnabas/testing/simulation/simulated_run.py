"""The base of every simulated run: a world, running events until a condition, and a verdict at the end."""

from __future__ import annotations

import asyncio
import gc
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import TypeVar

from msgspec import Struct, field

from barnabas.testing.simulation.history import Violation
from barnabas.testing.simulation.logged_errors import LoggedErrors
from barnabas.testing.simulation.loop import Stuck, VirtualLoop, World, new_loop
from barnabas.testing.simulation.trace import Trace

R = TypeVar("R")
FINISH_LIMIT_S = 60.0


class Verdict(Struct):
    """The result of a run; `failure` is None if nothing was wrong."""

    seed: int
    scenario: str
    checksum: int
    events: int
    failure: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


class SimulatedRun(ABC):
    """One run.

    Args:
        seed: determines every choice.
        echo: print the events.
    """

    name: str

    def __init__(self, seed: int, *, echo: bool = False) -> None:
        self.seed = seed
        self.world = World(seed, Trace(echo=echo))
        self.logged_errors = LoggedErrors()
        self.counts: dict[str, int] = {}
        self.random = Random(self.world.random.getrandbits(64))
        self._problems: list[str] = []
        self._failed: BaseException | None = None
        self._working = 0

    def run(self) -> Verdict:
        """Run until all work is done or something is wrong."""
        logger = logging.getLogger("barnabas")
        logger.addHandler(self.logged_errors)
        failure = None
        was_collecting = gc.isenabled()
        gc.disable()  # a run is short and creates few reference cycles; collection would take 20% of its time
        try:
            self._main()
        except Exception as error:  # noqa: BLE001 - any error in a run is its verdict
            failure = f"{type(error).__name__}: {error}"
        finally:
            logger.removeHandler(self.logged_errors)
            self._end()
            if was_collecting:
                gc.enable()
        world = self.world
        return Verdict(
            self.seed,
            self.name,
            world.trace.checksum,
            world.trace.count,
            failure,
            self.counts,
            list(world.trace.last) if failure else [],
        )

    @abstractmethod
    def _main(self) -> None: ...

    @abstractmethod
    def _end(self) -> None:
        """End everything that still runs."""

    # --- driving the loop

    def _work(self, tasks: list[asyncio.Task[None]], limit_s: float) -> None:
        """Run events until all `tasks` are done; an exception of a task ends the run."""
        self._working = len(tasks)
        for task in tasks:
            task.add_done_callback(self._work_done)
        self._drive(lambda: not self._working, limit_s)
        for task in tasks:
            task.result()

    def _join_work(self, task: asyncio.Task[None]) -> None:
        """Add a task that `_work` waits for; called by running tasks."""
        self._working += 1
        task.add_done_callback(self._work_done)

    def _work_done(self, task: asyncio.Task[None]) -> None:
        self._working -= 1
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed = self._failed or error

    def _finish(self, task: asyncio.Task[R], limit_s: float = FINISH_LIMIT_S) -> R:
        self._drive(task.done, limit_s)
        return task.result()

    def _drive(self, is_done: Callable[[], bool], limit_s: float) -> None:
        world = self.world
        end_s = world.now_s + limit_s
        while not is_done():
            self._after(world.step())
            if self._failed is not None:
                raise self._failed
            if self._problems or self.logged_errors.unexcused:
                raise Violation(f"the broker met a fault of its own: {(self._problems + self.logged_errors.unexcused)[0]}")
            if world.now_s > end_s:
                raise Stuck(f"not done after {limit_s:.0f} s")

    def _after(self, loop: VirtualLoop | None) -> None:  # noqa: B027 - most runs check nothing after an event
        """Called after each event with its loop; None if no event ran."""

    async def elsewhere(self, task: asyncio.Task[R]) -> R:
        """Wait for a task of another process."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        task.add_done_callback(lambda _: loop.call_soon(done.set_result, None))
        await done
        return task.result()

    def _loop(self, name: str, host: str = "") -> VirtualLoop:
        return new_loop(self.world, name, host or name, self._report)

    def _report(self, problem: str) -> None:
        self._problems.append(problem)
