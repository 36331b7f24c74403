"""The bytes that one fetch may have by the quotas of its client.

Rules
  1. Bytes are given while nothing is owed. Else they are paid now and given later: the answer is empty, and the fetch that comes after the
     wait takes what is paid. So those who share a quota come one after the other, each when its turn is.
  2. At most what a quota allows in a window is given at once, or one batch: those who share it have their turn soon.
  3. Bytes that were paid and not taken are given back: the connection was closed, or the partitions moved.
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
    """Of one fetch."""

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
        """The fetch waits for records: that is not the loop's time."""
        if self._began_ns is not None:
            self._spent_ns += time.perf_counter_ns() - self._began_ns
            self._began_ns = None

    def go_on(self) -> None:
        if self._began_ns is None:
            self._began_ns = time.perf_counter_ns()

    def ask(self, size: int) -> int:
        """`size` bytes are there; 0 if they may be sent, else the time to wait that the empty answer tells."""
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
        """`size` bytes are sent, which may be fewer than were asked for; the time to wait that the answer tells."""
        now_ms = self._quotas.now_ms()
        if size != self._size:
            take_all(self._meters, size - self._size, now_ms)
        wait_ms = self._pay_time(now_ms)
        mute(self._connection, self._loop, wait_ms)
        return wait_ms

    def _pay_time(self, now_ms: float) -> int:
        self.park()
        return self._budget.spent(self._spent_ns, now_ms)
