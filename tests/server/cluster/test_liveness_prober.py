"""Brokers that are found dead, and brokers that are not: the liveness prober on real sockets.

`tests/cluster/membership/test_deaths.py` covers the consequences.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.client.asynchronous import AsyncConnection
from barnabas.client.config import Address, ClientConfig
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, MetadataImage
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from barnabas.protocol.request_headers import read_request_header
from barnabas.server.answers import encode_answer
from barnabas.server.closing import close_server
from barnabas.server.cluster import liveness_prober
from barnabas.server.cluster.liveness_prober import LivenessProber
from barnabas.server.services import Services

WITHIN_S = 60
SIZE = struct.Struct(">i")
API_VERSIONS, OLDER_SIGN_OF_LIFE, SIGN_OF_LIFE = 18, 27, 63


class News:
    """Something has happened that a test may wait for."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self) -> None:
        self._told.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not condition():
                self._told.clear()
                await self._told.wait()


class Neighbour:
    """A process that listens, as far as that is seen from outside."""

    def __init__(self, news: News) -> None:
        self.news = news
        self.announces: tuple[int, ...] = (API_VERSIONS, OLDER_SIGN_OF_LIFE, SIGN_OF_LIFE)
        self.keys: set[int] = set()  # API keys of the probes received
        self.accepted: list[asyncio.StreamWriter] = []
        self.asked = 0  # number of probes received
        self._going = asyncio.Event()
        self._going.set()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(writer)
        serving = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        self.news.tell()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                frame = await reader.readexactly(*SIZE.unpack(await reader.readexactly(SIZE.size)))
                header = read_request_header(memoryview(frame))
                if header.api_key != API_VERSIONS:
                    self.asked += 1
                    self.keys.add(header.api_key)
                self.news.tell()
                await self._going.wait()
                writer.write(encode_answer(self._answer_to(header.api_key), header))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer_to(self, api_key: int) -> Message:
        if api_key == API_VERSIONS:
            keys = [ApiVersion(api_key=key, min_version=0, max_version=3) for key in self.announces]
            return ApiVersionsResponse(api_keys=keys)
        return BrokerHeartbeatResponse() if api_key == SIGN_OF_LIFE else WriteTxnMarkersResponse()

    def stand_still(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    def hang_up(self) -> None:
        for writer in self.accepted:
            writer.close()

    async def die(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await close_server(asyncio.get_running_loop(), server)
        self.hang_up()

    async def end(self) -> None:
        await self.die()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


class Watched:
    """The member as a liveness prober uses it."""

    def __init__(self, news: News, *brokers: BrokerRegistration) -> None:
        self._news = news
        self.image = MetadataImage("cluster", brokers={broker.broker_id: broker for broker in brokers})
        self.told: list[tuple[int, int]] = []
        self.taken_back: list[tuple[int, int]] = []
        self._changed = asyncio.Event()

    def tell_dead(self, broker_id: int, epoch: int) -> None:
        self.told.append((broker_id, epoch))
        self._news.tell()

    def take_back_dead(self, broker_id: int, epoch: int) -> None:
        self.taken_back.append((broker_id, epoch))
        self._news.tell()

    async def wait_for(self, condition: Callable[[MetadataImage], bool]) -> None:
        while not condition(self.image):
            await self._changed.wait()

    def become(self, *brokers: BrokerRegistration) -> None:
        self.image = MetadataImage("cluster", brokers={broker.broker_id: broker for broker in brokers})
        self._changed.set()
        self._changed = asyncio.Event()

    def watch(self) -> LivenessProber:
        config, _ = BrokerConfig.from_properties({"node.id": "1", "broker.heartbeat.interval.ms": "100"})
        services = SimpleNamespace(config=config, loop=asyncio.get_running_loop())
        return LivenessProber(cast(Services, services), cast(Any, self))


def registered(port: int, epoch: int = 7, state: BrokerState = BrokerState.ACTIVE, broker_id: int = 2) -> BrokerRegistration:
    return BrokerRegistration(broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT"),), epoch=epoch, state=state)


@pytest.fixture
async def neighbour(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Neighbour]:
    monkeypatch.setattr(liveness_prober, "LONGEST_PAUSE_S", 0.02)
    listening = Neighbour(News())
    await listening.listen()
    yield listening
    await listening.end()


@pytest.fixture
async def third(neighbour: Neighbour) -> AsyncIterator[Neighbour]:
    """Without one more nobody hears a majority."""
    listening = Neighbour(neighbour.news)
    await listening.listen()
    yield listening
    await listening.end()


@pytest.fixture
def attempts(neighbour: Neighbour, monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """To connect."""
    made: list[Address] = []

    class Counting(AsyncConnection):
        @classmethod
        async def open(cls, address: Address, config: ClientConfig) -> AsyncConnection:
            made.append(address)
            neighbour.news.tell()
            return await AsyncConnection.open(address, config)

    monkeypatch.setattr(liveness_prober, "AsyncConnection", Counting)
    return made


async def test_who_stands_still_is_told_and_taken_back_when_it_goes_on(neighbour: Neighbour, third: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port), registered(third.port, broker_id=3))
    watching = watched.watch()
    await neighbour.news.until(lambda: neighbour.asked and third.asked)
    neighbour.stand_still()
    await neighbour.news.until(lambda: watched.told)
    asked = third.asked
    await neighbour.news.until(lambda: third.asked > asked + 10)
    assert watched.told == [(2, 7)]
    assert watched.taken_back == []
    neighbour.go_on()
    await neighbour.news.until(lambda: watched.taken_back)
    await watching.close()
    assert watched.told == watched.taken_back == [(2, 7)]


async def test_a_broker_that_does_not_announce_the_request_is_asked_with_one_that_it_knows(
    neighbour: Neighbour, third: Neighbour
) -> None:
    """As while a cluster is upgraded broker by broker: it would close the connection for an API that it does not know."""
    neighbour.announces = (API_VERSIONS, OLDER_SIGN_OF_LIFE)
    watched = Watched(neighbour.news, registered(neighbour.port), registered(third.port, broker_id=3))
    watching = watched.watch()
    await neighbour.news.until(lambda: neighbour.asked > 10 and third.asked > 10)
    await watching.close()
    assert (neighbour.keys, third.keys) == ({OLDER_SIGN_OF_LIFE}, {SIGN_OF_LIFE})
    assert watched.told == []


async def test_a_process_that_is_gone_is_told_once(neighbour: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()
    await neighbour.news.until(lambda: watching.reached)
    await neighbour.die()
    await neighbour.news.until(lambda: watched.told)
    assert watched.told == [(2, 7)]
    assert watched.taken_back == []
    await watching.close()


async def test_who_listens_again_under_the_same_registration_is_not_dead(neighbour: Neighbour, attempts: list[Address]) -> None:
    """A living broker that refused for a moment is not unregistered later, when whoever was told so becomes controller."""
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()

    async def go_and_come(count: int) -> None:
        asked = neighbour.asked
        await neighbour.news.until(lambda: watching.reached and neighbour.asked > asked)
        await neighbour.die()
        await neighbour.news.until(lambda: len(watched.told) == count)
        before = len(attempts)
        await neighbour.news.until(lambda: len(attempts) > before + 2)
        await neighbour.listen()
        await neighbour.news.until(lambda: len(watched.taken_back) == count)

    await go_and_come(1)
    await go_and_come(2)
    assert watched.told == watched.taken_back == [(2, 7), (2, 7)]
    await watching.close()


async def test_a_connection_that_is_closed_says_nothing(neighbour: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()

    async def hang_up(count: int) -> None:
        await neighbour.news.until(lambda: len(neighbour.accepted) == count)
        neighbour.hang_up()

    for count in (1, 2, 3):
        await hang_up(count)
    await watching.close()
    assert watched.told == []


async def test_who_was_never_reached_is_not_dead(neighbour: Neighbour, attempts: list[Address]) -> None:
    await neighbour.die()
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()
    await neighbour.news.until(lambda: len(attempts) > 5)
    await watching.close()
    assert watched.told == []


async def test_only_who_is_active_is_watched_and_each_registration_by_itself(neighbour: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port, state=BrokerState.SHUTTING_DOWN))
    watching = watched.watch()
    watched.become(registered(neighbour.port, epoch=8))
    await neighbour.news.until(lambda: neighbour.accepted)
    watched.become(registered(neighbour.port, epoch=9))
    await neighbour.news.until(lambda: watching.reached == {(2, 9)})
    await neighbour.die()
    await neighbour.news.until(lambda: watched.told)
    assert watched.told == [(2, 9)]
    await watching.close()
