"""Network faults of requests: it delivers them late, on an abandoned connection, or twice.

Owns the requests in transit that no client waits for. A request that a client sent on an abandoned connection may arrive later
than requests that the client sent on the next one. KIP-890 is about this fault.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from random import Random

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.plans import Plan, call
from barnabas.errors import BarnabasError
from barnabas.protocol.base_message import Message
from barnabas.testing.simulation.clients import client_config
from barnabas.testing.simulation.loop import World, new_loop

LATENESS_S = (0.005, 0.1, 1.0, 6.0)  # approximate; the last is longer than the shortest transaction.timeout.ms
PATIENCE_MS = 2_000


class Delivery(Enum):
    """How the network delivers a request."""

    NORMAL = "normal"
    TWICE = "twice"  # at once, and again later
    LATE = "late"  # only later; the sender gets no response


class LateRequests:
    """Delivers late and repeated requests.

    Args:
        share: the share (0 to 1) of late or repeated requests, among those that may be late or repeated.
        report: called with errors that must not happen.
    """

    def __init__(self, world: World, share: float, report: Callable[[str], None]) -> None:
        self._world = world
        self._random = Random(world.random.getrandbits(64))
        self._share = share
        self._loop = new_loop(world, "echoes", "echoes", report)
        self.under_way = 0
        self.delivered = 0

    def draw(self) -> Delivery:
        """Draw the delivery of the next request."""
        if self._random.random() >= self._share:
            return Delivery.NORMAL
        return self._random.choice((Delivery.TWICE, Delivery.LATE))

    def later(self, address: str, request: Message, at_most: int | None) -> None:
        """Deliver `request` after a delay."""
        self.under_way += 1
        delay_s = self._random.choice(LATENESS_S) * (0.5 + self._random.random())
        self._loop.call_later(delay_s, self._begin, address, request, at_most)

    def _begin(self, address: str, request: Message, at_most: int | None) -> None:
        self._loop.create_task(self._deliver(address, request, at_most))

    async def _deliver(self, address: str, request: Message, at_most: int | None) -> None:
        self._world.note(f"echo of {type(request).__name__} to {address}")
        client = AsyncClient(client_config(address, "echo", patience_ms=PATIENCE_MS))

        def ask() -> Plan[object]:
            return (yield from call(request, at_most=at_most))

        with suppress(BarnabasError):  # no client waits for the response
            await client.run(ask())
            self.delivered += 1
        self.under_way -= 1
        await client.close()
