"""The statement that runs in a session: cancelling it, its deadline, DuckDB's instances that it holds.

Owns one thread for the deadlines of all sessions of an engine. Cancelling sets a flag, which loops look at, and interrupts DuckDB and the
clients of the cluster.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from barnabas.client.interruption import Interruption
from barnabas.errors import BarnabasError
from barnabas.sql.interface import SqlError
from barnabas.sql.states import CANCELLED

LEAST_TICKETS = 64
INTERRUPT_AGAIN_S = 0.05


class Held(Protocol):
    """An instance of DuckDB or a subscription, which a statement holds until its last row."""

    def interrupt(self) -> None:
        """The statement was cancelled."""

    def close(self) -> None:
        """Release it."""


class Deadlines:
    """Calls a function when a time has come, unless it was called off. The thread starts with the first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, list[Callable[[], None]]]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf  # when the thread looks at the heap without being told
        self._most = LEAST_TICKETS
        self._closed = False

    def add(self, seconds: float, call: Callable[[], None]) -> list[Callable[[], None]]:
        """A ticket: clear it to call it off."""
        ticket = [call]
        entry = (time.monotonic() + seconds, next(self._order), ticket)
        with self._changed:
            self._forget_called_off()
            heapq.heappush(self._heap, entry)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="sql-deadlines", daemon=True)
                self._thread.start()
            if entry[0] < self._wakes_at:  # otherwise the thread would wake for nothing with every statement
                self._changed.notify()
        return ticket

    def _forget_called_off(self) -> None:
        """The heap holds few tickets that were called off: those at its top go now, the others before it becomes twice as long."""
        while self._heap and not self._heap[0][2]:
            heapq.heappop(self._heap)
        if len(self._heap) >= self._most:
            self._heap = [each for each in self._heap if each[2]]
            heapq.heapify(self._heap)
            self._most = max(LEAST_TICKETS, 2 * len(self._heap))

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._heap and not self._heap[0][2]:
                    heapq.heappop(self._heap)
                if self._closed:
                    return
                left = self._heap[0][0] - time.monotonic() if self._heap else None
                if left is None or left > 0:
                    self._wakes_at = self._heap[0][0] if self._heap else math.inf
                    self._changed.wait(left)
                    self._wakes_at = -math.inf
                    continue
                ticket = heapq.heappop(self._heap)[2]
            for call in list(ticket):
                call()


class Running:
    """The statement that runs in one session. `cancel` may be called from any thread.

    `interruption` is for the configuration of the session's clients.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._lock = threading.Lock()
        self._leases: list[Held] = []
        self.interruption = Interruption()
        self._interruptions = [self.interruption]
        self._active = self._number = 0
        self._reason: str | None = None
        self._ticket: list[Any] = []
        self.fault: BarnabasError | None = None

    @property
    def is_cancelled(self) -> bool:
        return self._reason is not None

    def start(self, seconds: float) -> None:
        """A statement begins."""
        with self._lock:
            self._active += 1
            if self._active == 1:
                self._reason = self.fault = None
                self.interruption.resume()
                if seconds:
                    self._number += 1
                    number = self._number
                    self._ticket = self._deadlines.add(seconds, lambda: self._expire(number))

    def limit(self, seconds: float) -> None:
        """Let the statement have another time from now on; 0 for no limit."""
        with self._lock:
            self._ticket.clear()
            if seconds:
                self._number += 1
                number = self._number
                self._ticket = self._deadlines.add(seconds, lambda: self._expire(number))

    def stop(self) -> None:
        """It ended. A result that is still streamed keeps it alive by its leases."""
        with self._lock:
            self._active -= 1
            self._maybe_rest()

    def cancel(self, reason: str = "canceling statement due to user request") -> None:
        """End what runs; without effect if nothing does."""
        with self._lock:
            if not self._active and not self._leases:
                return
            self._reason = self._reason or reason
        self._interrupt()

    def _expire(self, number: int) -> None:
        """The time of a statement is over; by now it may have ended, and another may run."""
        if number == self._number:
            self.cancel("canceling statement due to statement timeout")

    def _interrupt(self) -> None:
        """DuckDB forgets an interrupt that comes before its query has begun, so it is given again until the query has ended."""
        with self._lock:
            if self._reason is None:
                return
            leases = list(self._leases)
            for each in self._interruptions:
                each.interrupt()
        for lease in leases:
            lease.interrupt()
        if leases:
            self._deadlines.add(INTERRUPT_AGAIN_S, self._interrupt)

    @contextmanager
    def using(self, shared: Interruption) -> Iterator[None]:
        """While the statement uses clients of the engine: cancelling it ends their operations too."""
        with self._lock:
            self._interruptions.append(shared)
            if self._reason is not None:
                shared.interrupt()
        try:
            yield
        finally:
            with self._lock:
                self._interruptions.remove(shared)
            shared.resume()

    def note(self, fault: BarnabasError) -> None:
        """Take note of a fault within a scan: DuckDB passes on its text alone."""
        self.fault = self.fault or fault

    def check(self) -> None:
        """Raises SqlError if the statement was cancelled."""
        if self._reason is not None:
            raise SqlError(CANCELLED, self._reason)

    def error(self) -> SqlError:
        """Of a statement that was cancelled."""
        return SqlError(CANCELLED, self._reason or "canceling statement due to user request")

    def hold(self, lease: Held) -> None:
        """Take note of an instance."""
        with self._lock:
            self._leases.append(lease)
        if self.is_cancelled:
            self._interrupt()

    def release(self, lease: Held) -> None:
        """Give an instance back."""
        with self._lock:
            if lease in self._leases:
                self._leases.remove(lease)
            self._maybe_rest()
        lease.close()

    def release_all(self) -> None:
        """Give all instances back."""
        for lease in list(self._leases):
            self.release(lease)

    def _maybe_rest(self) -> None:
        if not self._active and not self._leases:
            self._ticket.clear()
