"""TLS between a socket and a connection: makes the handshake, decrypts into the connection's buffers, and is its transport.

Owns one OpenSSL object over the BIOs that all connections of the loop share (`TlsBuffers`), and the encrypted bytes received during a
pause. The `Connection` above knows nothing of TLS except its principal. It is made with the socket, so that limits count half-open
connections too, and gets no byte before the handshake is complete.

Rules
  1. If the handshake takes longer than `limits.TLS_HANDSHAKE_TIMEOUT_S` seconds or more than `limits.MAX_TLS_HANDSHAKE_BYTES`, the
     connection ends.
  2. While the `Connection` or another connection runs, the outgoing BIO is empty, because its bytes are in the outbox. Until the end of
     this turn, no other connection touches the incoming BIO.
  3. While the connection is paused, nothing is decrypted; received bytes stay encrypted, at most one buffer of `TlsBuffers`.

After a failed handshake the client gets an alert. Then the connection stays open until the other side has closed it, for at most
`LINGER_S` seconds: if a socket is closed with unread bytes in it, the alert is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import os
import ssl
from typing import Any, cast

from barnabas import limits
from barnabas.security.principals import NoMatchingRule
from barnabas.server.authentication.principals import PrincipalRefused
from barnabas.server.connection import Connection
from barnabas.server.tls.buffers import TlsBuffers
from barnabas.server.tls.listeners import ListenerTls
from barnabas.server.tls.outbox import TlsOutbox
from barnabas.tls.failures import reason_of

logger = logging.getLogger(__name__)
LINGER_S = 1.0


class State(enum.Enum):
    HANDSHAKE = enum.auto()
    OPEN = enum.auto()
    LINGERING = enum.auto()  # refused; data is dropped until the other side closes the connection
    CLOSED = enum.auto()


RECEIVING = frozenset({State.HANDSHAKE, State.OPEN})


class TlsProtocol(asyncio.BufferedProtocol):
    """The asyncio protocol of one TLS client, and the transport of its `Connection`.

    Args:
        terms: the TLS settings of the listener; this connection keeps their current context until its end.
    """

    def __init__(self, connection: Connection, terms: ListenerTls, buffers: TlsBuffers, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._terms = terms
        self._buffers = buffers
        self._loop = loop
        self._tls = terms.context.wrap_bio(buffers.incoming, buffers.outgoing, server_side=True)
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._target = buffers.received  # the buffer of the current read
        self._outbox: TlsOutbox | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._state = State.HANDSHAKE
        self._handshake_bytes = 0
        self._has_goodbye = False  # the other side will send no more
        self._paused = False
        self._kept = b""  # received while paused

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._descriptor = transport.get_extra_info("socket").fileno()
        self._timer = self._loop.call_later(limits.TLS_HANDSHAKE_TIMEOUT_S, self._expire)
        # this object has the parts of a transport that the connection needs
        self._connection.connection_made(cast(asyncio.BaseTransport, self))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._connection.connection_lost(exc)

    def eof_received(self) -> bool:
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        buffers = self._buffers
        self._target = buffers.received_small if self._connection.frames.has_small_frames else buffers.received
        return self._target

    def buffer_updated(self, nbytes: int) -> None:
        if self._state in RECEIVING:
            self._take(self._target[:nbytes])

    # --- called by the connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "outbox":
            return self._make_outbox
        return default if self._transport is None else self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._paused = True
        if self._transport is not None and self._state is not State.CLOSED:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self._loop.call_soon(self._go_on)  # not within the caller's turn of the loop: rule 2

    def abort(self) -> None:
        """Send a close_notify if the socket takes it, and close."""
        is_free = self._outbox is None or not self._outbox.waiting_bytes
        # with pending bytes, `unwrap` would read the data of another connection
        if self._state is State.OPEN and is_free and not self._buffers.incoming.pending:
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()  # sends close_notify, and does not wait for the answer
            self._write_now()
        self._end()
        if self._transport is not None:
            self._transport.abort()

    # --- inside

    def _make_outbox(self, *args: Any) -> TlsOutbox:
        self._outbox = TlsOutbox(*args, tls=self._tls, buffers=self._buffers)
        return self._outbox

    def _take(self, data: memoryview) -> None:
        try:
            self._work_on(data)
        except ssl.SSLError as error:
            self._fail(reason_of(error))
        except (NoMatchingRule, PrincipalRefused) as error:
            self._fail(str(error))
        finally:
            self._buffers.forget()  # the next connection must not find data of a connection that closed in the meantime

    def _work_on(self, data: memoryview) -> None:
        """Decrypt `data` and the data that OpenSSL still has, as far as the connection takes it."""
        incoming = self._buffers.incoming
        incoming.write(data)
        if self._state is State.HANDSHAKE:
            self._shake_hands(len(data))
        while self._state is State.OPEN:
            if self._paused:
                self._kept += incoming.read()
                self.pause_reading()  # uvloop begins to read even if `connection_made` has paused it
                return
            filled, ended = self._fill(self._connection.get_buffer(-1))
            self._hand_over_sealed()
            if filled:
                self._connection.buffer_updated(filled)
            if ended:
                break
        if self._has_goodbye:  # the data before the goodbye is handled
            self._connection.close()

    def _fill(self, target: memoryview) -> tuple[int, bool]:
        """Decrypt into `target`. Returns the number of bytes, and whether that was all."""
        read, filled, size = self._tls.read, 0, len(target)
        try:
            while filled < size:
                got: int = read(size - filled, target[filled:])  # type: ignore[assignment]  # with a buffer, `read` returns the number of bytes
                if not got:
                    self._has_goodbye = True
                    return filled, True
                filled += got
        except ssl.SSLWantReadError:
            return filled, True
        return filled, False

    def _shake_hands(self, received: int) -> None:
        """Take one step of the handshake, with `received` more bytes."""
        self._handshake_bytes += received
        if self._handshake_bytes > limits.MAX_TLS_HANDSHAKE_BYTES:
            self._fail(f"a handshake of more than {limits.MAX_TLS_HANDSHAKE_BYTES} bytes")
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._hand_over_sealed()
            return
        self._hand_over_sealed()
        certificate = self._tls.getpeercert(binary_form=True)
        if self._connection.authentication is None:  # otherwise the log-in names the principal
            self._terms.name(self._connection, certificate)
        if self._timer is not None:
            self._timer.cancel()
        self._terms.metrics.tls_handshakes += 1
        self._state = State.OPEN

    def _hand_over_sealed(self) -> None:
        """Queue OpenSSL's own records after the waiting bytes."""
        if self._buffers.outgoing.pending and self._outbox is not None:
            self._outbox.push_sealed(self._buffers.outgoing.read())
            self._outbox.flush()
            if self._outbox is not None and self._outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
                self._connection.pause("unsent")

    def _go_on(self) -> None:
        if self._paused or self._state not in RECEIVING:
            return
        if self._state is State.OPEN:  # OpenSSL may have a part of a record too
            kept, self._kept = self._kept, b""
            self._take(memoryview(kept))
        if not self._paused and self._state in RECEIVING and self._transport is not None:
            self._transport.resume_reading()

    def _expire(self) -> None:
        if self._state is State.HANDSHAKE:
            self._refused("no handshake in time")
        self._connection.close()

    def _fail(self, reason: str) -> None:
        """Send an alert and close the connection; after a failed handshake, close it a little later."""
        if self._state is State.HANDSHAKE:
            self._refused(reason)
        else:
            logger.warning("event=connection-closed peer=%s reason=%r", self._connection.peer, reason)
        self._write_now()
        transport = self._transport
        if transport is None or self._state is not State.HANDSHAKE:
            self._connection.close()
            return
        self._state = State.LINGERING
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_S, self._connection.close)
        transport.write_eof()

    def _refused(self, reason: str) -> None:
        self._terms.metrics.tls_handshakes_failed += 1
        logger.warning(
            "event=handshake-failed peer=%s listener=%s reason=%r", self._connection.peer, self._connection.listener, reason
        )

    def _write_now(self) -> None:
        """Send OpenSSL's output, an alert or a close_notify, if the socket takes it."""
        data = self._buffers.outgoing.read()
        if data and (self._outbox is None or not self._outbox.waiting_bytes):
            with contextlib.suppress(OSError):
                os.write(self._descriptor, data)

    def _end(self) -> None:
        self._state = State.CLOSED
        self._kept = b""
        self._outbox = None
        if self._timer is not None:
            self._timer.cancel()
