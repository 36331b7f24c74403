"""The connection to ZooKeeper under kazoo: its socket, with TLS where that is asked for, its log-in, and when the server heard from us.

Rules
  1. A log-in that fails is tried again like a connection that cannot be made, so that a password which is changed there and here does not
     end a broker. kazoo would give up for good.
  2. With TLS whoever is believed is who `zookeeper.ssl.truststore.location` names, and nobody else; kazoo would add the authorities of the
     system. Files are looked at before each connection, so new certificates need no restart.
  3. What went wrong last is kept in words (`Handler.trouble`), without secrets: whoever waits for an answer says why there is none.

Ugly: kazoo asks `select` whether a socket has something, which knows nothing of bytes that OpenSSL has decrypted already; `Handler.select`
adds that.
"""

from __future__ import annotations

import secrets
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import WATCH_XID, ConnectionHandler
from kazoo.protocol.serialization import SASL, Watch

from barnabas.client.errors import ClientError
from barnabas.client.kerberos import Tickets
from barnabas.security.digest_md5 import BadChallenge, Login, answer, check_server
from barnabas.tls.contexts import client_context
from barnabas.tls.failures import reason_of
from barnabas.tls.settings import TlsSettings
from barnabas.tls.source import ContextSource

NONCE_BYTES = 18
REFUSED = "log-in by SASL refused"


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo comes without types
    """kazoo's threads and sockets; one server that does not let itself be connected to must not cost the session.

    Args:
        tls: None for connections in the clear.
        attempt_s: the longest that is spent on one server.

    Raises:
        ConfigError: a key or trust store cannot be read.
    """

    def __init__(self, tls: TlsSettings | None, *, attempt_s: float) -> None:
        super().__init__()
        self.attempt_s = attempt_s
        self.trouble = ""  # of the last connection, while there is no better one
        self._contexts = None if tls is None else ContextSource(tls, client_context)

    def create_connection(self, *args: Any, timeout: float, hostname: str | None = None, **named: Any) -> Any:
        try:
            plain = super().create_connection(*args, timeout=min(timeout, self.attempt_s), **named)
            if self._contexts is None:
                return plain
            self._contexts.refresh()
            return self._contexts.context.wrap_socket(plain, server_hostname=hostname)
        except OSError as error:  # of TLS, too
            self.trouble = reason_of(error)
            raise

    def select(self, readable: Sequence[Any], writable: Sequence[Any], failing: Sequence[Any], timeout: float) -> Any:
        held = [each for each in readable if isinstance(each, ssl.SSLSocket) and each.pending()]
        found = super().select(readable, writable, failing, 0 if held else timeout)
        return ([*held, *(each for each in found[0] if each not in held)], *found[1:]) if held else found


class Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo comes without types
    """kazoo's connection with an eye on watch events, on the timeout that the server granted, and on when it heard from us.

    Args:
        on_change: called with the path of each watch event.
        login: None for nobody.
    """

    session_timeout_ms = 0
    heard_at_s = 0.0  # the server heard from this client at this time or later; of `time.monotonic`

    def __init__(self, client: KazooClient, on_change: Callable[[str], None], login: Login | Tickets | None) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=client.logger, sasl_options=None if login is None else {})
        self._on_change = on_change
        self._login = login
        self._last: tuple[str, int] | None = None  # the server that was connected to
        self._sent_at_s: deque[float] = deque()  # of requests and pings that are not answered; answers come in their order

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        self._sent_at_s.clear()
        began_s = time.monotonic()
        read_timeout_ms, connect_timeout_ms = super()._connect(host, hostip, port)
        self._sent_at_s.clear()
        self.heard_at_s = began_s
        self.handler.trouble = ""
        self._last = hostip, port
        self.session_timeout_ms = round(read_timeout_ms * 1.5)  # kazoo reads for two thirds of it
        # A server that is silent for half of it is left, so that there is time to be heard by another. Not sooner than after two seconds:
        # a server on a busy machine may need as long.
        return max(self.session_timeout_ms / 2, min(2_000.0, read_timeout_ms)), connect_timeout_ms

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        """Log in; kazoo asks for this on each connection where it has `sasl_options`, before any request is sent."""
        assert self._login is not None
        try:
            if isinstance(self._login, Tickets):
                self._show_ticket(self._login, host, timeout)
            else:
                sent = answer(self._login, self._challenge(b"", 1, timeout), secrets.token_urlsafe(NONCE_BYTES))
                check_server(sent.expected, self._challenge(sent.response, 2, timeout))
        except (BadChallenge, ClientError, ConnectionDropped, KazooException) as error:
            self.handler.trouble = f"{REFUSED}: {error}" if isinstance(error, BadChallenge | ClientError) else REFUSED
            raise ConnectionDropped(self.handler.trouble) from error

    def _show_ticket(self, tickets: Tickets, host: str, timeout: float) -> None:
        tokens = tickets.begin(host).tokens()
        token = next(tokens)
        for xid in count(1):
            said = self._challenge(token, xid, timeout)
            try:
                token = tokens.send(said)
            except StopIteration:
                return

    def _challenge(self, response: bytes, xid: int, timeout: float) -> bytes:
        """What the server says next."""
        self._submit(SASL(response), timeout, xid)
        header, buffer, offset = self._read_header(timeout)
        if header.err or header.xid != xid:
            raise ConnectionDropped(f"error {header.err}")
        return bytes(SASL.deserialize(buffer, offset)[0] or b"")

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """The server that was lost comes last."""
        return sorted(super()._expand_client_hosts(), key=lambda server: server[1:] == self._last)

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        return super()._invoke(min(timeout, self.handler.attempt_s), request, xid)

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:
        self._sent_at_s.append(time.monotonic())
        super()._submit(request, timeout, xid)

    def _read_header(self, timeout: float) -> Any:
        found = super()._read_header(timeout)
        if found[0].xid != WATCH_XID and self._sent_at_s:
            self.heard_at_s = self._sent_at_s.popleft()
        return found

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        event, _ = Watch.deserialize(buffer, offset)
        self._on_change(event.path)
