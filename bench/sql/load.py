"""Load of the Postgres protocol and of HTTP: prepared requests over connections that stay open, one request at a time on each.

A request and its answer are bytes, so that the load uses little of the machine. `psycopg` would use more CPU than the server.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from bench.wire import BadAnswer

TIMEOUT_S = 60.0
RECEIVE_BYTES = 1 << 16
READY = b"Z\0\0\0\5I"  # the end of every answer of the Postgres protocol
BOUND = b"2\0\0\0\4"  # its begin
LAST_CHUNK = b"0\r\n\r\n"
STATEMENT = b"load"
_I32, _I16 = Struct(">i"), Struct(">h")
Address = tuple[str, int]


def http_request(address: Address, statement: str, parameters: Sequence[object] = ()) -> bytes:
    """A request for one statement."""
    body = json.dumps({"statement": statement, "parameters": list(parameters)}).encode()
    head = f"POST /sql HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def http_open(address: Address) -> socket.socket:
    """A connection."""
    return _connected(address)


def http_whole(answer: bytearray) -> bool:
    """Whether an answer is there. Raises BadAnswer unless its status is 200."""
    end = answer.find(b"\r\n\r\n") + 4
    if end < 4:
        return False
    if not answer.startswith(b"HTTP/1.1 200"):
        raise BadAnswer(answer[:500].decode("latin-1"))
    head = bytes(answer[:end]).lower()
    if b"transfer-encoding: chunked" in head:
        return answer.endswith(LAST_CHUNK)
    at = head.index(b"content-length:") + 15
    return len(answer) >= end + int(head[at : head.index(b"\r\n", at)])


def postgres_open(statement: str) -> Callable[[Address], socket.socket]:
    """Opens connections that have prepared the statement. Raises BadAnswer."""

    def connect(address: Address) -> socket.socket:
        line = _connected(address)
        try:
            start = _I32.pack(196608) + b"user\0bench\0database\0barnabas\0\0"
            line.sendall(_I32.pack(4 + len(start)) + start)
            _until_ready(line)
            line.sendall(_message(b"P", STATEMENT + b"\0" + statement.encode() + b"\0" + _I16.pack(0)) + _message(b"S", b""))
            _until_ready(line)
        except BaseException:
            line.close()
            raise
        return line

    return connect


def postgres_request(*parameters: str) -> bytes:
    """Bind, Execute and Sync of the prepared statement, with results in binary."""
    body = b"\0" + STATEMENT + b"\0" + _I16.pack(0) + _I16.pack(len(parameters))
    for each in parameters:
        text = each.encode()
        body += _I32.pack(len(text)) + text
    bind = _message(b"B", body + _I16.pack(1) + _I16.pack(1))
    return bind + _message(b"E", b"\0" + _I32.pack(0)) + _message(b"S", b"")


def postgres_whole(answer: bytearray) -> bool:
    """Whether an answer is there. Raises BadAnswer for an error."""
    if not answer.endswith(READY):
        return False
    if not answer.startswith(BOUND) or answer[len(BOUND)] not in b"DC":
        raise BadAnswer(bytes(answer[:500]).decode("latin-1"))
    return True


def postgres_idle(address: Address) -> socket.socket:
    """A connection that has prepared nothing."""
    return postgres_open("SELECT 1")(address)


def postgres_query(statement: str) -> bytes:
    """A statement of the simple protocol, with its values in the text."""
    return _message(b"Q", statement.encode() + b"\0")


def postgres_query_whole(answer: bytearray) -> bool:
    """Whether the answer to a query with rows is there. Raises BadAnswer for an error."""
    if not answer.endswith(READY):
        return False
    if not answer.startswith(b"T"):
        raise BadAnswer(bytes(answer[:500]).decode("latin-1"))
    return True


def rate(
    address: Address,
    connect: Callable[[Address], socket.socket],
    requests: Iterator[bytes],
    whole: Callable[[bytearray], bool],
    connections: int,
    seconds: float,
) -> float:
    """The answers a second; each connection sends its next request after the answer."""
    lines = [connect(address) for _ in range(connections)]
    try:
        return _rate(lines, requests, whole, seconds)
    finally:
        for line in lines:
            line.close()


def _rate(lines: Sequence[socket.socket], requests: Iterator[bytes], whole: Callable[[bytearray], bool], seconds: float) -> float:
    answers, count = {line: bytearray() for line in lines}, 0
    with selectors.DefaultSelector() as selector:
        began = time.perf_counter()
        for each in lines:
            selector.register(each, selectors.EVENT_READ)
            each.sendall(next(requests))
        while (elapsed := time.perf_counter() - began) < seconds or not count:
            ready = selector.select(TIMEOUT_S)
            if not ready:
                raise BadAnswer(f"no answer for {TIMEOUT_S:g} s")
            for key, _ in ready:
                line = key.fileobj
                assert isinstance(line, socket.socket)
                if _take(line, answers[line], whole):
                    count += 1
                    line.sendall(next(requests))
    return count / elapsed


def delays_ms(line: socket.socket, requests: Iterator[bytes], whole: Callable[[bytearray], bool], count: int) -> list[float]:
    """The milliseconds from each request to its answer, sorted."""
    found = []
    for _ in range(count):
        answer = bytearray()
        began = time.perf_counter()
        line.sendall(next(requests))
        while not _take(line, answer, whole):
            pass
        found.append((time.perf_counter() - began) * 1e3)
    return sorted(found)


def _take(line: socket.socket, answer: bytearray, whole: Callable[[bytearray], bool]) -> bool:
    """Receive a part of an answer; whether it was the last. Then the answer is emptied."""
    data = line.recv(RECEIVE_BYTES)
    if not data:
        raise BadAnswer("the server closed the connection")
    answer += data
    if not whole(answer):
        return False
    answer.clear()
    return True


def _connected(address: Address) -> socket.socket:
    line = socket.create_connection(address, TIMEOUT_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + _I32.pack(4 + len(body)) + body


def _until_ready(line: socket.socket) -> None:
    answer = b""
    while not answer.endswith(READY):
        data = line.recv(RECEIVE_BYTES)
        if not data:
            raise BadAnswer(answer[-300:].decode("latin-1"))
        answer += data
    if b"SERROR\0" in answer:
        raise BadAnswer(answer[:500].decode("latin-1"))
