"""Quotas in the handlers of requests: charge the client, put the throttle time into the answer, and pause the connection."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator
from types import coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.protocol.base_message import Message
from barnabas.server.quotas.connection_mute import mute

if TYPE_CHECKING:
    import asyncio

    from barnabas.quota.budget import Budget
    from barnabas.server.connection import Connection
    from barnabas.server.quotas.client_quotas import ClientQuotas

R = TypeVar("R")


class ChargingBroker(Protocol):
    """The parts of the broker that this module uses."""

    loop: asyncio.AbstractEventLoop
    quotas: ClientQuotas


def charge_produce(broker: ChargingBroker, connection: Connection, budget: Budget, size: int) -> int:
    """Charge for a produce request of `size` bytes. Returns the throttle time in ms for its answer."""
    wait_ms = budget.produced(size, time.perf_counter_ns() - connection.started_ns, broker.quotas.now_ms())
    mute(connection, broker.loop, wait_ms)
    return wait_ms


def charge_response(broker: ChargingBroker, connection: Connection, budget: Budget, response: Message, spent_ns: int) -> None:
    """Charge `spent_ns` for a request. Its answer gets the longer throttle time: for this charge, or from its handler."""
    wait_ms = budget.spent(spent_ns, broker.quotas.now_ms())
    if hasattr(response, "throttle_time_ms"):
        if budget.mutations is not None and response.throttle_time_ms:
            budget.mutations.tell(response.throttle_time_ms, broker.quotas.now_ms())
        response.throttle_time_ms = wait_ms = max(wait_ms, response.throttle_time_ms)
    mute(connection, broker.loop, wait_ms)


class Stopwatch:
    """Measures the time that the loop spends on work that waits in between."""

    __slots__ = ("spent_ns",)

    def __init__(self, spent_ns: int) -> None:
        self.spent_ns = spent_ns

    @coroutine
    def time(self, awaitable: Awaitable[R]) -> Generator[Any, Any, R]:
        """Await `awaitable` with the time measured, and return its result."""
        steps = awaitable.__await__()
        step, given = steps.send, None
        while True:
            began_ns = time.perf_counter_ns()
            try:
                wanted = step(given)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                self.spent_ns += time.perf_counter_ns() - began_ns
            try:
                step, given = steps.send, (yield wanted)
            except BaseException as error:  # noqa: BLE001 - above all a cancelled task: the timed steps must receive it
                step, given = steps.throw, error
