"""The simulated network does to connections what it says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.server import outbox
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.testing.simulation.loop import World, new_loop
from barnabas.testing.simulation.network import VirtualTransport

PORT = 9092


class Heard(asyncio.BufferedProtocol):
    """The calls to one end of a connection, with the other ends of its side."""

    def __init__(self, told: list[str]) -> None:
        self._told = told
        self._buffer = bytearray(16)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._told.append(self._buffer[:nbytes].decode())

    def connection_lost(self, exc: Exception | None) -> None:
        self._told.append(f"lost: {type(exc).__name__}")


def connected(world: World, server: list[str], client: list[str], times: int) -> list[VirtualTransport]:
    """Connections from one machine to another, the client's ends."""
    loops = [new_loop(world, name, name, pytest.fail) for name in ("server", "client")]

    async def listen() -> None:
        await loops[0].create_server(lambda: Heard(server), "server", PORT)

    async def connect() -> list[VirtualTransport]:
        return [(await loops[1].create_connection(lambda: Heard(client), "server", PORT))[0] for _ in range(times)]

    done = loops[0].create_task(listen())
    world.run_until(done.done)
    made = loops[1].create_task(connect())
    world.run_until(made.done)
    ends: list[VirtualTransport] = made.result()
    return ends


@pytest.mark.parametrize("seed", range(5))
def test_what_was_sent_on_a_connection_that_lingers_arrives_behind_its_repetition(seed: int) -> None:
    world = World(seed)
    server: list[str] = []
    client: list[str] = []
    old, new = connected(world, server, client, 2)
    old.write(b"1")
    world.network.linger(old, 1.0)
    world.run_until(lambda: bool(client))
    assert client == ["lost: ConnectionResetError"]
    new.write(b"2")
    world.run_until(lambda: len(server) == 3)
    assert server[0] == "2"
    assert server[1:] == ["1", "lost: ConnectionResetError"]


@pytest.mark.parametrize("size", [80, 150])
def test_what_a_turn_may_not_send_any_more_goes_in_the_next(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a socket that has room: not only when the other side has taken what is under way."""
    monkeypatch.setattr(outbox, "FILE_BYTES_PER_TURN", 100)
    files, path = OsFiles(), tmp_path / "file"
    path.write_bytes(b"x" * size)
    world = World(1)
    server: list[str] = []
    (end,) = connected(world, server, [], 1)
    sending = end.get_extra_info("outbox")(
        end.loop, 0, PinnedFiles(files, 100), WriteWaiters(end.loop), lambda: None, pytest.fail
    )
    with path.open("rb") as file:
        for _ in range(3):
            sending.push(FileRegion(file.fileno(), 0, size, 0, SegmentIntegrity(files, 0)))
        sending.flush()
        assert sending.waiting_bytes
        world.run_until(lambda: not sending.waiting_bytes)
        assert not server
        world.run_until(lambda: sum(map(len, server)) == 3 * size)
        sending.close()
