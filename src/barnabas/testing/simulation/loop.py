"""Virtual time: one queue of events for every process of the simulated world, and an event loop for each process that feeds it.

Owns the time and the choice of the next event.

Rules
  1. Time stands still while any event can run; then it jumps to the next event. So every `asyncio.sleep`, in this package and
     in the broker, is in virtual time. It takes no real time, and the events after it have the same order in every run of a
     seed.
  2. Events of one moment run in the order in which they were scheduled. Events without a fixed order in the real world (a job
     in a thread, a packet) get a random time from their creator.
  3. A killed process runs nothing more: its events are dropped and its coroutines closed. A frozen process runs them later.

The loop implements the methods that `asyncio` itself needs for its tasks, futures, timeouts and locks, and those that our
server and client call. Every other method raises NotImplementedError, so a use of something real shows at once.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import Context
from itertools import count
from random import Random
from typing import Any, TypeVar, TypeVarTuple

from barnabas.testing.simulation.files import ProcessKilled
from barnabas.testing.simulation.network import Network
from barnabas.testing.simulation.trace import Trace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
START_S = 1_000.0  # start of the monotonic clock
START_MS = 1_750_000_000_000  # start of the wall clock
STEPS_WITHOUT_TIME = 200_000  # more events at one time mean an endless loop


class Stuck(Exception):
    """No event is left, or the events of one moment never end."""


class World:
    """The time and all future events.

    Args:
        seed: determines every choice.
        trace: records the events.
    """

    def __init__(self, seed: int | str, trace: Trace | None = None) -> None:
        self.random = Random(seed)
        self.trace = trace or Trace()
        self.now_s = START_S
        self.wall_offset_ms = START_MS - int(START_S * 1000)
        self.network = Network(self)
        self.epoch = 0  # increases when a broker starts or ends
        self._ready: deque[events.Handle] = deque()
        self._timed: list[tuple[float, int, events.Handle]] = []
        self._order = count()
        self._steps = 0

    def now_ms(self) -> int:
        """The time of the wall clock, in milliseconds."""
        return int(self.now_s * 1000) + self.wall_offset_ms

    def monotonic_ms(self) -> float:
        return self.now_s * 1000

    def note(self, event: str) -> None:
        self.trace.note(self.now_s, event)

    def soon(self, handle: events.Handle) -> None:
        self._ready.append(handle)

    def at(self, when_s: float, handle: events.Handle) -> None:
        heapq.heappush(self._timed, (when_s, next(self._order), handle))

    def step(self) -> VirtualLoop | None:
        """Run the next event. Returns its loop, or None if the event was cancelled or postponed.

        Raises Stuck if there is no event.
        """
        if not self._ready:
            if not self._timed:
                raise Stuck("nothing is going to happen any more")
            when_s, _, handle = heapq.heappop(self._timed)
            if handle._cancelled:
                return None
            if when_s > self.now_s:
                self.now_s, self._steps = when_s, 0
        else:
            handle = self._ready.popleft()
        self._steps += 1
        if self._steps > STEPS_WITHOUT_TIME:
            raise Stuck(f"one moment does not end: {handle!r}")
        loop: VirtualLoop = handle._loop  # type: ignore[attr-defined]  # asyncio's base class uses it too
        if handle._cancelled or loop.dead:
            return None
        if loop.frozen_until_s > self.now_s:
            self.at(loop.frozen_until_s, handle)
            return None
        events._set_running_loop(loop)
        try:
            handle._run()
        finally:
            events._set_running_loop(None)
        return loop

    def run_until(self, is_done: Callable[[], bool], limit_s: float = 3600.0) -> None:
        """Run events until `is_done`; raises Stuck if that takes longer than `limit_s` of virtual time."""
        end_s = self.now_s + limit_s
        while not is_done():
            self.step()
            if self.now_s > end_s:
                raise Stuck(f"waited for {limit_s:.0f} s")


class _Job:
    """Work for a thread. It runs once, at its time or when its executor is shut down."""

    __slots__ = ("args", "function", "future", "is_done", "loop")

    def __init__(self, loop: VirtualLoop, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.loop = loop
        self.function = function
        self.args = args
        self.future: asyncio.Future[Any] = asyncio.Future(loop=loop)
        self.is_done = False

    def run(self) -> None:
        if self.is_done or self.future.cancelled():
            return
        self.is_done = True
        self.loop.world.note(f"{self.loop.name} job {getattr(self.function, '__qualname__', '?')}")
        try:
            result = self.function(*self.args)
        except Exception as error:  # noqa: BLE001 - the code that awaits the job handles the error
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class VirtualExecutor(Executor):
    """An executor without threads: a job is an event with a small delay, so that other events come in between."""

    def __init__(self, workers: int, name: str) -> None:
        self.name = name
        self._free = workers
        self._started: deque[_Job] = deque()
        self._waiting: deque[_Job] = deque()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        raise NotImplementedError("jobs of a simulation go through its loop")

    def start(self, job: _Job) -> None:
        if not self._free:
            self._waiting.append(job)
            return
        self._free -= 1
        self._start(job)

    def _start(self, job: _Job) -> None:
        random = job.loop.world.random
        delay_s = random.choice((0.00002, 0.0002, 0.002)) * (0.5 + random.random())
        self._started.append(job)
        job.loop.call_later(delay_s, self._run, job)

    def _run(self, job: _Job) -> None:
        if not job.is_done and job in self._started:
            self._started.remove(job)
            job.run()
        if self._waiting:
            self._start(self._waiting.popleft())
        else:
            self._free += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Execute all pending jobs before it returns."""
        while self._started:
            self._started.popleft().run()
        while self._waiting:
            self._waiting.popleft().run()


class VirtualLoop(asyncio.AbstractEventLoop):
    """The event loop of one process.

    Args:
        name: its name in traces.
        host: the address of the machine it runs on.
        on_error: called with exceptions that no code caught.
    """

    def __init__(self, world: World, name: str, host: str, on_error: Callable[[str], None]) -> None:
        self.world = world
        self.name = name
        self.host = host
        self.dead = False
        self.frozen_until_s = 0.0  # the process is stopped (SIGSTOP) until this time; its events come late, but in order
        self._on_error = on_error
        self._default_executor = VirtualExecutor(4, f"{name}-default")

    # --- methods that asyncio needs

    def time(self) -> float:
        return self.world.now_s

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> events.Handle:
        handle = events.Handle(callback, args, self, context)
        self.world.soon(handle)
        return handle

    call_soon_threadsafe = call_soon  # the simulation has no threads

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> events.TimerHandle:
        return self.call_at(self.world.now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> events.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        self.world.at(when, handle)
        return handle

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        """asyncio calls this; nothing to do, because `step` skips a cancelled timer when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not self.dead and not isinstance(error, ProcessKilled):
            self._on_error(f"{context.get('message')}: {error!r}")

    # --- threads

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        pool = executor or self._default_executor
        assert isinstance(pool, VirtualExecutor), "a real thread in a simulation"
        job = _Job(self, func, args)
        pool.start(job)
        return job.future

    # --- the network

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        server = self.world.network.listen(self, protocol_factory, host or self.host, port)
        if options.get("start_serving", True):
            await server.start_serving()
        return server

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        return await self.world.network.connect(self, protocol_factory, host, port)

    # --- the end of the process

    def die(self) -> None:
        """The process dies now."""
        self.dead = True
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # a dead process awaits no tasks
            coroutine = task.get_coro()
            # the coroutine may await again while it closes, which raises RuntimeError
            with suppress(RuntimeError, ProcessKilled):
                coroutine.close()


def new_loop(world: World, name: str, host: str, on_error: Callable[[str], None]) -> VirtualLoop:
    """A loop without the methods of asyncio's loop that no process of the simulation calls."""
    return VirtualLoop(world, name, host, on_error)  # type: ignore[abstract]  # the simulation does not call the missing methods
