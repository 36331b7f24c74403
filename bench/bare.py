"""The limit of the machine: bare loops of the system calls that every broker needs.

`receive` reads requests from sockets, and writes requests that arrived together to a file with one call. `send` sends a file,
as a whole or in pieces; the client requests each piece with one byte. Neither reads the data. Each loop runs in a process of
its own, so that its CPU time is measured separately. The same client loads it, in turns with the servers. The memory is as for
the servers: files that grow are new, and a sent file is in the page cache.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from struct import Struct

from bench.load import Load
from bench.loop import Loop
from bench.wire import AnswerShape

RECEIVE, SEND = "receive", "send"
TOPIC = "bare"
ASK = b"?"
RECEIVE_BYTES = 4 * 1024 * 1024
SEND_BYTES = 1024 * 1024  # bytes per system call, as many as a consumer requests from one partition
_HEAD = Struct(">ii")  # of a response: size, correlation id
_REQUEST = Struct(">ihhi")  # size, API key, API version, correlation id


class Bare(Loop):
    """A process with one of the loops."""

    name = "bare system calls"

    def __init__(self, kind: str, size: int = 0, pull_bytes: int = 0) -> None:
        """
        Args:
            size: the size in bytes of the file to send.
            pull_bytes: the bytes for each request of the client; 0 sends all at once.
        """
        super().__init__()
        self._kind, self._sizes = kind, (size, pull_bytes)

    def _command(self, stack: ExitStack) -> list[str]:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-bench-bare-"))
        return ["bench.bare", self._kind, folder, *map(str, self._sizes)]


def drain(address: tuple[str, int], records: int, total: int, pull_bytes: int = 0) -> Load:
    """Receive `total` bytes from a `send` loop; they count as `records` records. If the loop waits for requests, each request
    is for `pull_bytes`."""
    buffer = memoryview(bytearray(4 * SEND_BYTES))
    began, left = time.perf_counter(), total
    with socket.create_connection(address) as line:
        while left:
            wanted = min(left, pull_bytes or left)
            left -= wanted
            if pull_bytes:
                line.send(ASK)
            filled = 0
            while filled < wanted:  # one request at a time, because a consumer waits for each response
                at = filled % len(buffer)
                got = line.recv_into(buffer[at : at + wanted - filled])
                if not got:
                    raise ConnectionError("the loop ended")
                filled += got
    return Load(1, records, time.perf_counter() - began)


def _receive(listening: socket.socket, folder: Path) -> None:
    """Write the requests of each connection to a file and answer like a broker; the file is removed at the end of the
    connection."""
    lines: dict[int, _Line] = {}
    answer = bytearray(AnswerShape(TOPIC, 1).size)
    with select.epoll() as poller:
        poller.register(listening.fileno(), select.EPOLLIN)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == listening.fileno():
                    line = _Line(listening.accept()[0], folder)
                    lines[line.connection.fileno()] = line
                    poller.register(line.connection.fileno(), select.EPOLLIN)
                elif not lines[descriptor].take(answer):
                    poller.unregister(descriptor)
                    lines.pop(descriptor).close()


class _Line:
    """One connection and its file."""

    def __init__(self, connection: socket.socket, folder: Path) -> None:
        self.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._path = folder / str(connection.fileno())
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._filled = 0

    def take(self, answer: bytearray) -> bool:
        """Receive; False at the end of the connection."""
        got = self.connection.recv_into(self._buffer[self._filled :])
        self._filled += got
        position, answers = 0, bytearray()
        while self._filled - position >= _REQUEST.size:
            size, _, _, correlation_id = _REQUEST.unpack_from(self._buffer, position)
            behind = position + 4 + size
            if behind > self._filled:
                break
            _HEAD.pack_into(answer, 0, len(answer) - 4, correlation_id)
            answers += answer
            position = behind
        if answers:
            os.write(self._file, self._buffer[:position])
            self.connection.sendall(answers)
            self._buffer[: self._filled - position] = self._buffer[position : self._filled]
            self._filled -= position
        return got > 0

    def close(self) -> None:
        self.connection.close()
        os.close(self._file)
        self._path.unlink()


def _send(listening: socket.socket, folder: Path, size: int, pull_bytes: int) -> None:
    """Send a whole file to each client that connects and requests it."""
    path = folder / "data"
    with path.open("wb") as out:
        for _ in range(0, size, SEND_BYTES):
            out.write(bytes(SEND_BYTES))
        out.truncate(size)
    with path.open("rb") as file:
        while True:
            connection = listening.accept()[0]
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                position = 0
                while position < size and (not pull_bytes or connection.recv(len(ASK))):
                    end = min(position + pull_bytes, size) if pull_bytes else size
                    while position < end:
                        position += os.sendfile(connection.fileno(), file.fileno(), position, min(SEND_BYTES, end - position))


def main(arguments: Sequence[str] | None = None) -> None:
    """The program that `Bare` starts: it prints its port and runs until it is killed."""
    parser = argparse.ArgumentParser(prog="python -m bench.bare")
    parser.add_argument("kind", choices=(RECEIVE, SEND))
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", type=int)
    parser.add_argument("pull_bytes", type=int)
    options = parser.parse_args(arguments)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        if options.kind == RECEIVE:
            _receive(listening, options.folder)
        else:
            _send(listening, options.folder, options.size, options.pull_bytes)


if __name__ == "__main__":
    main()
