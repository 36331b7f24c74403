"""The simulated ZooKeeper and network of several machines: sessions end in virtual time, ways are blocked one by one."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.cluster.store.interface import ABSENT, Put, SessionState, StoreUnavailable
from barnabas.testing.simulation.ensemble import Ensemble, VirtualStore
from barnabas.testing.simulation.loop import World, new_loop

TIMEOUT_S = 9.0


def problem(text: str) -> None:
    raise AssertionError(text)


@pytest.fixture
def world() -> World:
    return World(1)


def opened(world: World, ensemble: Ensemble, host: str) -> tuple[VirtualStore, list[SessionState], list[str]]:
    store = ensemble.open(new_loop(world, host, host, problem))
    states: list[SessionState] = []
    paths: list[str] = []
    store.watch_session(lambda event: states.append(event.state))
    store.watch(paths.extend)
    return store, states, paths


def pass_time(world: World, seconds: float) -> None:
    end_s = world.now_s + seconds
    loop = new_loop(world, "time", "time", problem)
    loop.call_at(end_s, lambda: None)
    world.run_until(lambda: world.now_s >= end_s)


def test_watches_come_later_in_the_watchers_own_process(world: World) -> None:
    ensemble = Ensemble(world, TIMEOUT_S)
    one, _, _ = opened(world, ensemble, "one")
    _, _, seen = opened(world, ensemble, "two")
    one.commit([Put("/a", b"1")])
    one.commit([Put("/b", b"2")])
    assert seen == []
    pass_time(world, 1)
    assert seen == ["/a", "/b"]


def test_who_is_cut_off_notices_and_loses_the_session_in_time(world: World) -> None:
    ensemble = Ensemble(world, TIMEOUT_S)
    one, states, _ = opened(world, ensemble, "one")
    other, _, seen = opened(world, ensemble, "other")
    one.commit([Put("/own", b"", ABSENT, ephemeral=True)])
    ensemble.cut_off("one")
    with pytest.raises(StoreUnavailable):
        one.get("/own")
    pass_time(world, TIMEOUT_S - 1)
    assert states == [SessionState.SUSPENDED]
    assert other.get("/own") is not None
    pass_time(world, 2)
    assert other.get("/own") is None
    assert seen.count("/own") == 2
    ensemble.reconnect("one")
    pass_time(world, 1)
    assert states == [SessionState.SUSPENDED, SessionState.EXPIRED, SessionState.CONNECTED]


def test_the_session_of_a_dead_process_ends_in_time(world: World) -> None:
    ensemble = Ensemble(world, TIMEOUT_S)
    one, _, _ = opened(world, ensemble, "one")
    other, _, _ = opened(world, ensemble, "other")
    one.commit([Put("/own", b"", ABSENT, ephemeral=True)])
    ensemble.died("one")
    pass_time(world, TIMEOUT_S - 1)
    assert other.get("/own") is not None
    pass_time(world, 2)
    assert other.get("/own") is None


class Receiver(asyncio.BufferedProtocol):
    def __init__(self) -> None:
        self.buffer = bytearray(100)
        self.received = b""
        self.transport: asyncio.Transport | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, _: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, size: int) -> None:
        self.received += bytes(self.buffer[:size])

    def connection_lost(self, _: Exception | None) -> None:
        self.lost = True


def test_a_way_that_is_blocked_holds_what_is_sent_and_the_other_way_goes_on(world: World) -> None:
    near, far = Receiver(), Receiver()
    client = new_loop(world, "client", "client", problem)
    server = new_loop(world, "server", "server", problem)

    async def serve() -> None:
        await server.create_server(lambda: far, "server", 1)

    async def connect() -> None:
        await client.create_connection(lambda: near, "server", 1)

    for loop, coroutine in ((server, serve()), (client, connect())):
        task = loop.create_task(coroutine)
        world.run_until(task.done)
    pass_time(world, 0.1)
    assert near.transport is not None
    assert far.transport is not None
    world.network.block("client", "server")
    near.transport.write(b"there")
    far.transport.write(b"back")
    pass_time(world, 60)
    assert (far.received, near.received) == (b"", b"back")
    world.network.unblock("client", "server")
    pass_time(world, 0.1)
    assert far.received == b"there"
    world.network.block("server", "client")
    far.transport.close()
    pass_time(world, 60)
    assert not near.lost
    again = client.create_task(connect())
    pass_time(world, 60)
    assert not again.done()
    world.network.heal()
    pass_time(world, 1)
    assert near.lost
    assert again.done()


def test_a_frozen_process_does_later_what_was_due_in_order(world: World) -> None:
    loop = new_loop(world, "one", "one", problem)
    seen: list[tuple[int, float]] = []
    started_s = world.now_s

    def run(number: int) -> None:
        seen.append((number, world.now_s - started_s))

    for number in range(3):
        loop.call_later(number + 1, run, number)
    loop.frozen_until_s = started_s + 2.5
    pass_time(world, 5)
    assert seen == [(0, 2.5), (1, 2.5), (2, 3.0)]
