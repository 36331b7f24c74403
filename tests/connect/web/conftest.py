"""A server whose answers a test chooses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest


class Call(NamedTuple):
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """An answer; a value that is no bytes goes out as JSON."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody changes it


class WebServer:
    """A server. `answer` makes the reply to a call, and a test sets it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answer: Callable[[Call], Reply] = lambda _: Reply()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler_of(web: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
            """Nothing is logged."""

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            call = Call(self.command, self.path, {name.lower(): each for name, each in self.headers.items()}, body)
            web.calls.append(call)
            reply = web.answer(call)
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    return Handler


@pytest.fixture
def web() -> Iterator[WebServer]:
    made = WebServer()
    yield made
    made.close()
