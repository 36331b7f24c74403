"""The minimal relay between a producer and a consumer: a loop that writes received batches to a file and forwards them at once.

It implements only those parts of Produce 9 and Fetch 12 that the load generator sends (`wire.py`). It has no log, no index and
no check. A batch gets its offset and goes to its partition's file. The consumer's answer is sent together with the producer's;
if no fetch of the consumer waits, its next fetch gets the batch. So a message's delay consists of the system calls, the
wake-ups and the generator itself.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from struct import Struct

from bench.consume import read_varint
from bench.loop import Loop
from bench.wire import BATCH_HEAD, FETCH, PRODUCE, AnswerShape, varint

RECEIVE_BYTES = 4 * 1024 * 1024
SESSION_ID = 1
_REQUEST = Struct(">ihhih")  # size, API key, API version, correlation id, length of the client id
_PRODUCE_HEAD_BYTES = 1 + 2 + 4 + 1  # bytes before the topic: no transactional id, acks, timeout, one topic
# Bytes before the topics: replica, maximum wait, minimum and maximum bytes, isolation level, session id and epoch.
_FETCH_HEAD_BYTES = 4 + 4 + 4 + 4 + 1 + 4 + 4
_ANSWER_HEAD = Struct(">iibihi")  # size, correlation id, no tagged fields, throttle time, error code, session id
_PARTITION = Struct(">ihqqqBi")  # index, error code, three offsets, no aborted transactions, no preferred replica
_FETCHED_BYTES = 33  # a partition in a request, with its tagged fields
_I32, _I64 = Struct(">i"), Struct(">q")

Key = tuple[bytes, int]


class Relay(Loop):
    """A process with the loop."""

    name = "bare system calls"

    def _command(self, stack: ExitStack) -> list[str]:
        return ["bench.relay", stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-bench-relay-"))]


class _Line:
    """One connection of a producer or a consumer."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = memoryview(bytearray(RECEIVE_BYTES))
        self.filled = 0
        self.asked = -1  # correlation id of the waiting fetch request, or -1
        self.parts: list[bytes] = []  # partitions of the next response

    def hand_on(self, key: Key, offset: int, batch: memoryview | bytes) -> None:
        topic, index = key
        head = b"\2" + _PARTITION.pack(index, 0, offset, offset, 0, 0, -1)
        self.parts.append(varint(len(topic) + 1) + topic + head + varint(len(batch) + 1) + bytes(batch) + b"\0\0")

    def answer(self) -> None:
        """Answer the waiting fetch with the available batches."""
        body = varint(len(self.parts) + 1) + b"".join(self.parts) + b"\0"
        size = _ANSWER_HEAD.size - _I32.size + len(body)
        self.connection.sendall(_ANSWER_HEAD.pack(size, self.asked, 0, 0, 0, SESSION_ID) + body)
        self.asked = -1
        self.parts.clear()


class _Loop:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Key, int] = {}
        self._offsets: dict[Key, int] = {}
        self._followers: dict[Key, _Line] = {}
        self._early: dict[Key, list[tuple[int, bytes]]] = {}  # batches that arrived before the follower is known

    def take(self, line: _Line) -> bool:
        """Receive; False at the end of the connection."""
        got = line.connection.recv_into(line.buffer[line.filled :])
        line.filled += got
        position = 0
        while line.filled - position >= _REQUEST.size:
            size, api_key, _, correlation_id, name_bytes = _REQUEST.unpack_from(line.buffer, position)
            end = position + _I32.size + size
            if end > line.filled:
                break
            body = position + _REQUEST.size + name_bytes + 1
            if api_key == PRODUCE:
                self._produce(line, correlation_id, body)
            elif api_key == FETCH:
                self._fetch(line, correlation_id, body)
            else:
                raise ValueError(f"API {api_key} is not known here")
            position = end
        line.buffer[: line.filled - position] = line.buffer[position : line.filled]
        line.filled -= position
        return got > 0

    def _produce(self, line: _Line, correlation_id: int, position: int) -> None:
        data = line.buffer
        length, position = read_varint(data, position + _PRODUCE_HEAD_BYTES)
        topic = bytes(data[position : position + length - 1])
        position += length
        (index,) = _I32.unpack_from(data, position)
        length, position = read_varint(data, position + _I32.size)
        batch = data[position : position + length - 1]
        key = topic, index
        offset = self._offsets.get(key, 0)
        _I64.pack_into(batch, 0, offset)
        self._offsets[key] = offset + BATCH_HEAD.unpack_from(batch)[-1]
        os.write(self._file(key), batch)
        line.connection.sendall(_answer(topic, correlation_id))
        follower = self._followers.get(key)
        if follower is None:
            self._early.setdefault(key, []).append((offset, bytes(batch)))
            return
        follower.hand_on(key, offset, batch)
        if follower.asked >= 0:
            follower.answer()

    def _file(self, key: Key) -> int:
        file = self._files.get(key)
        if file is None:
            file = self._files[key] = os.open(self._folder / str(len(self._files)), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        return file

    def _fetch(self, line: _Line, correlation_id: int, position: int) -> None:
        """Handle a fetch. The first one of a consumer names its partitions; later ones name changes, which the relay knows
        already."""
        data = line.buffer
        topics, position = read_varint(data, position + _FETCH_HEAD_BYTES)
        for _ in range(topics - 1):
            length, position = read_varint(data, position)
            topic = bytes(data[position : position + length - 1])
            partitions, position = read_varint(data, position + length - 1)
            for _ in range(partitions - 1):
                self._follow((topic, _I32.unpack_from(data, position)[0]), line)
                position += _FETCHED_BYTES
            position += 1
        line.asked = correlation_id
        if line.parts:
            line.answer()

    def _follow(self, key: Key, line: _Line) -> None:
        self._followers[key] = line
        for offset, batch in self._early.pop(key, ()):
            line.hand_on(key, offset, batch)


@cache
def _answer(topic: bytes, correlation_id: int) -> bytes:
    """The answer to a producer; a producer has the same correlation id in all its requests."""
    size = AnswerShape(topic.decode(), 1).size
    return _I32.pack(size - _I32.size) + _I32.pack(correlation_id) + bytes(size - 2 * _I32.size)


def main(arguments: Sequence[str] | None = None) -> None:
    """The program that `Relay` starts: it prints its port and runs until it is killed."""
    parser = argparse.ArgumentParser(prog="python -m bench.relay")
    parser.add_argument("folder", type=Path)
    loop = _Loop(parser.parse_args(arguments).folder)
    lines: dict[int, _Line] = {}
    with socket.create_server(("127.0.0.1", 0)) as listening, select.epoll() as poller:
        poller.register(listening.fileno(), select.EPOLLIN)
        print(listening.getsockname()[1], flush=True)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == listening.fileno():
                    line = _Line(listening.accept()[0])
                    lines[line.connection.fileno()] = line
                    poller.register(line.connection.fileno(), select.EPOLLIN)
                elif not loop.take(lines[descriptor]):
                    poller.unregister(descriptor)
                    lines.pop(descriptor).connection.close()


if __name__ == "__main__":
    main()
