"""Gives the other brokers signs of life, in a thread: however busy the loop is, or a disk slow, a process that runs says so.

Owns the connections on which others ask for nothing else (`lookout.py`), from the second time on. The first request is answered by the
loop, as any request is; its client id tells that nothing else is to come. Those that are like it but for the correlation id are answered
as it was.

Rules
  1. Only connections in plain text are taken over; with TLS the loop goes on answering.
  2. A request that is another one ends the connection, as does everything else that is not expected: who asked connects again.
  3. The thread touches nothing of the loop's but its own descriptors, duplicates of those of the connections.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import threading
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING

from barnabas import limits
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from barnabas.security.acls import Operation
from barnabas.server.answers import encode_answer

if TYPE_CHECKING:
    from barnabas.protocol.headers import RequestHeader
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Connection

_SIZE = Struct(">i")
_CORRELATION = slice(4, 8)  # of a request, behind API key and version, and of an answer with its size in front
LOOKOUT = "-lookout"  # how the client id of a lookout ends
READ_BYTES = 4_096  # much more than one request, and there is but one at a time


def give_sign_of_life(broker: Broker, pulse: Pulse, connection: Connection, header: RequestHeader, frame: memoryview) -> None:
    """Answer a WriteTxnMarkers without markers, which is what a lookout asks."""
    answer = encode_answer(WriteTxnMarkersResponse(), header)
    connection.send([answer])
    if not (header.client_id or "").endswith(LOOKOUT):
        return  # somebody else's, on which anything may follow
    if broker.authorizer is None or broker.authorizer.of_connection(connection).allows_cluster(Operation.CLUSTER_ACTION):
        pulse.take(connection, bytes(frame), bytes(answer))


class Pulse:
    """Runs from the first connection until `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._taken: dict[Connection, _Line] = {}
        self._orders: deque[tuple[bool, _Line]] = deque()  # to the thread: begin, or end
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._ear.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._closed = False
        self._thread: threading.Thread | None = None

    def take(self, connection: Connection, request: bytes, answer: bytes) -> None:
        """Answer what is like `request` with what is like `answer` from now on, where that can be done."""
        if connection in self._taken or self._closed or len(self._taken) >= limits.MAX_PULSES:
            return
        descriptor = connection.hand_over()
        if descriptor is None:
            return
        line = _Line(descriptor, request, answer, connection)
        self._taken[connection] = line
        connection.on_close.append(lambda: self._leave(connection))
        self._order(begins=True, line=line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="barnabas-pulse", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """The connections are to be closed before."""
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
        line = self._taken.pop(connection, None)
        if line is not None:
            self._order(begins=False, line=line)

    def _order(self, *, begins: bool, line: _Line) -> None:
        self._orders.append((begins, line))
        self._bell.send(b"\0")

    # In the thread

    def _run(self) -> None:
        while not self._closed:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._hear()
                elif not key.data.answer_next():
                    self._end(key.data)
                    self._loop.call_soon_threadsafe(key.data.connection.close)

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
    """One connection as the thread knows it."""

    __slots__ = ("_answer", "_received", "_request", "connection", "descriptor", "has_ended")

    def __init__(self, descriptor: int, request: bytes, answer: bytes, connection: Connection) -> None:
        self.descriptor = descriptor
        self.connection = connection
        self.has_ended = False
        self._request = _SIZE.pack(len(request)) + request
        self._answer = bytearray(answer)
        self._received = b""

    def answer_next(self) -> bool:
        """Answer what is there; False where the connection is to end."""
        try:
            got = os.read(self.descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._received += got
        if not got or len(self._received) > len(self._request):
            return False
        if len(self._received) < len(self._request):
            return True
        frame, self._received = bytearray(self._received), b""
        self._answer[_CORRELATION] = frame[8:12]
        frame[8:12] = self._request[8:12]
        if frame != self._request:
            return False
        try:
            return os.write(self.descriptor, self._answer) == len(self._answer)
        except OSError:  # it does not take a few bytes, or is gone
            return False
