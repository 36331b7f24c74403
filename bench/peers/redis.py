"""Redis Streams: one stream for each partition, XADD with pipelining like `redis-benchmark -P`, XREAD with COUNT.

Redis has no batch of messages: an entry is one message, and many are sent by pipelining. It answers with the id of each entry;
CLIENT REPLY OFF turns that off.
"""

from __future__ import annotations

import re
import socket
import string
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Self

from tools.kafka import free_ports

from bench.peers.peer import CannotDo, Message, Setting
from bench.peers.process import Process, program
from bench.peers.streams import StreamPeer, connect, streams_of
from bench.wire import BadAnswer

_LAST_ID = re.compile(rb"\$\d+\r\n(\d+-\d+)\r\n\*2\r\n")
_DELETE = b"for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end"
LINES_OF_HEAD, LINES_OF_ENTRY, LINES_OF_ID = 5, 8, 2  # lines of RESP in a response to XREAD, each ended by CRLF
VALUES, BLOCK_BYTES = 512, 65_536  # cached values, and the length after which a long value repeats
BLOCK_MS = b"0"  # no time limit


def command(*parts: bytes) -> bytes:
    """A command in the form of RESP."""
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


@lru_cache(VALUES)
def value(size: int, number: int) -> bytes:
    """Random letters and digits, different for each number, so that a store that compresses finds no repetitions."""
    block = "".join(Random(number).choices(string.ascii_letters + string.digits, k=min(size, BLOCK_BYTES))).encode()
    return (block * (size // BLOCK_BYTES + 1))[:size]


class Redis(StreamPeer):
    """One `redis-server`."""

    name = "Redis Streams"
    is_made_by_writing = True
    nudge = command(b"PING")
    settings = (
        Setting("appendonly", "yes", "redis.io, Persistence: what is not in the append-only file is lost with the process"),
        Setting("appendfsync", "everysec", "redis.io, Persistence: the default and the suggested policy"),
        Setting("maxclients", "20000", "redis.io, Redis client handling: the default is 10,000"),
        Setting("save", '""', "redis.io, Persistence: no snapshots beside the append-only file"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.address = ("127.0.0.1", 0)

    @property
    def version(self) -> str:
        text = subprocess.run(
            [program("redis-server", "redis-server"), "--version"], capture_output=True, text=True, check=True
        ).stdout
        return text.split("v=")[1].split()[0]

    @property
    def data_dir(self) -> Path:
        return self.process.folder / "data"

    def __enter__(self) -> Self:
        server = program("redis-server", "redis-server")
        self._running = Process("redis")
        self.data_dir.mkdir()
        self.address = ("127.0.0.1", free_ports(1)[0])
        given = [part for setting in self.settings for part in (f"--{setting.name}", setting.value.strip('"'))]
        start = [server, "--port", str(self.address[1]), "--bind", "127.0.0.1", "--dir", str(self.data_dir), *given]
        self.ready_after_s = self._running.start(start, lambda: self._answers(command(b"PING"), 1) == [b"+PONG"])
        return self

    def _answers(self, commands: bytes, count: int) -> list[bytes]:
        """The answers to `count` commands, each of one line."""
        with connect(self.address) as line:
            line.sendall(commands)
            answers = b""
            while answers.count(b"\r\n") < count:
                piece = line.recv(65_536)
                if not piece:
                    raise BadAnswer("the server closed the connection")
                answers += piece
        found = answers.splitlines()
        for each in found:
            if each.startswith(b"-"):
                raise BadAnswer(each.decode())
        return found

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        """Does nothing: the first entry creates a stream."""

    def delete(self, topic: str) -> None:
        """Delete all streams of a topic."""
        with connect(self.address) as line:
            line.sendall(command(b"EVAL", _DELETE, b"0", topic.encode() + b"-*"))
            line.recv(4096)

    def stored(self, topic: str, partitions: int) -> int:
        wanted = b"".join(command(b"XLEN", stream.encode()) for stream in streams_of(topic, partitions))
        return sum(int(line[1:]) for line in self._answers(wanted, partitions))

    def greet(self) -> socket.socket:
        return connect(self.address)

    def line(self, streams: Sequence[str], message: Message, requests: int, window: int) -> _Adder:
        if message.batch > 1:
            raise CannotDo("an XADD is one entry")
        return _Adder(self.address, streams, message, requests, window)

    def receiver(self, stream: str, message: Message, pull: int) -> _Reader:
        return _Reader(self.address, stream, pull)


class _Adder:
    """One connection that adds to streams in turn."""

    def __init__(self, address: tuple[str, int], streams: Sequence[str], message: Message, requests: int, window: int) -> None:
        values = (value(message.value_bytes, number) for number in range(requests))
        keys = cycle([stream.encode() for stream in streams])
        self.chunk = b"".join(command(b"XADD", key, b"*", b"v", each) for each, key in zip(values, keys, strict=False))
        self.requests, self.window = requests, window
        self.is_answered = message.acks != 0
        self.socket = connect(address)
        if not self.is_answered:
            self.socket.sendall(command(b"CLIENT", b"REPLY", b"OFF"))

    def take(self, received: memoryview) -> tuple[int, int]:
        data = bytes(received)
        lines = data.count(b"\r\n")
        answers, half = divmod(lines, LINES_OF_ID)
        if data[:1] == b"-" or b"\n-" in data:
            raise BadAnswer(data[:200].decode(errors="replace"))
        used = data.rfind(b"\r\n") + 2 if not half else data.rfind(b"\r\n", 0, data.rfind(b"\r\n")) + 2
        return answers, used if answers else 0


class _Reader:
    """One connection that reads a stream from its beginning."""

    def __init__(self, address: tuple[str, int], stream: str, pull: int) -> None:
        self.socket = connect(address)
        self._stream, self._pull = stream.encode(), b"%d" % pull
        self._after = b"0-0"

    def begin(self) -> None:
        self.socket.sendall(command(b"XREAD", b"COUNT", self._pull, b"BLOCK", BLOCK_MS, b"STREAMS", self._stream, self._after))

    def take(self, received: memoryview) -> tuple[int, int]:
        data = bytes(received)
        if data[:1] == b"-":
            raise BadAnswer(data[:200].decode(errors="replace"))
        head = data.split(b"\r\n", LINES_OF_HEAD)
        if len(head) <= LINES_OF_HEAD:
            return 0, 0
        entries = int(head[LINES_OF_HEAD - 1][1:])
        if data.count(b"\r\n") < LINES_OF_HEAD + LINES_OF_ENTRY * entries:
            return 0, 0
        self._after = _LAST_ID.findall(data, max(0, data.rfind(b"*2\r\n$1\r\nv\r\n") - 60))[-1]
        self.begin()
        return entries, len(data)
