"""What a connection still has to send: buffers and pieces of files, in order.

Writes go straight to the socket, not through the transport: only so can a file region follow a header by `sendfile` without the
transport's buffer in between. The transport never gets anything to write, so the two cannot mix.

Small pieces of files are read and sent with what stands before and behind them, in one system call: up to `COPIED_BYTES` copying them costs
less than three calls that hand pages over. 100 kB take 42 us where `sendfile` takes 65, 200 kB 62 where it takes 89, from request to
answer between two processes. What is larger, or had to wait once, goes by `sendfile`, so that nothing is read twice.

A turn of the loop sends so much of files on a connection and no more (`FILE_BYTES_PER_TURN`): handing a megabyte to the kernel takes half a
millisecond, and others wait meanwhile. The rest waits for the next turn as it would for room.

Ugly: uvloop does not let `add_writer` watch a descriptor that a transport owns, so waiting for room needs a duplicate of it. It is
made when first needed; an idle connection costs one descriptor.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable

from barnabas import limits
from barnabas.storage.files import Files
from barnabas.storage.reading import FileRegion

Buffer = bytes | bytearray | memoryview
FILE_BYTES_PER_TURN = 256 * 1024  # about 50 us
COPIED_BYTES = FILE_BYTES_PER_TURN  # of files, at most, in one system call: what a processor's own cache holds beside its code


class _Copied(threading.local):
    """Where pieces of files are put together: one buffer for all connections of a loop, in which nothing is left between two calls."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(COPIED_BYTES))


_copied = _Copied()


class HeldRegion:
    """A file region with a descriptor of its own, for one that is not sent in the turn of the loop in which it was read.

    A log closes its files when segments are deleted; by then another file may have the number.
    """

    __slots__ = ("_files", "fileno", "position", "size")

    def __init__(self, region: FileRegion | HeldRegion, files: Files) -> None:
        self._files = files
        self.fileno: int = files.dup(region.fileno)
        self.position: int = region.position
        self.size: int = region.size

    def __del__(self) -> None:
        if hasattr(self, "fileno"):
            self._files.close(self.fileno)


Region = FileRegion | HeldRegion
Part = Buffer | Region


class Outbox:
    """The sending half of one plain-text connection.

    Args:
        descriptor: of the transport's socket; stays the transport's.
        files: what the file regions are of.
        on_room: called when everything waiting has been sent after the socket was full.
        on_error: called once when the other side is gone.
    """

    __slots__ = (
        "_blocked",
        "_descriptor",
        "_file_bytes_left",
        "_files",
        "_items",
        "_loop",
        "_on_error",
        "_on_room",
        "_socket",
        "_watching",
        "waiting_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        files: Files,
        on_room: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._files = files
        self._on_room = on_room
        self._on_error = on_error
        self._items: deque[Part] = deque()
        self._socket: socket.socket | None = None
        self._blocked = False
        self._file_bytes_left = 0  # in this turn
        self._watching = False  # from the first time that the socket is full until all is sent
        self.waiting_bytes = 0  # handed in, not yet taken by the kernel

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def hold(self, parts: Iterable[Part]) -> list[Part]:
        """The same parts, their regions held."""
        return [HeldRegion(part, self._files) if isinstance(part, FileRegion) else part for part in parts]

    def push(self, item: Part) -> None:
        """Queue `item`; nothing is sent before `flush`, which must come in the same turn of the loop."""
        self._items.append(HeldRegion(item, self._files) if self._blocked and isinstance(item, FileRegion) else item)
        self.waiting_bytes += item.size if isinstance(item, Region) else len(item)

    def flush(self) -> None:
        """Send what the socket takes now; wait for room in the background for the rest."""
        if self._blocked or not self._items:
            return
        self._file_bytes_left = FILE_BYTES_PER_TURN
        try:
            while self._items:
                front = self._items[0]
                if isinstance(front, HeldRegion) or (isinstance(front, FileRegion) and front.size > COPIED_BYTES):
                    self._send_file(front)
                else:
                    self._send_buffers()
        except BlockingIOError:
            self._wait_for_room()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Forget what waits and give the duplicate back."""
        self._items.clear()
        self.waiting_bytes = 0
        if self._socket is not None:
            if self._watching:
                self._unwatch()
                self._watching = False
            self._socket.close()
            self._socket = None
        self._blocked = True  # nothing is sent after this

    def _wait_for_room(self) -> None:
        self._blocked = True
        if not self._watching:
            self._items = deque(self.hold(self._items))
            self._watching = True
            self._watch()

    def _give_up(self, error: OSError) -> None:
        self._items.clear()
        self.waiting_bytes = 0
        self._on_error(error)

    def _resume(self) -> None:
        self._blocked = False
        self.flush()
        if not self._blocked:
            self._unwatch()
            self._watching = False
            if not self._items:
                self._on_room()

    def _watch(self) -> None:
        """Have `_resume` called whenever the socket has room, until `_unwatch`."""
        self._loop.add_writer(self._own_socket().fileno(), self._resume)

    def _unwatch(self) -> None:
        self._loop.remove_writer(self._own_socket().fileno())

    def _own_socket(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(fileno=os.dup(self._descriptor))
        return self._socket

    def _send_buffers(self) -> None:
        """One system call for what is in front: buffers, and small regions that have not waited."""
        if len(self._items) == 1 and not isinstance(self._items[0], Region):
            buffers, is_file_next = [self._items[0]], False
        else:
            buffers, is_file_next = self._gather()
        if not buffers:
            raise BlockingIOError  # this turn has sent its share of files
        self._sent(buffers, self._write(buffers, is_file_next=is_file_next))

    def _write(self, buffers: list[Buffer], *, is_file_next: bool) -> int:
        if is_file_next:
            return self._own_socket().sendmsg(buffers, (), socket.MSG_MORE)
        if len(buffers) == 1:
            return os.write(self._descriptor, buffers[0])
        return os.writev(self._descriptor, buffers)

    def _read(self, region: FileRegion, piece: memoryview) -> int:
        return os.preadv(region.fileno, (piece,), region.position)

    def _gather(self) -> tuple[list[Buffer], bool]:
        """The bytes of the items in front, as far as they go together, and whether a region follows that goes by itself."""
        buffers: list[Buffer] = []
        target, filled, room = _copied.buffer, 0, min(COPIED_BYTES, self._file_bytes_left)
        for item in self._items:
            if len(buffers) == limits.MAX_BUFFERS_PER_WRITE:
                break
            if not isinstance(item, Region):
                buffers.append(item)
                continue
            if isinstance(item, HeldRegion) or item.size > COPIED_BYTES:
                return buffers, True
            if item.size > room - filled:
                break
            piece = target[filled : filled + item.size]
            if self._read(item, piece) < item.size:
                raise OSError(f"a file region of {item.size} bytes ends before its end")
            buffers.append(piece)
            filled += item.size
        return buffers, False

    def _sent(self, buffers: list[Buffer], sent: int) -> None:
        """The kernel has taken so many bytes of `buffers`, which are the bytes of the items in front."""
        self.waiting_bytes -= sent
        for buffer in buffers:
            item = self._items[0]
            taken = min(sent, len(buffer))
            sent -= taken
            if isinstance(item, Region):
                self._file_bytes_left -= taken
            if taken == len(buffer):
                self._items.popleft()
                continue
            if isinstance(item, FileRegion):
                item = self._items[0] = HeldRegion(item, self._files)
            if isinstance(item, HeldRegion):
                item.position += taken
                item.size -= taken
            elif taken:
                self._items[0] = memoryview(buffer)[taken:]
            return

    def _send_file(self, region: Region) -> None:
        size = min(region.size, self._file_bytes_left)
        self._region_sent(region, os.sendfile(self._descriptor, region.fileno, region.position, size))

    def _region_sent(self, region: Region, sent: int) -> None:
        if sent == 0:
            raise OSError(f"a file region of {region.size} bytes ends before its end")
        self.waiting_bytes -= sent
        self._file_bytes_left -= sent
        if sent == region.size:
            self._items.popleft()
            if self._file_bytes_left <= 0 < len(self._items):
                raise BlockingIOError  # the next turn goes on
            return
        if isinstance(region, FileRegion):
            region = self._items[0] = HeldRegion(region, self._files)
        region.position += sent
        region.size -= sent
        raise BlockingIOError  # the socket is full, asking again would only say so, or the next turn goes on
