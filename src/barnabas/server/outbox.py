"""The unsent data of a connection: buffers and pieces of files, in order.

Writes go directly to the socket and not through the transport. Otherwise `sendfile` could send a file region while the transport still has
the header in its buffer. The transport never gets data to write, so the two cannot mix.

The outbox reads small pieces of files into a buffer that stays in the processor's cache. One system call sends them with the data around
them. For large pieces it takes the way that costs the loop less time on this machine, this one or `sendfile` (`send_strategy.py`). The
kernel and its file cache decide which one is faster. While a socket is full, all pieces go by `sendfile`, so that nothing is read twice.

A turn of the loop sends at most `FILE_BYTES_PER_TURN` of files on a connection, because other connections wait. The next turn sends more.
The outbox watches a socket only if it has no room: it takes system calls to begin and to end the watch (`write_waiters.py`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns

from barnabas import limits
from barnabas.protocol.fetch import Buffer, Copied
from barnabas.server.pinned_regions import PinnedFiles, PinnedRegion
from barnabas.server.send_strategy import MEASURED_BYTES, SendStrategy
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.file_region import FileRegion

SEGMENT_BYTES = 65_483  # the largest TCP segment over loopback
FILE_BYTES_PER_TURN = 4 * SEGMENT_BYTES  # about 50 us; an empty send buffer of the usual 100 kB takes this much at once
SENT_SHARE = 5  # bytes by `sendfile` that count as one byte: a consumer's usual limit for a partition fits in one turn
# with `sendfile`; smaller pieces are read, even if that takes longer, because one system call sends them with other data
LEAST_SENT_BYTES = 64 * 1024


TRIES = 64  # turns of the loop in which a full socket is tried again before it is watched: about 150 us
# average bytes that a try must send; otherwise a slow reader would make the loop send tiny pieces without a pause
BYTES_PER_TRY = 2048
UNTRIED = 16  # times that a full socket is watched at once, after all tries failed


class TurnIsOver(Exception):
    """This turn has sent its share of a connection's file data, or the socket is full. The next turn of the loop continues."""


class _Copied(threading.local):
    """The buffer for pieces of files. All connections of a loop share it, and it is empty between two calls."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(FILE_BYTES_PER_TURN))


_copied = _Copied()
_send_strategy = SendStrategy()


Region = FileRegion | PinnedRegion
Part = Buffer | Region | Copied


class Outbox:
    """The sending half of one plain-text connection.

    Args:
        descriptor: the transport's socket, which still belongs to the transport.
        pinned_files: holds the file regions that cannot be sent at once.
        write_waiters: watches the socket while it is full.
        on_room: called when the socket was full and all waiting data has been sent.
        on_error: called if the peer is gone, or if the system has no resources to wait for it. Nothing is sent after that.
    """

    __slots__ = (
        "_blocked",
        "_closed",
        "_descriptor",
        "_file_bytes_left",
        "_is_full",
        "_items",
        "_loop",
        "_on_error",
        "_on_room",
        "_pinned_files",
        "_tries_left",
        "_turn",
        "_untried",
        "_watching",
        "_write_waiters",
        "waiting_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        pinned_files: PinnedFiles,
        write_waiters: WriteWaiters,
        on_room: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._pinned_files = pinned_files
        self._write_waiters = write_waiters
        self._on_room = on_room
        self._on_error = on_error
        self._items: deque[Buffer | Region] = deque()
        self._blocked = False
        self._closed = False  # then `_blocked` is set too
        self._file_bytes_left = 0  # may still be sent in this turn
        self._is_full = False  # the socket took only a part of the data
        self._tries_left = TRIES
        self._turn: asyncio.Handle | None = None  # set if the next turn of the loop continues
        self._untried = 0  # times left that a full socket is watched at once
        self._watching = False  # from the first time that the socket is full until all is sent
        self.waiting_bytes = 0  # handed in, not yet taken by the kernel

    @property
    def descriptor(self) -> int:
        return self._descriptor

    @property
    def holds_files(self) -> bool:
        return any(isinstance(item, PinnedRegion) for item in self._items)

    def hold(self, parts: Sequence[Part]) -> list[Part]:
        """The same parts, with their regions held. If that is not possible, closes the connection and returns an empty list.

        If another part already holds all their files, they need no descriptor. Otherwise the connections that have waited longest are
        closed first.
        """
        if self._closed:
            return []
        try:
            if self._pinned_files.is_crowded and any(
                isinstance(part, FileRegion) and part not in self._pinned_files for part in parts
            ):
                self._write_waiters.make_way(self._pinned_files, self)
                if self._pinned_files.is_crowded:
                    raise OSError(errno.EMFILE, "too many files are held for answers that wait")
            return [self._pinned_files.hold(part) if isinstance(part, FileRegion) else part for part in parts]
        except OSError as error:
            self.give_up(error)
            return []

    def push(self, item: Part) -> None:
        """Queue `item`. Nothing is sent before `flush`, which must follow in the same turn of the loop."""
        if isinstance(item, Copied):
            item = item.data
        elif self._blocked and isinstance(item, FileRegion):
            if self._closed:
                return
            try:
                item = self._pinned_files.hold(item)
            except OSError as error:
                self.give_up(error)
                return
        self._items.append(item)
        self.waiting_bytes += item.size if isinstance(item, Region) else len(item)

    def flush(self) -> None:
        """Send what the socket takes now, and wait in the background for room for the rest."""
        if self._blocked or not self._items:
            return
        self._file_bytes_left = FILE_BYTES_PER_TURN
        try:
            try:
                while self._items:
                    front = self._items[0]
                    if isinstance(front, Region) and (self._is_full or self._goes_by_sendfile(front)):
                        self._send_file(front)
                    else:
                        self._send_buffers()
            except TurnIsOver:
                self._wait_for_turn()
            except BlockingIOError:
                self._wait_for_room()
        except OSError as error:
            self.give_up(error)

    def close(self) -> None:
        """Drop the unsent data. Call this before the socket is closed."""
        self._items.clear()
        self.waiting_bytes = 0
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._watching:
            self._unwatch()
            self._watching = False
        self._blocked = self._closed = True  # nothing is sent after this

    def _wait_for_turn(self) -> None:
        """Call `resume` in the next turn of the loop; if the socket is full and another try is not worth it, call `resume` when it has
        room.
        """
        self._wait()

    def _wait_for_room(self) -> None:
        self._is_full = True
        self._wait()

    def _wait(self) -> None:
        self._blocked = True
        if self._watching:
            return
        self._items = deque(self._pinned_files.hold(item) if isinstance(item, FileRegion) else item for item in self._items)
        if not self._is_full or self._is_tried_again():
            self._turn = self._loop.call_soon(self.resume)
            return
        self._watch()
        self._watching = True
        if self._pinned_files.is_crowded:
            self._write_waiters.make_way(self._pinned_files, self)

    def _is_tried_again(self) -> bool:
        """Whether to try the full socket again in the next turn. A reader on the same machine often makes room before a watch could wake
        the loop.
        """
        if self._untried:
            self._untried -= 1
            return False
        if self._tries_left:
            self._tries_left -= 1
            return True
        self._tries_left, self._untried = TRIES, UNTRIED
        return False

    def _taken(self, sent: int) -> None:
        """Note that the kernel has taken `sent` bytes. A socket that takes many bytes in a try gets more tries."""
        self.waiting_bytes -= sent
        if self._tries_left < TRIES:
            self._tries_left = min(self._tries_left + sent // BYTES_PER_TRY, TRIES)

    def give_up(self, error: OSError) -> None:
        self._items.clear()
        self.waiting_bytes = 0
        self._on_error(error)

    def resume(self) -> None:
        self._turn, self._blocked = None, False
        self.flush()
        if not self._blocked:
            self._is_full = False
            if self._watching:
                self._unwatch()
                self._watching = False
            if not self._items:
                self._on_room()

    def _watch(self) -> None:
        """Call `resume` whenever the socket has room, until `_unwatch`."""
        self._write_waiters.watch(self._descriptor, self)

    def _unwatch(self) -> None:
        self._write_waiters.unwatch(self._descriptor)

    def _goes_by_sendfile(self, region: Region) -> bool:
        return _send_strategy.by_sendfile and region.size >= LEAST_SENT_BYTES

    def _send_buffers(self) -> None:
        """Send the first items with one system call: buffers, and pieces of files unless the socket is full."""
        only = self._items[0]
        if len(self._items) == 1 and not isinstance(only, Region):
            sent = self._write([only])
            if sent == len(only):
                self._taken(sent)
                self._items.popleft()
            elif not self._sent([only], sent):
                raise TurnIsOver
            return
        started = perf_counter_ns()
        buffers, read = self._gather()
        if not buffers:
            raise TurnIsOver
        sent = self._write(buffers)
        # after a partial write the time says nothing: it includes bytes that were read and not sent
        if read >= MEASURED_BYTES and sent == sum(map(len, buffers)):
            _send_strategy.took(read, perf_counter_ns() - started, by_sendfile=False)
        if not self._sent(buffers, sent):
            raise TurnIsOver

    def _write(self, buffers: list[Buffer]) -> int:
        if len(buffers) == 1:
            return os.write(self._descriptor, buffers[0])
        return os.writev(self._descriptor, buffers)

    def _read(self, region: Region, piece: memoryview) -> int:
        return os.preadv(region.fileno, (piece,), region.position)

    def _gather(self) -> tuple[list[Buffer], int]:
        """The bytes of the first items that one call can send, perhaps with a piece of the last region; and the number of bytes read from
        files.
        """
        buffers: list[Buffer] = []
        target, filled, room = _copied.buffer, 0, self._file_bytes_left
        for item in self._items:
            if len(buffers) == limits.MAX_BUFFERS_PER_WRITE:
                break
            if not isinstance(item, Region):
                buffers.append(item)
                room -= len(item)
                continue
            if self._is_full or room <= 0 or self._goes_by_sendfile(item):
                break
            size = min(item.size, room)
            piece = target[filled : filled + size]
            if self._read(item, piece) < size:
                raise OSError(f"a file region of {item.size} bytes ends before its end")
            buffers.append(piece)
            filled += size
            if size < item.size:
                break
            room -= size
        return buffers, filled

    def _sent(self, buffers: list[Buffer], sent: int) -> bool:
        """Note that the kernel has taken `sent` bytes of `buffers`, the bytes of the first items. Returns whether the turn continues."""
        self._taken(sent)
        for buffer in buffers:
            item, size = self._items[0], len(buffer)
            taken = min(sent, size)
            sent -= taken
            if isinstance(item, Region):
                self._file_bytes_left -= taken
                whole = item.size
            else:
                whole = size
            if taken == whole:
                self._items.popleft()
                continue
            self._is_full = taken < size
            if isinstance(item, FileRegion):
                item = self._items[0] = self._pinned_files.hold(item)
            if isinstance(item, PinnedRegion):
                item.position += taken
                item.size -= taken
            elif taken:
                self._items[0] = memoryview(buffer)[taken:]
            return False
        return True

    def _send_file(self, region: Region) -> None:
        size = min(region.size, SENT_SHARE * self._file_bytes_left)
        started = perf_counter_ns()
        sent = os.sendfile(self._descriptor, region.fileno, region.position, size)
        if sent >= MEASURED_BYTES:
            _send_strategy.took(sent, perf_counter_ns() - started, by_sendfile=True)
        self._region_sent(region, sent)

    def _region_sent(self, region: Region, sent: int) -> None:
        if sent == 0:
            raise OSError(f"a file region of {region.size} bytes ends before its end")
        self._taken(sent)
        self._file_bytes_left -= sent // SENT_SHARE
        if sent == region.size:
            self._items.popleft()
            if self._file_bytes_left <= 0 < len(self._items):
                raise TurnIsOver
            return
        if isinstance(region, FileRegion):
            region = self._items[0] = self._pinned_files.hold(region)
        region.position += sent
        region.size -= sent
        raise TurnIsOver
