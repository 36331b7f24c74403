"""The connection to ZooKeeper below kazoo: its socket (with TLS if configured), its log-in, and the time at which the server
last heard from this client.

Rules
  1. A failed log-in is retried like a failed connection, so that changing a password on both sides does not end a broker. kazoo
     would give up for good.
  2. With TLS only the authorities in `zookeeper.ssl.truststore.location` are trusted; kazoo would add those of the system.
     Files are checked before each connection, so a changed certificate needs no restart.
  3. The last error is kept as text (`Handler.trouble`), without secrets, so that the error for a missing answer can name it.

Ugly: kazoo uses `select` to wait for data, which does not see bytes that OpenSSL has decrypted already; `Handler.select` also
looks for these.
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
    """kazoo's threads and sockets, with short attempts: the session must not end because one server is unreachable.

    Args:
        tls: None for unencrypted connections.
        attempt_s: longest attempt for one server.

    Raises:
        ConfigError: a key or trust store cannot be read.
    """

    def __init__(self, tls: TlsSettings | None, *, attempt_s: float) -> None:
        super().__init__()
        self.attempt_s = attempt_s
        self.trouble = ""  # the last error, until a connection succeeds
        self._contexts = None if tls is None else ContextSource(tls, client_context)

    def create_connection(self, *args: Any, timeout: float, hostname: str | None = None, **named: Any) -> Any:
        try:
            plain = super().create_connection(*args, timeout=min(timeout, self.attempt_s), **named)
            if self._contexts is None:
                return plain
            self._contexts.refresh()
            return self._contexts.context.wrap_socket(plain, server_hostname=hostname)
        except OSError as error:  # includes errors of the TLS handshake
            self.trouble = reason_of(error)
            raise

    def select(self, readable: Sequence[Any], writable: Sequence[Any], failing: Sequence[Any], timeout: float) -> Any:
        held = [each for each in readable if isinstance(each, ssl.SSLSocket) and each.pending()]
        found = super().select(readable, writable, failing, 0 if held else timeout)
        return ([*held, *(each for each in found[0] if each not in held)], *found[1:]) if held else found


class Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo comes without types
    """kazoo's connection, extended: it intercepts watch events, and records the granted timeout and the time at which the
    server last heard from this client.

    Args:
        on_change: called with the path of each watch event.
        login: None for no log-in.
    """

    session_timeout_ms = 0
    heard_at_s = 0.0  # the server heard from this client at this `time.monotonic` or later

    def __init__(self, client: KazooClient, on_change: Callable[[str], None], login: Login | Tickets | None) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=client.logger, sasl_options=None if login is None else {})
        self._on_change = on_change
        self._login = login
        self._last: tuple[str, int] | None = None  # the current server
        self._sent_at_s: deque[float] = deque()  # send times of unanswered requests and pings; answers come in order

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        self._sent_at_s.clear()
        began_s = time.monotonic()
        read_timeout_ms, connect_timeout_ms = super()._connect(host, hostip, port)
        self._sent_at_s.clear()
        self.heard_at_s = began_s
        self.handler.trouble = ""
        self._last = hostip, port
        self.session_timeout_ms = round(read_timeout_ms * 1.5)  # kazoo's read timeout is two thirds of the session timeout
        # Leave a server that is silent for half of the session timeout, so that another server hears the
        # client in time. But wait at least two seconds: a server on a busy machine may need that long.
        return max(self.session_timeout_ms / 2, min(2_000.0, read_timeout_ms)), connect_timeout_ms

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        """Log in; with `sasl_options` kazoo calls this on each connection, before it sends any request."""
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
        """Send a message of the log-in; returns the server's next message."""
        self._submit(SASL(response), timeout, xid)
        header, buffer, offset = self._read_header(timeout)
        if header.err or header.xid != xid:
            raise ConnectionDropped(f"error {header.err}")
        return bytes(SASL.deserialize(buffer, offset)[0] or b"")

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """The servers to try, the lost one last."""
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
