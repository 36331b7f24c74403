"""Waiting for room in full sockets: whoever has some is told so, by one descriptor for all."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from barnabas.server.room import Room
from tests.waiting import until


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Connections, of which the first ends take no more."""
    with ExitStack() as stack:
        made = []
        for _ in range(20):
            near, far = map(stack.enter_context, socket.socketpair())
            near.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    near.send(bytes(65_536))
            made.append((near, far))
        yield made


def drained(far: socket.socket) -> None:
    far.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            far.recv(2**20)


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_who_has_room_is_told(pairs: list[tuple[socket.socket, socket.socket]], loops: str) -> None:
    async def wait() -> None:
        loop = asyncio.get_running_loop()
        room, told = Room(loop), set[int]()
        # The loop has a transport on each, as on the connections of a broker.
        transports = [(await loop.connect_accepted_socket(asyncio.Protocol, near.dup()))[0] for near, _ in pairs]
        watched = [transport.get_extra_info("socket").fileno() for transport in transports]
        for number, descriptor in enumerate(watched):
            if number == 1:
                before = descriptors()
            room.watch(descriptor, partial(told.add, number))
        assert descriptors() == before
        await asyncio.sleep(0)
        assert not told
        drained(pairs[3][1])
        await until(lambda: told == {3})
        room.unwatch(watched[3])
        drained(pairs[5][1])
        await until(lambda: told == {3, 5})
        for transport in transports:
            transport.abort()
        room.close()
        assert not room._waiting

    with asyncio.Runner(loop_factory=pytest.importorskip(loops).new_event_loop) as runner:
        runner.run(wait())


def test_who_is_closed_by_one_before_is_not_told(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    async def wait() -> None:
        room, told = Room(asyncio.get_running_loop()), list[int]()

        def close_all() -> None:
            told.append(1)
            for near, _ in pairs:
                room.unwatch(near.fileno())

        for near, far in pairs:
            drained(far)
            room.watch(near.fileno(), close_all)
        await until(lambda: told)
        assert told == [1]
        room.close()

    asyncio.run(wait())
