"""Pauses connections whose client is over a quota: the broker does not read from them (KIP-219).

A client that reconnects keeps its debt: on a connection, the first request that its quota pays for waits until the earlier debt is paid
(`delay_over_quota`). From then on the connection waits after its answers, like all others.

The answer tells the client the wait, and a good client waits by itself. If a client does not wait, the broker still stops reading from it.
A wait may be longer than `connections.max.idle.ms`: then the broker closes the connection like any silent one, as Kafka does, and the
client keeps its debt.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.server.quotas.mutations import is_served_anyway

if TYPE_CHECKING:
    from barnabas.quota.budget import Budget
    from barnabas.server.connection import Connection
    from barnabas.server.quotas.client_quotas import ClientQuotas

PAUSE = "quota"
PRODUCES, CHANGES, ANY = "produces", "changes", "any"  # kinds of requests, by the quotas that pay for them


class MutingBroker(Protocol):
    """The parts of the broker that this module uses."""

    loop: asyncio.AbstractEventLoop
    quotas: ClientQuotas


class Mute:
    """The pause of one connection."""

    __slots__ = ("_connection", "_loop", "_timer", "_until")

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        connection.on_close.append(self.end)

    @property
    def left_ms(self) -> int:
        """The rest of the pause in ms."""
        return max(round((self._until - self._loop.time()) * 1000), 0)

    def extend(self, wait_ms: float) -> None:
        """Pause for `wait_ms` from now on, unless the current pause is longer."""
        until = self._loop.time() + wait_ms / 1000
        if until > self._until:
            self._until = until
            if self._timer is None:
                self._connection.pause(PAUSE)
            else:
                self._timer.cancel()
            self._timer = self._loop.call_at(until, self.end)

    def end(self) -> None:
        """End the pause."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._until = 0.0
            self._connection.resume(PAUSE)


def mute(connection: Connection, loop: asyncio.AbstractEventLoop, wait_ms: int) -> None:
    """Pause a connection for `wait_ms`."""
    if connection.closed or wait_ms <= 0:
        return
    if connection.mute is None:
        connection.mute = Mute(connection, loop)
    connection.mute.extend(wait_ms)


def delay_over_quota(broker: MutingBroker, connection: Connection, budget: Budget, api_key: int, version: int) -> bool:
    """Whether the current request is the first of its kind on its connection and must wait because of its client's debt."""
    kind = PRODUCES if api_key == ApiKey.PRODUCE else CHANGES if is_served_anyway(api_key, version) else ANY
    if kind in connection.is_asked:
        return False
    connection.is_asked.add(kind)
    meters = {PRODUCES: budget.producer, CHANGES: budget.mutations, ANY: None}
    now_ms = broker.quotas.now_ms()
    wait_ms = max((meter.wait_ms(now_ms) for meter in (budget.request, meters[kind]) if meter is not None), default=0)
    if wait_ms <= 0:
        return False
    mute(connection, broker.loop, wait_ms)
    connection.put_off(PAUSE)
    return True
