"""The other side of the measured connectors, beside topics: databases, folders, a store of objects, an HTTP server."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.connect.files import fake_s3
from tests.connect.plugins.servers import MariadbServer, PostgresServer

from bench.connect.rows import table_of
from bench.peers.peer import PeerUnavailable

PAGE_ROWS = 1_000  # of an answer of the HTTP server


class Web:
    """An HTTP server in this process: it takes any POST, and gives the rows page by page to a GET.

    Attributes:
        rows: how many rows it has.
    """

    def __init__(self) -> None:
        self.rows = 1
        self._pages: dict[tuple[int, int], bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def page(self, start: int) -> bytes:
        """The rows from a number on."""
        place = start, min(PAGE_ROWS, max(self.rows - start, 0))
        if place not in self._pages:
            self._pages[place] = json.dumps(table_of(*place).to_pylist()).encode()
        return self._pages[place]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer is one write

    def __init__(self, web: Web, *given: Any) -> None:
        self._web = web
        super().__init__(*given)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Nothing is logged."""

    def _answer(self, body: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer(b"{}")

    def do_GET(self) -> None:
        self._answer(self._web.page(int(parse_qs(urlsplit(self.path).query)["start"][0])))


class Stores:
    """Each of them starts when it is asked for, and they end together."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    @cached_property
    def folder(self) -> Path:
        return Path(self._stack.enter_context(TemporaryDirectory(prefix="bench-stores-")))

    @cached_property
    def postgres(self) -> PostgresServer:
        made: PostgresServer = self._server(PostgresServer)
        return made

    @cached_property
    def mariadb(self) -> MariadbServer:
        made: MariadbServer = self._server(MariadbServer)
        return made

    @cached_property
    def s3(self) -> fake_s3.FakeS3:
        return self._stack.enter_context(fake_s3.running())

    @cached_property
    def web(self) -> Web:
        made = Web()
        self._stack.callback(made.close)
        return made

    def _server(self, make: Callable[[], Any]) -> Any:
        try:
            made = make()
        except (AssertionError, FileNotFoundError, KeyError) as error:
            raise PeerUnavailable(f"{make.__name__} does not start: {error}") from None
        self._stack.callback(made.close)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()


def psql(server: PostgresServer, script: str) -> None:
    """Run commands of psql. Raises PeerUnavailable."""
    path = shutil.which("psql")
    if path is None:
        raise PeerUnavailable("psql is not installed (Debian package: postgresql-client)")
    command = [path, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "postgres"]
    done = subprocess.run(command, input=script, text=True, capture_output=True, check=False)
    if done.returncode:
        raise PeerUnavailable(f"psql failed: {done.stderr.strip()}")


def parts_of(first: int, count: int, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of so many rows at most."""
    for begin in range(first, first + count, most):
        yield begin, min(most, first + count - begin)
