"""A Postgres listener over the fake engine, in a thread with an event loop of its own; and a client that speaks bytes."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import pack, unpack
from typing import Any

import uvloop

from barnabas.sql.postgres.authentication import Authenticator
from barnabas.sql.postgres.server import Server, serve
from tests.sql.postgres.fake_engine import FakeEngine

SSL_REQUEST = pack(">II", 8, (1234 << 16) + 5679)
V3 = 196_608  # version 3.0
WITHIN_S = 30.0


@dataclass
class Running:
    """A server that runs."""

    engine: FakeEngine
    server: Server
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=anna dbname=flights connect_timeout=20"

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.close(), self.loop).result(WITHIN_S)

    def client(self, **parameters: str) -> Client:
        """Logged in."""
        client = self.stranger()
        client.start(V3, **parameters)
        return client

    def stranger(self) -> Client:
        """Connected."""
        return Client(socket.create_connection(("127.0.0.1", self.port), WITHIN_S))


@contextmanager
def running(
    tls: ssl.SSLContext | None = None,
    authenticator: Authenticator | None = None,
    engine: Any = None,
    *,
    requires_tls: bool = False,
) -> Iterator[Running]:
    """A listener on a free port, whose event loop must meet no fault."""
    engine, loop = engine or FakeEngine(), uvloop.new_event_loop()
    faults: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, fault: faults.append(fault))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        starting = serve(engine, "127.0.0.1", 0, tls, authenticator, requires_tls=requires_tls)
        server = asyncio.run_coroutine_threadsafe(starting, loop).result(WITHIN_S)
        found = Running(engine, server, loop)
        yield found
        found.close()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        engine.close()
    assert faults == []


@dataclass
class Answer:
    """A message of the server."""

    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """Of an error or a notice."""
        return {part[:1].decode(): part[1:].decode() for part in self.body.rstrip(b"\0").split(b"\0")}

    @property
    def text(self) -> str:
        return self.body.rstrip(b"\0").decode()

    @property
    def row(self) -> list[bytes | None]:
        found, at = list[bytes | None](), 2
        for _ in range(unpack(">H", self.body[:2])[0]):
            (size,) = unpack(">i", self.body[at : at + 4])
            at += 4
            found.append(None if size < 0 else self.body[at : at + size])
            at += max(0, size)
        return found


@dataclass
class Client:
    """A socket, and the messages over it."""

    socket: socket.socket
    settings: dict[str, str] = field(default_factory=dict)
    key: bytes = b""
    _buffer: bytes = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, version: int = V3, /, **parameters: str) -> list[Answer]:
        """Send a startup packet; the answers up to ReadyForQuery or an error."""
        self.socket.sendall(startup(version, **parameters))
        found = list[Answer]()
        while not found or found[-1].kind not in "ZE":
            found.append(self.receive())
            if found[-1].kind == "S":
                name, _, value = found[-1].text.partition("\0")
                self.settings[name] = value
            elif found[-1].kind == "K":
                self.key = found[-1].body
        return found

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def receive(self) -> Answer:
        while True:
            if len(self._buffer) >= 5:
                size = 1 + unpack(">I", self._buffer[1:5])[0]
                if len(self._buffer) >= size:
                    found = Answer(chr(self._buffer[0]), self._buffer[5:size])
                    self._buffer = self._buffer[size:]
                    return found
            data = self.socket.recv(65_536)
            if not data:
                raise EOFError
            self._buffer += data

    def round(self, *messages: bytes) -> list[Answer]:
        """Send, and take the answers up to ReadyForQuery."""
        self.send(*messages)
        found = [self.receive()]
        while found[-1].kind != "Z":
            found.append(self.receive())
        return found

    def query(self, text: str) -> list[Answer]:
        """A simple query."""
        return self.round(query(text))

    def rest(self) -> bytes:
        """All bytes until the server closes."""
        found = self._buffer
        try:
            while data := self.socket.recv(65_536):
                found += data
        except ConnectionError:
            pass
        return found

    def close(self) -> None:
        self.socket.close()


def startup(version: int = V3, /, **parameters: str) -> bytes:
    told = {"user": "anna", "database": "flights", **parameters}
    body = pack(">I", version) + b"".join(f"{name}\0{value}\0".encode() for name, value in told.items() if value) + b"\0"
    return pack(">I", len(body) + 4) + body


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + pack(">I", len(body) + 4) + body


def query(text: str) -> bytes:
    return message("Q", text.encode() + b"\0")


def parse(text: str, name: str = "", *oids: int) -> bytes:
    return message("P", f"{name}\0{text}\0".encode() + pack(f">H{len(oids)}I", len(oids), *oids))


def bind(
    *values: bytes | None, portal: str = "", statement: str = "", formats: tuple[int, ...] = (), results: tuple[int, ...] = ()
) -> bytes:
    fields = b"".join(pack(">i", -1) if each is None else pack(">i", len(each)) + each for each in values)
    return message(
        "B", f"{portal}\0{statement}\0".encode() + pack(f">H{len(formats)}H", len(formats), *formats) + pack(">H", len(values)) + fields
        + pack(f">H{len(results)}H", len(results), *results),
    )  # fmt: skip


def describe(kind: str, name: str = "") -> bytes:
    return message("D", f"{kind}{name}\0".encode())


def execute(portal: str = "", most: int = 0) -> bytes:
    return message("E", portal.encode() + b"\0" + pack(">i", most))


def close(kind: str, name: str = "") -> bytes:
    return message("C", f"{kind}{name}\0".encode())


SYNC, FLUSH, TERMINATE = message("S"), message("H"), message("X")
