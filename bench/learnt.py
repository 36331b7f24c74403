"""Measures the rate of a client with a server that does no work: a loop that repeats a broker's answers to the same requests.

The loop is between the client and a broker, and passes unknown requests to the broker. If a request of a transaction differs
from an earlier one only in the correlation id and the records, the loop sends the same answer again. It does not check, write
or wait. So its rate is the highest that the client and the system calls allow with any server.
"""

from __future__ import annotations

import argparse
import select
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from struct import Struct

from tools.kafka import free_ports

from barnabas.protocol.produce import FIRST_FLEXIBLE_VERSION, read_produce
from barnabas.protocol.request_headers import read_request_header
from bench.loop import Loop
from bench.servers import Barnabas
from bench.wire import varint

PRODUCE, ADD_PARTITIONS_TO_TXN, END_TXN = 0, 24, 26
REPEATED = {PRODUCE, ADD_PARTITIONS_TO_TXN, END_TXN}
RECEIVE_BYTES = 1024 * 1024
_SIZE, _HEAD = Struct(">i"), Struct(">ihhi")  # size; then API key, API version, correlation id
_VERSIONED, _CORRELATED = slice(4, 8), slice(8, 12)  # bytes of a request: API key and version; correlation id
_CORRELATION_AT = 4  # position in a response


class Behind(Barnabas):
    """A broker that advertises the loop's address to its clients."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._advertised = port

    def _settings(self, port: int) -> dict[str, str]:
        return {**super()._settings(port), "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._advertised}"}


class Learnt(Loop):
    """A process with the loop, and the broker to which it passes requests."""

    name = "answers alone"

    def _command(self, stack: ExitStack) -> list[str]:
        (port,) = free_ports(1)
        host, behind = stack.enter_context(Behind(port)).address
        return ["bench.learnt", str(port), host, str(behind)]


class _Line:
    """One connection of a client, and its connection to the broker."""

    def __init__(self, connection: socket.socket, broker: tuple[str, int]) -> None:
        self.connection = connection
        self._behind = socket.create_connection(broker)
        for each in (connection, self._behind):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._before_records: dict[bytes, int] = {}  # API key and version -> bytes before the records in a Produce request

    def take(self, answers: dict[bytes, bytearray]) -> bool:
        """Receive; False at the end of the connection."""
        piece = self.connection.recv(RECEIVE_BYTES)
        received, out = self._received, bytearray()
        received += piece
        while len(received) >= _SIZE.size and len(received) >= (behind := _SIZE.size + _SIZE.unpack_from(received)[0]):
            out += self._answer(received[:behind], answers)
            del received[:behind]
        if out:
            self.connection.sendall(out)
        return bool(piece)

    def _answer(self, request: bytearray, answers: dict[bytes, bytearray]) -> bytearray:
        _, api_key, version, _ = _HEAD.unpack_from(request)
        if api_key not in REPEATED:
            return self._ask(request)
        key = self._key(request, api_key, version)
        known = answers.get(key)
        if known is None:
            known = answers[key] = self._ask(request)
        known[_CORRELATION_AT : _CORRELATION_AT + 4] = request[_CORRELATED]
        return known

    def _key(self, request: bytearray, api_key: int, version: int) -> bytes:
        """The parts of the request that decide its answer."""
        kind, end = bytes(request[_VERSIONED]), len(request)
        if api_key == PRODUCE:
            found = self._before_records.get(kind)
            if found is None:
                found = self._before_records[kind] = _before_records(request, version)
            end = found
        return kind + request[_CORRELATED.stop : end]

    def _ask(self, request: bytearray) -> bytearray:
        self._behind.sendall(request)
        answer = bytearray()
        while len(answer) < _SIZE.size or len(answer) < _SIZE.size + _SIZE.unpack_from(answer)[0]:
            piece = self._behind.recv(RECEIVE_BYTES)
            if not piece:
                raise ConnectionError("the broker closed the connection")
            answer += piece
        return answer

    def close(self) -> None:
        self.connection.close()
        self._behind.close()


def _before_records(request: bytearray, version: int) -> int:
    """The number of bytes before the length of the records; it is the same for all requests of a client to topics with names of
    the same length."""
    with memoryview(request)[_SIZE.size :] as frame:
        ((_, (part,)),) = read_produce(frame, read_request_header(frame).body, version).topics
        assert part.records is not None
        records = bytes(part.records)
        part.records.release()
    length = varint(len(records) + 1) if version >= FIRST_FLEXIBLE_VERSION else _SIZE.pack(len(records))
    return request.index(length + records)


def main(arguments: Sequence[str] | None = None) -> None:
    """The program that `Learnt` starts."""
    parser = argparse.ArgumentParser(prog="python -m bench.learnt")
    parser.add_argument("port", type=int)
    parser.add_argument("broker_host")
    parser.add_argument("broker_port", type=int)
    options = parser.parse_args(arguments)
    broker = options.broker_host, options.broker_port
    answers: dict[bytes, bytearray] = {}
    lines: dict[int, _Line] = {}
    with socket.create_server(("127.0.0.1", options.port)) as listening, select.epoll() as poller:
        poller.register(listening.fileno(), select.EPOLLIN)
        print(options.port, flush=True)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == listening.fileno():
                    line = _Line(listening.accept()[0], broker)
                    lines[line.connection.fileno()] = line
                    poller.register(line.connection.fileno(), select.EPOLLIN)
                elif not lines[descriptor].take(answers):
                    poller.unregister(descriptor)
                    lines.pop(descriptor).close()


if __name__ == "__main__":
    main()
