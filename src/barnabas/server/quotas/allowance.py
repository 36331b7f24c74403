"""The bytes that one fetch may have by the quotas of its client.

Rules
  1. A fetch gets its bytes at once if its client has no debt. Otherwise the client pays now and gets an empty answer; the next fetch,
     after the wait, takes the paid bytes. So clients that share a quota get their bytes one after the other.
  2. A fetch gets at most the bytes that a quota allows in a window, or one batch. So other clients of the quota need not wait long.
  3. Bytes that were paid and not sent are given back, for example if the connection was closed or the partitions moved.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from barnabas.quota.budget import Paid, take_all
from barnabas.server.quotas.connection_mute import mute

if TYPE_CHECKING:
    import asyncio

    from barnabas.quota.budget import Budget
    from barnabas.server.connection import Connection
    from barnabas.server.quotas.client_quotas import ClientQuotas


class Allowance:
    """The allowance of one fetch."""

    __slots__ = (
        "_began_ns",
        "_budget",
        "_connection",
        "_loop",
        "_meters",
        "_quotas",
        "_size",
        "_spent_ns",
        "max_bytes",
    )

    def __init__(self, quotas: ClientQuotas, loop: asyncio.AbstractEventLoop, connection: Connection, budget: Budget) -> None:
        self._quotas = quotas
        self._loop = loop
        self._connection = connection
        self._budget = budget
        self._meters = quotas.consumer_meters(budget, connection.peer_host)
        self._size = 0  # bytes that were paid
        self._began_ns: int | None = connection.started_ns
        self._spent_ns = 0
        self.max_bytes = quotas.window_bytes(self._meters)

    def park(self) -> None:
        """Stop the time of the loop while the fetch waits for records."""
        if self._began_ns is not None:
            self._spent_ns += time.perf_counter_ns() - self._began_ns
            self._began_ns = None

    def go_on(self) -> None:
        if self._began_ns is None:
            self._began_ns = time.perf_counter_ns()

    def ask(self, size: int) -> int:
        """Ask to send `size` bytes. Returns 0 if they may be sent, else the throttle time in ms for the empty answer."""
        now_ms = self._quotas.now_ms()
        connection = self._connection
        paid, connection.paid = connection.paid, None
        self._size = size
        if paid is not None and (size == 0 or paid.meters != self._meters):
            paid.give_back(now_ms)
            paid = None
        wait_ms = 0
        if paid is None and size:
            wait_ms = max((meter.throttle_ms(now_ms) for meter in self._meters), default=0)
        take_all(self._meters, size - (0 if paid is None else paid.size), now_ms)
        if wait_ms:
            connection.paid = Paid(self._meters, size)
            for meter in self._meters:
                meter.throttled_ms += wait_ms
            wait_ms = max(wait_ms, self._pay_time(now_ms))
            mute(connection, self._loop, wait_ms)
        return wait_ms

    def settle(self, size: int) -> int:
        """Charge for `size` sent bytes, perhaps fewer than requested. Returns the throttle time in ms for the answer."""
        now_ms = self._quotas.now_ms()
        if size != self._size:
            take_all(self._meters, size - self._size, now_ms)
        wait_ms = self._pay_time(now_ms)
        mute(self._connection, self._loop, wait_ms)
        return wait_ms

    def _pay_time(self, now_ms: float) -> int:
        self.park()
        return self._budget.spent(self._spent_ns, now_ms)
