"""Connections to the other brokers of the cluster, and requests on them.

Owns one connection for each broker that got a request. Requests are pipelined and answered in order. So requests that wait long at the
other side (a follower's Fetch) have `Peers` of their own.

Rules
  1. Each request looks up the address of its broker (`find`); a connection to an earlier address is closed.
  2. After a failed attempt to connect, the next one to that broker waits: 50 ms, then twice as long each time, up to a second. Requests to
     that broker wait during this time.
  3. A connection without any progress for `CUT_OFF_S` seconds is closed, so that brokers reconnect as soon as the network works again. TCP
     alone would retry in ever longer intervals: after a break of 20 s it needs up to 13 s more.
  4. A request fails as a whole, with a ClientError, and is not sent again, because only its sender knows whether it may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.client.asynchronous import AsyncConnection
from barnabas.client.bearer import CLIENT_ID, CLIENT_SECRET, CONNECT_TIMEOUT, READ_TIMEOUT, SCOPE, URL, source_from
from barnabas.client.config import Address, ClientConfig
from barnabas.client.errors import ClientError, ConnectionFailed
from barnabas.client.kerberos import SERVICE, tickets_from
from barnabas.client.plans import Call
from barnabas.client.sasl import MECHANISMS, Credentials
from barnabas.config.kerberos import kerberos_of
from barnabas.config.listeners import has_tls
from barnabas.config.sasl import GSSAPI, OAUTHBEARER, is_sasl, login_options, setting
from barnabas.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.config.listeners import Endpoint
    from barnabas.protocol.base_message import Message
    from barnabas.server.services import Services

RECONNECT_BACKOFF_MS, RECONNECT_BACKOFF_MAX_MS = 50, 1_000  # Kafka's reconnect.backoff.ms and .max.ms
CUT_OFF_S = 5
BEARER_KEYS = (URL, CLIENT_ID[0], CLIENT_SECRET[0], SCOPE, CONNECT_TIMEOUT, READ_TIMEOUT)
# upper bound of `socket.connection.setup.timeout.ms`: a new attempt sends its SYN at once
CONNECT_MS = 3_000

__all__ = ["ClientError", "Peers", "address_of", "client_config", "peers_of"]


class _Peer:
    """One broker."""

    __slots__ = ("address", "backoff_ms", "connection", "opening", "retry_at_s")

    def __init__(self) -> None:
        self.address: Address | None = None
        self.connection: AsyncConnection | None = None
        self.opening = asyncio.Lock()
        self.backoff_ms = 0
        self.retry_at_s = 0.0


class Peers:
    """Sends requests to other brokers.

    Args:
        find: the current address of a broker for other brokers; None if it is not registered.
        config: the client id and the timeouts; its servers are not used.
    """

    def __init__(self, find: Callable[[int], Address | None], config: ClientConfig) -> None:
        self._find = find
        self._config = config
        self._peers: dict[int, _Peer] = {}
        self._closed = False

    async def send(self, broker_id: int, request: Message, *, at_most: int | None = None) -> Any:
        """Send a request in the newest version that both sides know and that is at most `at_most`. Returns the response.

        Raises:
            ConnectionFailed: the broker is not registered, cannot be reached, or closed the connection.
            TimedOut: no answer in `request_timeout_ms`.
            UnsupportedRequest: no common version.
        """
        connection = await self._connected(broker_id)
        return await connection.request(Call(request, broker_id, at_most))

    def send_at_once(self, broker_id: int, request: Message) -> asyncio.Future[Any] | None:
        """The same as `send`, on the open connection and without a task; None if no connection can take the request now."""
        peer = self._peers.get(broker_id)
        if peer is None or peer.connection is None or self._find(broker_id) != peer.address:
            return None
        return peer.connection.request_at_once(Call(request, broker_id))

    def disconnect(self, broker_id: int) -> None:
        """Close the connection to a broker; requests that wait for answers on it fail."""
        peer = self._peers.pop(broker_id, None)
        if peer is not None and peer.connection is not None:
            peer.connection.close()

    async def close(self) -> None:
        """Close all connections; requests under way fail with ConnectionFailed."""
        self._closed = True
        for broker_id in list(self._peers):
            self.disconnect(broker_id)
        await asyncio.sleep(0)  # the transports report their close

    async def _connected(self, broker_id: int) -> AsyncConnection:
        peer = self._peers.get(broker_id)
        if peer is None:
            peer = self._peers[broker_id] = _Peer()
        usable = self._usable(broker_id, peer)
        if usable is not None:
            return usable
        async with peer.opening:
            usable = self._usable(broker_id, peer)  # another task may have opened it
            if usable is not None:
                return usable
            delay_s = peer.retry_at_s - asyncio.get_running_loop().time()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            return await self._open(broker_id, peer)

    def _usable(self, broker_id: int, peer: _Peer) -> AsyncConnection | None:
        """The open connection to the broker's current address, or None; raises ConnectionFailed if the broker has no address."""
        address = None if self._closed else self._find(broker_id)
        if address is None:
            self.disconnect(broker_id)
            raise ConnectionFailed(f"broker {broker_id}", "closed" if self._closed else "it is not registered")
        if peer.address != address:
            if peer.connection is not None:
                peer.connection.close()
            peer.address, peer.connection, peer.backoff_ms, peer.retry_at_s = address, None, 0, 0.0
        connection = peer.connection
        return connection if connection is not None and connection.lost is None else None

    async def _open(self, broker_id: int, peer: _Peer) -> AsyncConnection:
        address = peer.address
        assert address is not None, "`_usable` was asked before"
        try:
            connection = await AsyncConnection.open(address, self._config)
        except BarnabasError as error:
            peer.backoff_ms = min(max(peer.backoff_ms * 2, RECONNECT_BACKOFF_MS), RECONNECT_BACKOFF_MAX_MS)
            peer.retry_at_s = asyncio.get_running_loop().time() + peer.backoff_ms / 1000
            if isinstance(error, ClientError):
                raise
            raise ConnectionFailed(connection_name(address), str(error)) from error
        if self._closed or self._peers.get(broker_id) is not peer:
            connection.close()
            raise ConnectionFailed(connection.name, "closed")
        connection.end_if_cut_off(CUT_OFF_S)
        peer.connection, peer.backoff_ms, peer.retry_at_s = connection, 0, 0.0
        return connection


def connection_name(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


def inter_broker_listener(config: BrokerConfig) -> str:
    """The name of the listener for connections between brokers: from the settings, or the name of the protocol."""
    return (config.inter_broker_listener_name or config.security_inter_broker_protocol).upper()


def inter_broker_endpoint(config: BrokerConfig) -> Endpoint:
    """The endpoint of this broker for other brokers: the listener of that name, or else its first (see `address_of`)."""
    name = inter_broker_listener(config)
    return next((each for each in config.listener_endpoints if each.listener == name), config.listener_endpoints[0])


def inter_broker_credentials(config: BrokerConfig) -> Credentials | None:
    """The credentials with which this broker logs in to others: user and password of the listener's login context, or a token. None if it
    needs none.

    Raises:
        ConfigError: the mechanism is not supported, or the settings have no user, or no source of tokens.
    """
    endpoint = inter_broker_endpoint(config)
    if not is_sasl(endpoint) or not config.zookeeper_connect:  # a single broker has no other to log in to
        return None
    mechanism = config.sasl_mechanism_inter_broker_protocol
    if mechanism not in MECHANISMS:
        raise ConfigError("sasl.mechanism.inter.broker.protocol", mechanism, f"one of {', '.join(MECHANISMS)}")
    options = login_options(config, mechanism, endpoint.listener) or {}
    if mechanism == GSSAPI:
        # checks the key tab: this broker uses the same one to accept tickets and to get them
        kerberos_of(config, endpoint.listener)
        service = setting(config, SERVICE, endpoint.listener, mechanism)
        return Credentials(mechanism, tickets=tickets_from({**options, **({} if service is None else {SERVICE: str(service)})}))
    if mechanism == OAUTHBEARER:
        said = {name: setting(config, name, endpoint.listener, mechanism) for name in BEARER_KEYS}
        return Credentials(mechanism, tokens=source_from({**options, **{k: str(v) for k, v in said.items() if v is not None}}))
    if not options.get("username") or not options.get("password"):
        key = f"listener.name.{endpoint.listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
        raise ConfigError(key, "[hidden]", "username and password, by which this broker logs in to the others")
    return Credentials(mechanism, options["username"], options["password"])


def address_of(image: MetadataImage, broker_id: int, listener: str) -> Address | None:
    """The address of a broker for other brokers: its `listener`, or its first one if it has no listener of that name."""
    registered = image.brokers.get(broker_id)
    if registered is None or not registered.endpoints:
        return None
    endpoint = registered.endpoint(listener) or registered.endpoints[0]
    return endpoint.host, endpoint.port


def peers_of(
    image: Callable[[], MetadataImage], services: Services, purpose: str, *, request_timeout_ms: int | None = None
) -> Peers:
    """Connections of this broker for one purpose; the client id tells the purpose to the other brokers.

    Args:
        image: returns the current metadata.
        request_timeout_ms: the default is `request.timeout.ms`.
    """
    listener = inter_broker_listener(services.config)
    client = client_config(services, purpose, request_timeout_ms)
    return Peers(lambda broker_id: address_of(image(), broker_id, listener), client)


def client_config(services: Services, purpose: str, request_timeout_ms: int | None = None) -> ClientConfig:
    """The client settings with which this broker connects to others; the default timeout is `request.timeout.ms`."""
    config = services.config
    return ClientConfig(
        (),
        client_id=f"broker-{config.broker_id}-{purpose}",
        request_timeout_ms=config.request_timeout_ms if request_timeout_ms is None else request_timeout_ms,
        socket_connection_setup_timeout_ms=min(config.socket_connection_setup_timeout_ms, CONNECT_MS),
        tls=services.tls.for_peers if has_tls(inter_broker_endpoint(config).protocol) else None,
        credentials=inter_broker_credentials(config),
    )
