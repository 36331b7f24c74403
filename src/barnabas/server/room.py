"""Who waits for room in a socket that is full, by one descriptor for all of them.

A loop lets nobody watch a descriptor that one of its transports owns (uvloop), and a duplicate for each reader that lags would take as
many descriptors as there are connections. So the sockets are in a selector of their own, whose descriptor the loop watches.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable


class Room:
    """The full sockets of a broker."""

    __slots__ = ("_loop", "_selector", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._selector: selectors.DefaultSelector | None = None  # from the first that waits on
        self._waiting: dict[int, Callable[[], None]] = {}  # by descriptor

    def watch(self, descriptor: int, on_room: Callable[[], None]) -> None:
        """Have `on_room` called in each turn of the loop in which the socket has room, until `unwatch`.

        Raises:
            OSError: the system does not grant what that takes.
        """
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
            self._loop.add_reader(self._selector.fileno(), self._tell)
        self._selector.register(descriptor, selectors.EVENT_WRITE)
        self._waiting[descriptor] = on_room

    def unwatch(self, descriptor: int) -> None:
        """Before the socket is closed."""
        if self._waiting.pop(descriptor, None) is not None and self._selector is not None:
            self._selector.unregister(descriptor)

    def close(self) -> None:
        if self._selector is not None:
            self._loop.remove_reader(self._selector.fileno())
            self._selector.close()
            self._selector = None
        self._waiting.clear()

    def _tell(self) -> None:
        assert self._selector is not None
        for key, _ in self._selector.select(0):
            on_room = self._waiting.get(key.fd)  # None: one of those before has closed it
            if on_room is not None:
                on_room()
