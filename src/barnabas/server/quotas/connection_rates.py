"""Connections that come too fast: over `max.connection.creation.rate` they wait, over the quota of their address they are closed.

The broker does not read from them during the wait. A connection that will be closed waits at most a window, as in Kafka: this slows down
clients that try again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas import limits
from barnabas.config.sasl import setting
from barnabas.quota.connections import AddressRates, ConnectionRate
from barnabas.quota.entities import MAX_INT
from barnabas.quota.meters import Span

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.connection import Connection
    from barnabas.server.quotas.client_quotas import ClientQuotas
    from barnabas.server.services import Services

KEY = "max.connection.creation.rate"
PAUSE = "rate"
logger = logging.getLogger(__name__)


class ConnectionRates:
    """The rates of connections of one broker."""

    def __init__(self, services: Services, quotas: ClientQuotas) -> None:
        config = services.config
        self._services = services
        self._quotas = quotas
        self._span = Span(config.quota_window_num, config.quota_window_size_seconds)
        self._addresses = AddressRates(self._span, limits.MAX_RATED_ADDRESSES)
        self._of_broker: ConnectionRate | None = None
        self._of_listeners: dict[str, ConnectionRate] = {}
        self._protected = ""  # the listener to which the rate of the whole broker does not apply
        self._waiting = 0
        self.refused = 0  # because of the quota of their address
        self.delayed = 0
        self.update_config(config)

    def update_config(self, config: BrokerConfig) -> None:
        self._of_broker = self._changed(self._of_broker, config.max_connection_creation_rate)
        found = {}
        for endpoint in config.listener_endpoints:
            own = setting(config, KEY, endpoint.listener)
            assert isinstance(own, int)
            is_own = f"listener.name.{endpoint.listener.lower()}.{KEY}" in config.texts
            rate = self._changed(self._of_listeners.get(endpoint.listener), own if is_own else MAX_INT)
            if rate is not None:
                found[endpoint.listener] = rate
        self._of_listeners = found
        name = (config.inter_broker_listener_name or "").upper()
        self._protected = name if len(config.listener_endpoints) > 1 else ""

    def _changed(self, rate: ConnectionRate | None, per_second: int) -> ConnectionRate | None:
        if per_second == MAX_INT:
            return None
        if rate is None:
            return ConnectionRate(max(per_second, 1), self._span)
        rate.per_second = max(per_second, 1)  # with 0, nobody could connect to set another rate
        return rate

    def open(self, connection: Connection) -> str | None:
        """Accept a connection, delay it, or close it after a wait. Returns a reason to close it at once, or None."""
        table = self._quotas.table
        if not (table.has_addresses or self._of_listeners or self._of_broker is not None):
            return None
        now_ms = self._services.clock.monotonic_ms()
        allowed = table.connection_rate(connection.peer_host)
        if allowed is not None:
            wait_ms = self._addresses.wait_ms(connection.peer_host, allowed, now_ms)
            if wait_ms:
                self.refused += 1
                logger.debug("event=connection-refused peer=%s reason='its address is over its rate'", connection.peer)
                return self._hold(connection, min(wait_ms, self._span.window_s * 1000), is_refused=True)
        rates = [self._of_listeners.get(connection.listener)]
        if connection.listener != self._protected:
            rates.append(self._of_broker)
        wait_ms = max(rate.enter(now_ms) for rate in rates if rate is not None) if any(rates) else 0
        self.delayed += wait_ms > 0
        return self._hold(connection, wait_ms, is_refused=False) if wait_ms else None

    def _hold(self, connection: Connection, wait_ms: int, *, is_refused: bool) -> str | None:
        """Pause a connection for `wait_ms`, and then close it if it `is_refused`. Returns a reason to close it at once, or None."""
        if self._waiting >= limits.MAX_WAITING_CONNECTIONS:
            return f"more than {limits.MAX_WAITING_CONNECTIONS} connections wait for their rate"
        self._waiting += 1
        connection.pause(PAUSE)

        def end() -> None:
            if is_refused:
                connection.close()
            else:
                connection.on_close.remove(leave)
                leave()
                connection.resume(PAUSE)

        def leave() -> None:
            timer.cancel()
            self._waiting -= 1

        timer = self._services.loop.call_later(wait_ms / 1000, end)
        connection.on_close.append(leave)
        return None
