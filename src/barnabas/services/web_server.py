"""The web server: uvicorn's HTTP protocol on a given socket, with limits on heads, connections, idle clients and slow readers.

It does not use uvicorn's own `Server`: that handles the signals of the process, and ends the process when it cannot start.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from email.utils import formatdate
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from barnabas import limits
from barnabas.services.application import Application
from barnabas.services.one_write import OneWrite
from barnabas.services.presence import Presence
from barnabas.web.routing import HttpError

logger = logging.getLogger(__name__)
OFFERS = frozenset({b"upgrade", b"http2-settings"})


class LimitedProtocol(HttpToolsProtocol):
    """One connection. A request with a too long line or head goes to the application with the refusal in its state.

    A client must read its answers. When bytes wait for it, it has a limited time to read some, and then again for the next
    ones. This also applies to a connection that closes after its answer.
    """

    application: Application
    _head_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None
    _presence: Presence | None = None
    _head_bytes = 0
    _in_head = _has_begun = True  # the first request of a connection counts as begun: a silent client has to begin it

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > limits.MAX_SERVICE_CONNECTIONS:
            transport.abort()
            return
        self._presence = self.app_state["presence"] = Presence()
        transport.set_write_buffer_limits(limits.SERVICE_ANSWER_BUFFER_BYTES)
        encryption = transport.get_extra_info("ssl_object")
        if encryption is not None:
            self.app_state["certificate"] = encryption.getpeercert(binary_form=True)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None
        super().connection_lost(exc)
        if self._presence is not None:
            self._presence.leave()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                break
            except HttpParserUpgrade as offered:
                data = self._without_offer(data[offered.args[0] :])
            except HttpParserError:
                self.send_400_response("")
                break
        if not self._in_head or self.transport.is_closing():
            return
        if self._head_bytes > 2 * limits.MAX_SERVICE_HEAD_BYTES:
            self.transport.abort()  # abort: this head is larger than any valid one and has not ended
        elif self._has_begun and self._head_timer is None:
            self._await_head()  # few heads come in pieces, so the others need no timer

    def _without_offer(self, rest: bytes) -> bytes:
        """The bytes for a new parser: a request without its offer of another protocol, and the bytes after its head.

        The parser expects no body in a request with such an offer, but Java's client offers h2c with the first request of a
        connection.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if method == b"CONNECT":
            self.send_400_response("")
            return b""
        lines = [b"%s %s HTTP/%s" % (method, self.url, version.encode())]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(word for word in value.split(b",") if word.strip().lower() not in OFFERS)
            if name not in OFFERS and (value or name != b"connection"):
                lines.append(b"%s: %s" % (name, value))
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._head_bytes = 0
        return b"\r\n".join(lines) + b"\r\n\r\n" + rest

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP with an error in the form of the service."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # the response that is being sent is the last one on this connection
            if self.cycle.more_body:
                self.cycle.scope["state"]["refused"] = HttpError(400, "HTTP 400 Bad Request")
                self.cycle.message_event.set()
            return
        response = self.application.malformed(self.client[0] if self.client else "")
        headers = [*self.server_state.default_headers, *response.headers, (b"content-length", b"%d" % len(response.body))]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + lines + b"\r\n" + response.body)
        self._watch_reader()
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._watch_reader()
        super().resume_writing()

    def on_response_complete(self) -> None:
        self._watch_reader()
        super().on_response_complete()

    def _watch_reader(self) -> None:
        """Start a period: an answer was written, or the client has read one."""
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None
        if self.transport.get_write_buffer_size():
            self._reading_timer = self.loop.call_later(limits.SERVICE_ANSWER_TIMEOUT_S, self._give_up_reader)

    def _give_up_reader(self) -> None:
        self._reading_timer = None
        waiting = self.transport.get_write_buffer_size()
        if waiting:
            logger.info("event=http-slow-reader client=%s waiting=%d", self.client[0] if self.client else "", waiting)
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._has_begun = True

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # the parser stops here; the request is parsed again without the upgrade
        self._forget_timer()
        self._in_head, self._has_begun, self._head_bytes = False, False, 0
        state = self.scope["state"]
        if len(self.url) > limits.MAX_SERVICE_TARGET_BYTES:
            state["refused"] = HttpError(414, "URI Too Long")
        elif sum(len(name) + len(value) + 4 for name, value in self.headers) > limits.MAX_SERVICE_HEAD_BYTES:
            state["refused"] = HttpError(431, "Request Header Fields Too Large")
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.transport = OneWrite(cycle)  # type: ignore[assignment]  # OneWrite has the methods that a cycle uses
        super()._start_asgi_task(cycle, app)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0
        if not self.pipeline:
            self.flow.resume_reading()  # a connection that is not read from does not tell that its client goes away

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(limits.SERVICE_HEAD_TIMEOUT_S, self._give_up)

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.abort()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class WebServer:
    """Serves one application on one socket."""

    def __init__(self, application: Application, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._config = Config(
            application,
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(limits.SERVICE_IDLE_TIMEOUT_S),
        )
        self._config.load()
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # clients must not fill the log
        self._state = ServerState()
        self._application, self._socket, self._tls = application, listening, tls
        self._server: asyncio.Server | None = None
        self._clock: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._state.connections)

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._tell_date()
        limited: dict[str, Any] = {}
        if self._tls is not None:
            limited = {
                "ssl_handshake_timeout": limits.SERVICE_HEAD_TIMEOUT_S,
                "ssl_shutdown_timeout": limits.SERVICE_HEAD_TIMEOUT_S,
            }
        self._server = await loop.create_server(self._protocol, sock=self._socket, ssl=self._tls, **limited)

    def _protocol(self) -> LimitedProtocol:
        made = LimitedProtocol(config=self._config, server_state=self._state, app_state={})
        made.application = self._application
        return made

    def _tell_date(self) -> None:
        self._state.default_headers[:] = [(b"date", formatdate(time.time(), usegmt=True).encode())]
        self._clock = asyncio.get_running_loop().call_later(1.0, self._tell_date)

    async def close(self) -> None:
        """Accept no more connections, wait for the current requests, then close the connections."""
        if self._clock is not None:
            self._clock.cancel()
        if self._server is None:
            self._socket.close()
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=limits.SERVICE_STOP_TIMEOUT_S)
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self._server = None
