"""Watches all full sockets with one descriptor, and tells their outboxes when there is room.

A loop (uvloop) does not watch a descriptor that belongs to one of its transports. A duplicate for each slow reader would take as many
descriptors as there are connections. So a separate selector has the sockets, and the loop watches the selector's descriptor.

Files with unsent data take descriptors too (`pinned_regions.py`). If there are too many of them, the connections that have waited longest
are closed: clients that do not read must not use up the descriptors for writes.
"""

from __future__ import annotations

import asyncio
import errno
import selectors
from typing import Protocol

from barnabas.server.pinned_regions import PinnedFiles


class WriteWaiter(Protocol):
    """An outbox that waits for room in a socket."""

    @property
    def holds_files(self) -> bool:
        """Whether its unsent data includes pieces of files."""
        ...

    def resume(self) -> None:
        """Continue to send, because there is room."""
        ...

    def give_up(self, error: OSError) -> None:
        """Stop sending, because of `error`."""
        ...


class WriteWaiters:
    """The full sockets of a broker, and the outboxes that wait for them, the longest waiting first."""

    __slots__ = ("_loop", "_selector", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._selector: selectors.DefaultSelector | None = None  # made for the first outbox that waits
        self._waiting: dict[int, WriteWaiter] = {}  # by descriptor

    def watch(self, descriptor: int, waiting: WriteWaiter) -> None:
        """Call `waiting.resume` in each turn of the loop in which the socket has room, until `unwatch`.

        Raises:
            OSError: the system has no resources for the watch.
        """
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
            self._loop.add_reader(self._selector.fileno(), self._tell)
        self._selector.register(descriptor, selectors.EVENT_WRITE)
        self._waiting[descriptor] = waiting

    def unwatch(self, descriptor: int) -> None:
        """Stop watching. Call this before the socket is closed."""
        if self._waiting.pop(descriptor, None) is not None and self._selector is not None:
            self._selector.unregister(descriptor)

    def make_way(self, pinned_files: PinnedFiles, asking: WriteWaiter) -> None:
        """Close the connections that have waited longest with pieces of files, until few enough files are held. `asking` stays."""
        for waiting in list(self._waiting.values()):
            if not pinned_files.is_crowded:
                return
            if waiting is not asking and waiting.holds_files:
                waiting.give_up(OSError(errno.EMFILE, "too many files are held for readers that lag"))

    def close(self) -> None:
        if self._selector is not None:
            self._loop.remove_reader(self._selector.fileno())
            self._selector.close()
            self._selector = None
        self._waiting.clear()

    def _tell(self) -> None:
        assert self._selector is not None
        for key, _ in self._selector.select(0):
            waiting = self._waiting.get(key.fd)  # None: an earlier outbox of this loop has closed it
            if waiting is not None:
                waiting.resume()
