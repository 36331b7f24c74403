"""Who is found dead, and who is not: the lookout on real sockets. What follows of it is in `tests/cluster/test_member_deaths.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.cluster.metadata import BrokerRegistration, BrokerState, MetadataImage
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.server import lookout
from barnabas.server.broker import Broker
from barnabas.server.lookout import Lookout

WITHIN_S = 15


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
        self.accepted: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(writer)
        self.news.tell()

    def hang_up(self) -> None:
        for writer in self.accepted:
            writer.close()

    def die(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.hang_up()


class Watched:
    """What a lookout asks of a member, and what it tells."""

    def __init__(self, news: News, *brokers: BrokerRegistration) -> None:
        self._news = news
        self.image = MetadataImage("cluster", brokers={broker.broker_id: broker for broker in brokers})
        self.told: list[tuple[int, int]] = []
        self.taken_back: list[tuple[int, int]] = []
        self.attempts = 0
        self._changed = asyncio.Event()

    def tell_dead(self, broker_id: int, epoch: int) -> None:
        self.told.append((broker_id, epoch))
        self._news.tell()

    def take_back_dead(self, broker_id: int, epoch: int) -> None:
        self.taken_back.append((broker_id, epoch))
        self._news.tell()

    def attempt(self) -> None:
        """To connect."""
        self.attempts += 1
        self._news.tell()

    async def wait_for(self, condition: Callable[[MetadataImage], bool]) -> None:
        while not condition(self.image):
            await self._changed.wait()

    def become(self, *brokers: BrokerRegistration) -> None:
        self.image = MetadataImage("cluster", brokers={broker.broker_id: broker for broker in brokers})
        self._changed.set()
        self._changed = asyncio.Event()

    def watch(self) -> Lookout:
        config, _ = BrokerConfig.from_properties({"node.id": "1"})
        broker = SimpleNamespace(config=config, loop=_Counting(self))
        return Lookout(cast(Broker, broker), cast(Any, self))


class _Counting:
    """The loop, which counts attempts to connect."""

    def __init__(self, watched: Watched) -> None:
        self._watched, self._loop = watched, asyncio.get_running_loop()
        self.create_task, self.time = self._loop.create_task, self._loop.time

    async def create_connection(self, *arguments: Any) -> Any:
        self._watched.attempt()
        return await self._loop.create_connection(*arguments)


def registered(port: int, epoch: int = 7, state: BrokerState = BrokerState.ACTIVE) -> BrokerRegistration:
    return BrokerRegistration(2, (Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT"),), epoch=epoch, state=state)


@pytest.fixture
async def neighbour(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Neighbour]:
    monkeypatch.setattr(lookout, "LONGEST_PAUSE_S", 0.02)
    listening = Neighbour(News())
    await listening.listen()
    yield listening
    listening.die()


async def test_a_process_that_is_gone_is_told_once(neighbour: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()
    await neighbour.news.until(lambda: neighbour.accepted)
    neighbour.die()
    await neighbour.news.until(lambda: watched.told)
    assert watched.told == [(2, 7)]
    assert watched.taken_back == []
    await watching.close()


async def test_who_listens_again_under_the_same_registration_is_not_dead(neighbour: Neighbour) -> None:
    """A living broker that refused for a moment is not buried later, when whoever was told so becomes controller."""
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()
    for count in (1, 2):
        await neighbour.news.until(lambda count=count: len(neighbour.accepted) == count)  # type: ignore[misc]
        neighbour.die()
        await neighbour.news.until(lambda count=count: len(watched.told) == count)  # type: ignore[misc]
        attempts = watched.attempts
        await neighbour.news.until(lambda attempts=attempts: watched.attempts > attempts + 2)  # type: ignore[misc]
        await neighbour.listen()
        await neighbour.news.until(lambda count=count: len(watched.taken_back) == count)  # type: ignore[misc]
    assert watched.told == watched.taken_back == [(2, 7), (2, 7)]
    await watching.close()


async def test_a_connection_that_is_closed_says_nothing(neighbour: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()
    for count in (1, 2, 3):
        await neighbour.news.until(lambda count=count: len(neighbour.accepted) == count)  # type: ignore[misc]
        neighbour.hang_up()
    await watching.close()
    assert watched.told == []


async def test_who_was_never_reached_is_not_dead(neighbour: Neighbour) -> None:
    neighbour.die()
    watched = Watched(neighbour.news, registered(neighbour.port))
    watching = watched.watch()
    await neighbour.news.until(lambda: watched.attempts > 5)
    await watching.close()
    assert watched.told == []


async def test_only_who_is_active_is_watched_and_each_registration_by_itself(neighbour: Neighbour) -> None:
    watched = Watched(neighbour.news, registered(neighbour.port, state=BrokerState.SHUTTING_DOWN))
    watching = watched.watch()
    watched.become(registered(neighbour.port, epoch=8))
    await neighbour.news.until(lambda: neighbour.accepted)
    watched.become(registered(neighbour.port, epoch=9))
    await neighbour.news.until(lambda: len(neighbour.accepted) == 2)
    neighbour.die()
    await neighbour.news.until(lambda: watched.told)
    assert watched.told == [(2, 9)]
    await watching.close()
