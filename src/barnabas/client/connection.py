"""One connection for code without an event loop: a plain socket and its `Wire`.

Rules
  1. After any failure a connection is unusable; its owner opens another one.
  2. The socket has a timeout for each read and write (SO_RCVTIMEO), so that a large response is one system call.

Ugly: SO_RCVTIMEO replaces `settimeout`, because Python's own timeouts make the socket non-blocking. Then MSG_WAITALL has no
effect, and a response of 8 MB takes some hundred calls. TLS takes a call for each TLS record anyway, so it uses Python's
timeouts.
"""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import time
from secrets import token_hex
from typing import Any

from barnabas.client.config import Address, ClientConfig
from barnabas.client.errors import ClientError, ConnectionFailed, TimedOut
from barnabas.client.plans import Call
from barnabas.client.sasl import RENEWED_AFTER, log_in
from barnabas.client.wire import Wire, size_of_frame
from barnabas.errors import KafkaError, ProtocolError
from barnabas.tls.failures import reason_of

NOTHING = contextlib.nullcontext()


class Connection:
    """One socket and its `Wire`; client and broker agree on versions when it opens."""

    def __init__(self, address: Address, config: ClientConfig) -> None:
        self._name = f"{address[0]}:{address[1]}"
        self._host = address[0]
        self._timeout_ms = config.request_timeout_ms
        self.wire = Wire(config.client_id)
        self._buffer = memoryview(bytearray(0))
        self._receive_flags: int = socket.MSG_WAITALL
        try:
            self._socket = self._open(address, config)
        except OSError as error:
            raise ConnectionFailed(self._name, reason_of(error)) from error
        self._interruption = config.interruption
        self._credentials = config.credentials
        self._renew_at_s = math.inf
        try:
            self._agree()
            self._log_in()
        except BaseException:
            self.close()
            raise

    def _open(self, address: Address, config: ClientConfig) -> socket.socket:
        plain = socket.create_connection(address, config.socket_connection_setup_timeout_ms / 1000)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if config.receive_buffer_bytes > 0:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.receive_buffer_bytes)
        if config.tls is not None:
            self._receive_flags = 0  # a TLS socket accepts no flags, and returns one TLS record per call
            try:
                opened = config.tls().wrap_socket(plain, server_hostname=address[0])
            except BaseException:
                plain.close()
                raise
            opened.settimeout(config.request_timeout_ms / 1000)
            return opened
        plain.settimeout(None)
        limit = struct.pack("ll", *divmod(config.request_timeout_ms * 1000, 1_000_000))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        return plain

    def _agree(self) -> None:
        frame: bytes | None = self.wire.send_hello()
        while frame is not None:
            self._write(frame)
            body = self._read_frame(reuse=False)
            try:
                frame = self.wire.receive_hello(body)
            except (ProtocolError, KafkaError) as error:
                raise ConnectionFailed(self._name, str(error)) from error

    def _log_in(self) -> None:
        if self._credentials is None:
            return
        login = log_in(self._credentials.at_hand(self._host), self._name, token_hex(16))
        answer: Any = None
        try:
            while True:
                self._write(self.wire.send(login.send(answer)))
                answer = self.receive()
        except StopIteration as end:
            if end.value:
                self._renew_at_s = time.monotonic() + end.value * RENEWED_AFTER / 1000

    def send(self, call: Call) -> None:
        """Send a request, after another log-in if the session is about to end; raises ClientError."""
        if time.monotonic() >= self._renew_at_s and not self.wire.in_flight:
            self._log_in()
        self._write(self.wire.send(call.request, call.at_most, call.at_least))

    def receive(self, *, reuse: bool = False) -> Any:
        """The next response; with `reuse` its buffers are valid only until the next call."""
        body = self._read_frame(reuse=reuse)
        try:
            return self.wire.receive(body)
        except ProtocolError as error:
            raise ConnectionFailed(self._name, str(error)) from error

    def close(self) -> None:
        """Close the socket; requests in flight get no response."""
        self._socket.close()

    def _waiting(self) -> contextlib.AbstractContextManager[None]:
        """While a thread uses the socket, `interruption` can wake it."""
        return NOTHING if self._interruption is None else self._interruption.wakes(self._socket)

    def _write(self, frame: bytes) -> None:
        try:
            with self._waiting():
                self._socket.sendall(frame)
        except OSError as error:
            raise self._failure(error) from error

    def _read_frame(self, *, reuse: bool) -> memoryview:
        with self._waiting():
            return self._frame(reuse=reuse)

    def _frame(self, *, reuse: bool) -> memoryview:
        try:
            size = size_of_frame(self._read(memoryview(bytearray(4))))
        except ProtocolError as error:
            raise ConnectionFailed(self._name, str(error)) from error
        if not reuse:
            return self._read(memoryview(bytearray(size)))
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size + (size >> 3)))
        return self._read(self._buffer[:size])

    def _read(self, view: memoryview) -> memoryview:
        done = 0
        while done < len(view):
            try:
                received = self._socket.recv_into(view[done:], 0, self._receive_flags)
            except OSError as error:
                raise self._failure(error) from error
            if received == 0:
                raise ConnectionFailed(self._name, "closed by the broker")
            done += received
        return view

    def _failure(self, error: OSError) -> ClientError:
        if isinstance(error, BlockingIOError | TimeoutError):
            return TimedOut(f"answer of {self._name}", self._timeout_ms)
        return ConnectionFailed(self._name, reason_of(error))
