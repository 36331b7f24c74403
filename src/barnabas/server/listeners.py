"""The sockets to which clients connect, and the limits on connections.

`ConnectionLimits` counts all connections, and those of each address (`max.connections`, `max.connections.per.ip` and its overrides).
`close_idle` closes connections that were silent for `connections.max.idle.ms`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.addresses import plain_address
from barnabas.config.listeners import Endpoint, has_tls
from barnabas.config.sasl import setting
from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.server.closing import close_server
from barnabas.server.cluster.peers import inter_broker_endpoint
from barnabas.server.connection import Connection
from barnabas.server.connection_interfaces import Dispatcher
from barnabas.server.tls.buffers import TlsBuffers
from barnabas.server.tls.protocol import TlsProtocol

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.receiver import Receiver
    from barnabas.server.services import Services
    from barnabas.server.tls.listeners import BrokerTls

logger = logging.getLogger(__name__)
MAX_CONNECTIONS = "max.connections"


class ConnectionLimits:
    """Counts connections, and decides whether one more is allowed.

    Args:
        most: the number of connections for which there are descriptors.
    """

    def __init__(self, config: BrokerConfig, most: int) -> None:
        self._descriptors = most
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self.update_config(config)

    def update_config(self, config: BrokerConfig) -> None:
        """Take over changed settings. Existing connections stay open. Raises ConfigError for unreadable overrides; the old ones then stay
        in force.
        """
        self._most = min(config.max_connections, self._descriptors)
        is_set = self._most == config.max_connections
        self._said = f"max.connections={self._most}" if is_set else f"{self._descriptors}, for which there are descriptors"
        self._most_per_ip = config.max_connections_per_ip
        self._of_listeners: dict[str, int] = {}
        for endpoint in config.listener_endpoints:
            own = setting(config, MAX_CONNECTIONS, endpoint.listener)
            if f"listener.name.{endpoint.listener.lower()}.{MAX_CONNECTIONS}" in config.texts and isinstance(own, int):
                self._of_listeners[endpoint.listener] = own
        is_apart = bool(config.zookeeper_connect) and len(config.listener_endpoints) > 1
        self._protected = inter_broker_endpoint(config).listener if is_apart else ""
        self._overrides = parse_overrides(config.max_connections_per_ip_overrides)

    def open(self, host: str, listener: str, total: int) -> str | None:
        """Count a connection. Returns a reason to refuse it, or None.

        Brokers connect to each other on a listener of their own; connections of clients cannot use up its room.
        """
        self._by_host[host] += 1
        self._by_listener[listener] += 1
        most = self._overrides.get(plain_address(host), self._most_per_ip)
        if self._by_host[host] > most:
            return f"more than max.connections.per.ip={most} from {host}"
        own = self._of_listeners.get(listener)
        if own is not None and self._by_listener[listener] > own:
            return f"more than max.connections={own} of the listener {listener}"
        most = self._descriptors if listener == self._protected else self._most
        return f"more than {self._said}" if total > most else None

    def close(self, host: str, listener: str) -> None:
        for counts, name in ((self._by_host, host), (self._by_listener, listener)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]


def parse_overrides(text: str) -> dict[str, int]:
    """Parse `host:count,host:count`, with one spelling for each address.

    Raises:
        ConfigError: the text has another form.
    """
    overrides = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = pair.rpartition(":")
        if not host or not is_number(count):
            raise ConfigError("max.connections.per.ip.overrides", pair, "address:count, several separated by commas")
        overrides[plain_address(host.strip("[]"))] = int(count)
    return overrides


class Listeners:
    """All listening sockets of a broker."""

    def __init__(self, services: Services, tls: BrokerTls, receiver: Receiver, dispatcher: Dispatcher[Connection]) -> None:
        self._services = services
        self._tls = tls
        self._receiver = receiver
        self._dispatcher = dispatcher
        self._loop = services.loop
        self._tls_buffers: TlsBuffers | None = None  # made with the first TLS listener
        self._servers: list[asyncio.Server] = []
        self.bound: dict[str, tuple[str, int]] = {}  # listener name -> host and port

    async def open(self, endpoint: Endpoint) -> None:
        """Bind the address.

        Raises:
            OSError: the address is not available.
        """
        server = await self._loop.create_server(
            self._factory(endpoint),
            endpoint.host or None,
            endpoint.port,
            backlog=self._services.config.socket_listen_backlog_size,
            reuse_address=True,
            start_serving=False,
        )
        self._servers.append(server)
        send_buffer_bytes = self._services.config.socket_send_buffer_bytes
        if send_buffer_bytes >= 0:  # otherwise the system lets the buffer grow to megabytes
            for listening in server.sockets:  # accepted sockets inherit the option
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        host, port = server.sockets[0].getsockname()[:2]
        self.bound[endpoint.listener] = (endpoint.host or host, port)

    def _factory(self, endpoint: Endpoint) -> Callable[[], asyncio.BufferedProtocol]:
        """The factory of protocols for the connections that the endpoint accepts."""

        def connection() -> Connection:
            return Connection(self._dispatcher, self._receiver, endpoint.listener, self._loop)

        if not has_tls(endpoint.protocol):
            return connection
        buffers = self._tls_buffers = self._tls_buffers or TlsBuffers()
        terms = self._tls.of(endpoint.listener)
        return lambda: TlsProtocol(connection(), terms, buffers, self._loop)

    async def serve(self) -> None:
        """Accept connections."""
        for server in self._servers:
            await server.start_serving()

    async def close(self) -> None:
        """Stop accepting connections. After the return, all connections that the loop has accepted have their protocols."""
        for server in self._servers:
            await close_server(self._loop, server)

    async def wait_closed(self) -> None:
        """Wait for the end of the connections too. The caller closes them first."""
        for server in self._servers:
            await server.wait_closed()


def advertise(configured: Endpoint, bound: tuple[str, int], hostname: str) -> Endpoint:
    """The address for clients: the configured one, with the bound port and a host that clients can reach."""
    host = hostname if is_everywhere(configured.host) else configured.host
    return configured._replace(host=host, port=configured.port or bound[1])


def is_everywhere(host: str) -> bool:
    """Whether `host` means all addresses of the machine. Clients cannot connect to such an address."""
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def close_idle(connections: Iterable[Connection], now_s: float, max_idle_ms: int) -> None:
    """Close the connections that have sent no whole request for too long.

    This includes connections from which the broker does not read, because their peers may be gone.
    """
    for connection in [c for c in connections if (now_s - c.last_active) * 1000 > max_idle_ms]:
        logger.info("event=connection-closed peer=%s reason=idle", connection.peer)
        connection.close()
