"""Connections between brokers, against a peer that speaks just enough."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, TimedOut, UnsupportedRequest
from barnabas.cluster.metadata.image import BrokerRegistration, MetadataImage
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.server.closing import close_server
from barnabas.server.cluster.peers import CUT_OFF_S, Peers, address_of, inter_broker_listener
from tests.waiting import until

HEARTBEAT, API_VERSIONS = 12, 18
HOST = "127.0.0.1"
HEADER = struct.Struct(">hhi")


class FakePeer:
    """Answers ApiVersions, and each Heartbeat once `answering` is set."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.received = 0
        self.client_ids: list[str] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            await close_server(asyncio.get_running_loop(), self._server)
            self.hang_up()
            await self._server.wait_closed()
            self._server = None

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
                api, version, correlation_id = HEADER.unpack_from(frame)
                if api == API_VERSIONS:
                    spoken = [ApiVersion(api_key=HEARTBEAT, min_version=0, max_version=3)]
                    self.client_ids.append(frame[10 : 10 + struct.unpack_from(">h", frame, 8)[0]].decode())
                    body = encode(ApiVersionsResponse(api_keys=spoken), version)
                else:
                    self.received += 1
                    await self.answering.wait()
                    body = encode(HeartbeatResponse(error_code=27), version)
                head = struct.pack(">ii", 4 + len(body), correlation_id)
                writer.write(head + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def peered(timeout_ms: int = 10_000) -> AsyncIterator[tuple[FakePeer, Peers, dict[int, tuple[str, int]]]]:
    peer = FakePeer()
    await peer.start()
    addresses = {2: (HOST, peer.port)}
    peers = Peers(addresses.get, ClientConfig((), client_id="broker-1-test", request_timeout_ms=timeout_ms))
    try:
        yield peer, peers, addresses
    finally:
        await peers.close()
        await peer.stop()


def heartbeat() -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


async def test_requests_share_one_connection() -> None:
    async with peered() as (peer, peers, _):
        answers = await asyncio.gather(*(peers.send(2, heartbeat()) for _ in range(5)))
        assert [a.error_code for a in answers] == [27] * 5
        assert peer.connections == 1
        assert peer.client_ids == ["broker-1-test"]


async def test_the_system_ends_a_connection_on_which_nothing_gets_through() -> None:
    async with peered() as (_, peers, _):
        await peers.send(2, heartbeat())
        connection = peers._peers[2].connection
        assert connection is not None
        assert connection._transport is not None
        end = connection._transport.get_extra_info("socket")
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        probes = [
            end.getsockopt(socket.IPPROTO_TCP, each) for each in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        assert probes == [1, 1, CUT_OFF_S - 1]
        assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == CUT_OFF_S * 1000


async def test_a_broker_that_is_not_registered_is_named() -> None:
    async with peered() as (_, peers, _):
        with pytest.raises(ConnectionFailed, match="broker 7: it is not registered"):
            await peers.send(7, heartbeat())


async def test_a_lost_connection_fails_what_is_under_way_and_the_next_request_opens_another() -> None:
    async with peered() as (peer, peers, _):
        await peers.send(2, heartbeat())
        peer.answering.clear()
        waiting = asyncio.ensure_future(peers.send(2, heartbeat()))
        await until(lambda: peer.received >= 2)
        peer.answering.set()
        peer.hang_up()
        with pytest.raises(ConnectionFailed):
            await waiting
        await peers.send(2, heartbeat())
        assert peer.connections == 2


async def test_a_peer_that_moved_is_found_where_it_is() -> None:
    async with peered() as (peer, peers, addresses):
        await peers.send(2, heartbeat())
        other = FakePeer()
        await other.start()
        addresses[2] = (HOST, other.port)
        await peers.send(2, heartbeat())
        assert (peer.connections, other.connections) == (1, 1)
        await other.stop()


async def test_attempts_to_connect_are_spaced() -> None:
    async with peered() as (peer, peers, _):
        await peer.stop()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for _ in range(3):
            with pytest.raises(ConnectionFailed):
                await peers.send(2, heartbeat())
        assert loop.time() - begun >= 0.05 + 0.1  # seconds; the waits before the second and the third attempt
        await peer.start(peer.port)
        assert (await peers.send(2, heartbeat())).error_code == 27


async def test_no_answer_in_time_closes_the_connection() -> None:
    async with peered(timeout_ms=2_000) as (peer, peers, _):
        await peers.send(2, heartbeat())
        peer.answering.clear()
        with pytest.raises(TimedOut):
            await peers.send(2, heartbeat())
        peer.answering.set()
        await peers.send(2, heartbeat())
        assert peer.connections == 2


async def test_a_request_the_peer_does_not_know_is_refused_here() -> None:
    async with peered() as (peer, peers, _):
        with pytest.raises(UnsupportedRequest):
            await peers.send(2, FindCoordinatorRequest(coordinator_keys=["g"]))
        assert peer.received == 0


async def test_closing_fails_what_waits_and_what_comes_later() -> None:
    async with peered() as (peer, peers, _):
        await peers.send(2, heartbeat())
        peer.answering.clear()
        waiting = asyncio.ensure_future(peers.send(2, heartbeat()))
        await until(lambda: peer.received >= 2)
        await peers.close()
        with pytest.raises(ConnectionFailed):
            await waiting
        with pytest.raises(ConnectionFailed, match="closed"):
            await peers.send(2, heartbeat())
        peer.answering.set()


def test_brokers_meet_on_the_listener_that_was_chosen_for_it() -> None:
    endpoints = (Endpoint("OUTSIDE", "a.example", 1, "PLAINTEXT"), Endpoint("PLAINTEXT", "b.example", 2, "PLAINTEXT"))
    image = MetadataImage("c", brokers={3: BrokerRegistration(3, endpoints)})
    default, _ = BrokerConfig.from_properties({})
    assert address_of(image, 3, inter_broker_listener(default)) == ("b.example", 2)
    chosen, _ = BrokerConfig.from_properties({"inter.broker.listener.name": "outside"})
    assert address_of(image, 3, inter_broker_listener(chosen)) == ("a.example", 1)
    assert address_of(image, 3, "INSIDE") == ("a.example", 1)  # broker 3 has no such listener
    assert address_of(image, 4, "PLAINTEXT") is None
