"""Who waits for room in a socket that is full, by one descriptor for all of them.

A loop lets nobody watch a descriptor that one of its transports owns (uvloop), and a duplicate for each reader that lags would take as
many descriptors as there are connections. So the sockets are in a selector of their own, whose descriptor the loop watches.

The files of what waits to be sent take descriptors too (`pinned_regions.py`). Where these get many, who has waited longest makes way, for
whoever does not read must not take what writing needs.
"""

from __future__ import annotations

import asyncio
import errno
import selectors
from typing import Protocol

from barnabas.server.pinned_regions import PinnedFiles


class WriteWaiter(Protocol):
    """Who waits for room in a socket."""

    @property
    def holds_files(self) -> bool:
        """Whether pieces of files are among what it has to send."""
        ...

    def resume(self) -> None:
        """There is room."""
        ...

    def give_up(self, error: OSError) -> None:
        """Send no more."""
        ...


class WriteWaiters:
    """The full sockets of a broker, and who waits for them, who waits longest first."""

    __slots__ = ("_loop", "_selector", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._selector: selectors.DefaultSelector | None = None  # from the first that waits on
        self._waiting: dict[int, WriteWaiter] = {}  # by descriptor

    def watch(self, descriptor: int, waiting: WriteWaiter) -> None:
        """Have it resume in each turn of the loop in which the socket has room, until `unwatch`.

        Raises:
            OSError: the system does not grant what that takes.
        """
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
            self._loop.add_reader(self._selector.fileno(), self._tell)
        self._selector.register(descriptor, selectors.EVENT_WRITE)
        self._waiting[descriptor] = waiting

    def unwatch(self, descriptor: int) -> None:
        """Before the socket is closed."""
        if self._waiting.pop(descriptor, None) is not None and self._selector is not None:
            self._selector.unregister(descriptor)

    def make_way(self, pinned_files: PinnedFiles, asking: WriteWaiter) -> None:
        """Have those give up who have waited longest with pieces of files, until few enough are held; `asking` stays."""
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
            waiting = self._waiting.get(key.fd)  # None: one of those before has closed it
            if waiting is not None:
                waiting.resume()
