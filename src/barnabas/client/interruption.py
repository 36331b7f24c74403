"""Ends the operations of blocking clients from another thread.

An operation waits in a socket, or between two attempts. `interrupt` wakes it from both, and it raises `Interrupted`. Only the opening of a
connection goes on, for at most `socket.connection.setup.timeout.ms`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from barnabas.client.errors import ClientError


class Interrupted(ClientError):
    """The operation was ended by `Interruption.interrupt`; a request without an answer may have had its effect."""

    def __str__(self) -> str:
        return "the operation was interrupted"


class Interruption:
    """That of all clients whose `ClientConfig` has it. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._interrupted = threading.Event()
        self._waiting: set[socket.socket] = set()

    def interrupt(self) -> None:
        """End the operations that run, and those that begin before `resume`."""
        self._interrupted.set()
        for waiting in list(self._waiting):
            with contextlib.suppress(OSError):  # it was closed
                socket.socket.shutdown(waiting, socket.SHUT_RDWR)  # a TLS socket's own method is not safe in another thread

    def resume(self) -> None:
        """Let operations begin again."""
        self._interrupted.clear()

    def check(self) -> None:
        """Raises Interrupted between `interrupt` and `resume`."""
        if self._interrupted.is_set():
            raise Interrupted

    def pause(self, seconds: float) -> None:
        """Wait. Raises Interrupted."""
        self._interrupted.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def wakes(self, waiting: socket.socket) -> Iterator[None]:
        """While a thread reads from the socket or writes to it. Raises Interrupted."""
        self._waiting.add(waiting)
        try:
            self.check()
            yield
        finally:
            self._waiting.discard(waiting)
