"""A network in memory: servers, connections, delays, and the effect of a process's death on its connections.

Owns the listening addresses and every byte in transit.

Rules
  1. Bytes of one direction of a connection arrive in order, in pieces of any size, each after a delay of its own.
  2. If one side does not read, the other can fill a window of `WINDOW_BYTES`. After that its writes are refused until there is
     room.
  3. `cut` breaks a connection for both sides; bytes in transit are lost.
  4. When a process is killed, its connections are reset. When its machine loses power, the other side gets nothing, even after
     the machine is back, and notices it only by its own timeout.
  5. `linger` breaks a connection for one side. The bytes that this side sent arrive at the other side much later. So a request
     may arrive after its repetition on the next connection.
  6. Each direction between two machines can be blocked alone. Bytes in a blocked direction arrive when it is open again, as TCP
     would retransmit them. A new connection needs both directions.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

from barnabas.protocol.fetch import Buffer
from barnabas.server.outbox import Outbox, Region

if TYPE_CHECKING:
    from barnabas.testing.simulation.loop import VirtualLoop, World

WINDOW_BYTES = 64 * 1024
CONNECT_AGAIN_S = 0.2  # between two connection attempts by the operating system
Address = tuple[str, int]


class Network:
    """All connections of the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._servers: dict[Address, VirtualServer] = {}
        self._open: dict[VirtualTransport, None] = {}
        self._next_port = 40_000
        self.admitted: frozenset[str] | None = None  # only these machines may connect; None admits all
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}  # blocked way -> pieces that arrive when it opens

    def listen(self, loop: VirtualLoop, factory: Callable[[], Any], host: str, port: int) -> VirtualServer:
        address = host, port
        if address in self._servers:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = self._servers[address] = VirtualServer(self, loop, factory, address)
        return server

    def unlisten(self, server: VirtualServer) -> None:
        if self._servers.get(server.address) is server:
            del self._servers[server.address]

    async def connect(self, loop: VirtualLoop, factory: Callable[[], Any], host: str, port: int) -> tuple[VirtualTransport, Any]:
        await asyncio.sleep(self.delay_s())
        while not self.is_open(loop.host, host):  # noqa: ASYNC110 - the operating system retries too
            await asyncio.sleep(CONNECT_AGAIN_S)
        server = self._servers.get((host, port))
        is_admitted = self.admitted is None or loop.host in self.admitted
        if server is None or not server.serving or server.loop.dead or not is_admitted:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        self._next_port += 1
        near, far = (loop.host, self._next_port), (host, port)
        client = VirtualTransport(self, loop, near, far)
        accepted = VirtualTransport(self, server.loop, far, near)
        client.peer, accepted.peer = accepted, client
        self._open[client] = self._open[accepted] = None
        server.accepted[accepted] = None
        accepted.server = server
        accepted.start(server.factory())
        protocol = factory()
        client.start(protocol)
        await asyncio.sleep(0)  # the protocol gets `connection_made` before the caller continues
        return client, protocol

    def block(self, source: str, target: str) -> None:
        """Block the direction from `source` to `target`."""
        self.world.note(f"block {source}>{target}")
        self._held.setdefault((source, target), [])

    def unblock(self, source: str, target: str) -> None:
        self.world.note(f"unblock {source}>{target}")
        for arrive in self._held.pop((source, target), []):
            arrive()

    def heal(self) -> None:
        """Open every direction."""
        for way in list(self._held):
            self.unblock(*way)

    def carry(self, source: str, target: str, arrive: Callable[[], None]) -> None:
        """Call `arrive` to begin a delivery: now, or when the direction is open."""
        held = self._held.get((source, target))
        if held is None:
            arrive()
        else:
            held.append(arrive)

    def is_open(self, one: str, other: str) -> bool:
        """Whether both directions between the machines are open."""
        return (one, other) not in self._held and (other, one) not in self._held

    def delay_s(self) -> float:
        """A random delay in seconds: mostly short, sometimes long."""
        random = self.world.random
        return random.choice((0.0001, 0.0001, 0.0005, 0.003)) * (0.5 + random.random())

    def connections(self, host: str) -> list[VirtualTransport]:
        """The open connections of a machine, as its own ends."""
        return [transport for transport in self._open if transport.near[0] == host]

    def cut(self, transport: VirtualTransport) -> None:
        """Break a connection for both sides."""
        self.world.note(f"cut {transport.near[1]}-{transport.far[1]}")
        for end in (transport, transport.peer):
            end.reset_soon()

    def linger(self, transport: VirtualTransport, while_s: float) -> None:
        """Break a connection for one end now. The other end gets the bytes in transit after `while_s` seconds, and then the end
        of the connection."""
        self.world.note(f"linger {transport.near[1]}-{transport.far[1]}")
        held_until_s = self.world.now_s + while_s
        transport.hold_until(held_until_s)
        transport.reset_soon()
        transport.peer.reset_soon(
            at_s=held_until_s + self.delay_s()
        )  # later than the held pieces: a reset at the same time would come first and drop them

    def process_died(self, loop: VirtualLoop, *, silently: bool) -> None:
        """A process has died: close its servers and its ends of connections."""
        for server in [server for server in self._servers.values() if server.loop is loop]:
            self.unlisten(server)
        for transport in [transport for transport in self._open if transport.loop is loop]:
            self.forget(transport)
            transport.closed = True
            if not silently:
                transport.peer.reset_soon()

    def forget(self, transport: VirtualTransport) -> None:
        self._open.pop(transport, None)
        if transport.server is not None:
            transport.server.left(transport)


class _ListeningSocket:
    """The methods of a listening socket that the server calls."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address

    def setsockopt(self, *_: object) -> None:
        return

    def fileno(self) -> int:
        return -1


class VirtualServer:
    """The result of `create_server`."""

    def __init__(self, network: Network, loop: VirtualLoop, factory: Callable[[], Any], address: Address) -> None:
        self.loop = loop
        self.factory = factory
        self.address = address
        self.serving = False
        self.accepted: dict[VirtualTransport, None] = {}
        self.sockets = [_ListeningSocket(address)]
        self._network = network
        self._gone: asyncio.Future[None] | None = None

    async def start_serving(self) -> None:
        self.serving = True

    def close(self) -> None:
        self.serving = False
        self._network.unlisten(self)

    async def wait_closed(self) -> None:
        while self.accepted:
            self._gone = self.loop.create_future()
            await self._gone

    def left(self, transport: VirtualTransport) -> None:
        self.accepted.pop(transport, None)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)


class VirtualTransport(asyncio.Transport):
    """One end of a connection."""

    peer: VirtualTransport

    def __init__(self, network: Network, loop: VirtualLoop, near: Address, far: Address) -> None:
        super().__init__()
        self.near = near
        self.far = far
        self.loop = loop
        self.server: VirtualServer | None = None
        self.closed = False
        self.under_way = 0  # bytes sent that the peer's protocol has not received yet
        self._network = network
        self._protocol: asyncio.BufferedProtocol | None = None
        self._received = bytearray()
        self._paused = False
        self._arrival_s = 0.0  # arrival time of the last piece; later pieces do not arrive before it
        self._held_until_s = 0.0  # pieces in flight do not arrive before this time
        self._on_room: Callable[[], None] | None = None

    def start(self, protocol: Any) -> None:
        self._protocol = protocol
        self.loop.call_soon(self._made)

    def _made(self) -> None:
        if not self.closed and self._protocol is not None:
            self._protocol.connection_made(self)
            self._deliver()

    # --- methods for asyncio

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        match name:
            case "peername":
                return self.far
            case "sockname":
                return self.near
            case "socket":
                return _ListeningSocket(self.near)
            case "outbox":
                return lambda *args: VirtualOutbox(self, *args)
        return default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.send(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self._lose(None)
        self.peer.reset_soon(at_s=self._arrival_s)

    def abort(self) -> None:
        if not self.closed:
            self._lose(None)
            self.peer.reset_soon()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self.loop.call_soon(self._deliver)

    def is_reading(self) -> bool:
        return not self._paused

    # --- bytes in flight

    @property
    def room(self) -> int:
        return max(0, WINDOW_BYTES - self.under_way)

    def send(self, data: bytes) -> None:
        """Send bytes to the other side, in one piece or in two."""
        random = self._network.world.random
        self.under_way += len(data)
        cut = random.randrange(1, len(data)) if len(data) > 1 and random.random() < 0.1 else len(data)
        for piece in (data[:cut], data[cut:]):
            if piece:
                self._network.carry(self.near[0], self.far[0], partial(self._send_piece, piece))

    def _send_piece(self, piece: bytes) -> None:
        self._arrival_s = max(self._arrival_s, self.loop.world.now_s + self._network.delay_s())
        self.peer.loop.call_at(self._arrival_s, self.peer._arrived, piece)

    def hold_until(self, when_s: float) -> None:
        """Delay the bytes that this end has sent until `when_s`."""
        self._held_until_s = when_s

    def when_room(self, callback: Callable[[], None] | None) -> None:
        self._on_room = callback

    def _arrived(self, piece: bytes) -> None:
        if self.closed:
            return
        if self.peer._held_until_s > self.loop.world.now_s:
            self.loop.call_at(self.peer._held_until_s, self._arrived, piece)
            return
        self._network.world.trace.note(self.loop.world.now_s, f"{self.near[1]}<{self.far[1]} {len(piece)} {crc32(piece):08x}")
        self._received += piece
        self._deliver()

    def _deliver(self) -> None:
        protocol = self._protocol
        while self._received and not self._paused and not self.closed and protocol is not None:
            buffer = memoryview(cast(bytearray, protocol.get_buffer(len(self._received))))
            size = min(len(buffer), len(self._received))
            buffer[:size] = self._received[:size]
            del self._received[:size]
            self.peer._taken(size)
            protocol.buffer_updated(size)

    def _taken(self, size: int) -> None:
        self.under_way -= size
        if self._on_room is not None and not self.closed:
            self.loop.call_later(self._network.delay_s(), self._tell_room)

    def tell_room_soon(self) -> None:
        self.loop.call_soon(self._tell_room)

    def _tell_room(self) -> None:
        if self._on_room is not None and not self.closed:
            self._on_room()

    # --- closing

    def reset_soon(self, at_s: float | None = None) -> None:
        """The other side is gone. This side gets the reset after a delay, behind the bytes that were sent before."""
        self._network.carry(self.far[0], self.near[0], partial(self._reset_at, at_s or 0.0))

    def _reset_at(self, at_s: float) -> None:
        when_s = max(at_s, self.peer._arrival_s, self.loop.world.now_s + self._network.delay_s())
        self.loop.call_at(when_s, self._lose, ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def _lose(self, error: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._network.forget(self)
        self._received.clear()
        if self._protocol is not None:
            self.loop.call_soon(self._protocol.connection_lost, error)


class VirtualOutbox(Outbox):
    """The real outbox on a connection without a socket."""

    __slots__ = ("_transport",)

    def __init__(self, transport: VirtualTransport, *args: Any) -> None:
        super().__init__(*args)
        self._transport = transport

    def close(self) -> None:
        self._transport.when_room(None)
        super().close()

    def _wait_for_turn(self) -> None:
        super()._wait_for_turn()
        if self._watching:  # as with a real socket: it reports room as long as it is watched
            self._transport.tell_room_soon()

    def _watch(self) -> None:
        self._transport.when_room(self.resume)

    def _unwatch(self) -> None:
        self._transport.when_room(None)

    def _write(self, buffers: list[Buffer]) -> int:
        data = b"".join(buffers)[: self._room_left()]
        self._transport.send(data)
        return len(data)

    def _read(self, region: Region, piece: memoryview) -> int:
        data = self._pinned_files.files.pread(region.fileno, len(piece), region.position)
        piece[: len(data)] = data
        return len(data)

    def _goes_by_sendfile(self, region: Region) -> bool:
        return False  # the choice of sendfile would depend on the real time that it takes

    def _is_tried_again(self) -> bool:
        return False  # virtual time stands still until the next turn, so the reader makes no room before it

    def _send_file(self, region: Region) -> None:
        data = self._pinned_files.files.pread(region.fileno, min(region.size, self._room_left()), region.position)
        if data:
            self._transport.send(data)
        self._region_sent(region, len(data))

    def _room_left(self) -> int:
        if self._transport.closed:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        room = self._transport.room
        if not room:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return room
