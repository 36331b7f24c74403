"""Waiting for room in full sockets: one descriptor tells every waiter with room."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from barnabas.server.pinned_regions import PinnedFiles, PinnedRegion
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity
from tests.waiting import until

FILES = OsFiles()


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


class Reader:
    """A waiter; `told` records the calls."""

    def __init__(self, told: list[str], name: str, on_room: Callable[[], None] = lambda: None) -> None:
        self._told, self._name, self._on_room = told, name, on_room
        self.holds_files = True

    def resume(self) -> None:
        self._told.append(self._name)
        self._on_room()

    def give_up(self, error: OSError) -> None:
        self._told.append(f"{self._name} gave up")
        self._on_room()


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
        write_waiters, told = WriteWaiters(loop), list[str]()
        # The loop has a transport for each socket, as for a broker's connections.
        transports = [(await loop.connect_accepted_socket(asyncio.Protocol, near.dup()))[0] for near, _ in pairs]
        watched = [transport.get_extra_info("socket").fileno() for transport in transports]
        for number, descriptor in enumerate(watched):
            if number == 1:
                before = descriptors()
            write_waiters.watch(descriptor, Reader(told, f"{number}"))
        assert descriptors() == before
        await asyncio.sleep(0)
        assert not told
        drained(pairs[3][1])
        await until(lambda: set(told) == {"3"})
        write_waiters.unwatch(watched[3])
        drained(pairs[5][1])
        await until(lambda: set(told) == {"3", "5"})
        for transport in transports:
            transport.abort()
        write_waiters.close()
        assert not write_waiters._waiting

    with asyncio.Runner(loop_factory=pytest.importorskip(loops).new_event_loop) as runner:
        runner.run(wait())


def test_who_is_closed_by_one_before_is_not_told(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    async def wait() -> None:
        write_waiters, told = WriteWaiters(asyncio.get_running_loop()), list[str]()

        def close_all() -> None:
            for near, _ in pairs:
                write_waiters.unwatch(near.fileno())

        for near, far in pairs:
            drained(far)
            write_waiters.watch(near.fileno(), Reader(told, "first", close_all))
        await until(lambda: told)
        assert told == ["first"]
        write_waiters.close()

    asyncio.run(wait())


def test_who_waits_longest_makes_way(pairs: list[tuple[socket.socket, socket.socket]], tmp_path: Path) -> None:
    async def wait() -> None:
        pinned_files, regions = PinnedFiles(FILES, 2), list[PinnedRegion]()
        write_waiters, told = WriteWaiters(asyncio.get_running_loop()), list[str]()
        readers = [Reader(told, f"{number}", partial(regions.__delitem__, 0)) for number in range(5)]
        readers[1].holds_files = False
        for number, reader in enumerate(readers):
            path = tmp_path / f"{number}"
            path.write_bytes(b"records")
            with path.open("rb") as file:
                regions.append(pinned_files.hold(FileRegion(file.fileno(), 0, 7, 0, SegmentIntegrity(FILES, 0))))
            write_waiters.watch(pairs[number][0].fileno(), reader)
        write_waiters.make_way(pinned_files, readers[2])
        assert told == ["0 gave up", "3 gave up", "4 gave up"]
        assert not pinned_files.is_crowded
        write_waiters.close()

    asyncio.run(wait())
