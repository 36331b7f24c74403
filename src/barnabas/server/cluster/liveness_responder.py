"""Gives the other brokers signs of life in a thread: a running process answers even while its loop is busy or a disk is slow.

Owns the connections that other brokers use only for probes (`liveness_prober.py`), from their second request on. The loop answers the
first request (`apis/liveness.py`); its client id shows that only probes will follow. If a request differs from the first only in its
correlation id, the thread sends the same answer with the new id.

Rules
  1. The thread takes over only connections in plain text; with TLS the loop continues to answer.
  2. A different request goes back to the loop, together with its connection. A connection that ends goes back too.
  3. The thread uses nothing of the loop's, only its own descriptors, which are duplicates of those of the connections.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from barnabas import limits

if TYPE_CHECKING:
    from barnabas.server.connection import Connection

_SIZE = Struct(">i")
CORRELATION_ID_ASKED, CORRELATION_ID = slice(8, 12), slice(4, 8)  # in a request and in an answer, from the size field on
PROBER_CLIENT_ID_SUFFIX = "-lookout"  # the end of a prober's client id
READ_BYTES = 4_096  # much more than one request, and a prober sends one at a time


class LivenessResponder:
    """Runs from the first connection until `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._taken: dict[Connection, tuple[_Line, Callable[[], None]]] = {}  # and the callback for the close of the connection
        self._orders: deque[tuple[bool, _Line]] = deque()  # for the thread: begin or end a line
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._ear.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._closed = False
        self._thread: threading.Thread | None = None

    def take(self, connection: Connection, request: bytes, answer: bytes) -> None:
        """From now on, let the thread answer requests like `request` with answers like `answer`, if it can take over the connection."""
        if connection in self._taken or self._closed or len(self._taken) >= limits.MAX_PULSES:
            return
        descriptor = connection.hand_over()
        if descriptor is None:
            return
        line = _Line(descriptor, request, answer, connection)
        leave = partial(self._leave, connection)
        self._taken[connection] = line, leave
        connection.on_close.append(leave)
        self._order(begins=True, line=line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="barnabas-pulse", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the thread. The caller closes the connections first."""
        self._closed = True
        if self._thread is not None:
            self._bell.send(b"\0")
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Line):
                os.close(key.data.descriptor)
        for begins, line in self._orders:
            if begins:
                os.close(line.descriptor)
        self._selector.close()
        self._bell.close()
        self._ear.close()

    def _leave(self, connection: Connection) -> None:
        line, _ = self._taken.pop(connection, (None, None))
        if line is not None:
            self._order(begins=False, line=line)

    def _give_back(self, line: _Line) -> None:
        """Take a connection back that the thread is done with."""
        connection = line.connection
        taken, leave = self._taken.get(connection, (None, None))
        if taken is line and leave is not None:
            del self._taken[connection]
            connection.on_close.remove(leave)
            if line.is_broken:
                connection.close()
            else:
                connection.take_back(line.received)

    def _order(self, *, begins: bool, line: _Line) -> None:
        self._orders.append((begins, line))
        self._bell.send(b"\0")

    # In the thread

    def _run(self) -> None:
        while not self._closed:
            for key, _ in self._selector.select():
                line: _Line | None = key.data
                if line is None:
                    self._hear()
                elif not line.has_ended and not line.answer_next():
                    self._end(line)
                    self._loop.call_soon_threadsafe(self._give_back, line)

    def _hear(self) -> None:
        self._ear.recv(READ_BYTES)
        while self._orders:
            begins, line = self._orders.popleft()
            if begins:
                self._selector.register(line.descriptor, selectors.EVENT_READ, line)
            else:
                self._end(line)

    def _end(self, line: _Line) -> None:
        if not line.has_ended:
            line.has_ended = True
            self._selector.unregister(line.descriptor)
            os.close(line.descriptor)


class _Line:
    """One connection, as the thread knows it."""

    __slots__ = ("_answer", "_request", "connection", "descriptor", "has_ended", "is_broken", "received")

    def __init__(self, descriptor: int, request: bytes, answer: bytes, connection: Connection) -> None:
        self.descriptor = descriptor
        self.connection = connection
        self.has_ended = False
        self.is_broken = False  # an answer could not be sent
        self.received = b""  # received and not answered
        self._request = _SIZE.pack(len(request)) + request
        self._answer = bytearray(answer)

    def answer_next(self) -> bool:
        """Answer the received requests; False if the loop must take over, or the connection has ended."""
        try:
            got = os.read(self.descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # the loop meets the same error
            return False
        self.received += got
        size = len(self._request)
        while len(self.received) >= size:
            asked = bytearray(self.received[:size])
            self._answer[CORRELATION_ID] = asked[CORRELATION_ID_ASKED]
            asked[CORRELATION_ID_ASKED] = self._request[CORRELATION_ID_ASKED]
            if asked != self._request:
                return False
            self.received = self.received[size:]
            try:
                self.is_broken = os.write(self.descriptor, self._answer) < len(self._answer)
            except OSError:  # the connection is gone, or has no room for a few bytes
                self.is_broken = True
            if self.is_broken:
                return False
        return bool(got) and self._request.startswith(self.received[: CORRELATION_ID_ASKED.start])
