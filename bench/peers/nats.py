"""NATS JetStream: one file-backed stream for each partition. Publishers use acknowledgements (or none), and pull consumers read.

JetStream has no batch of messages: each message is published and acknowledged alone, with pipelining like `nats bench --js
--pubbatch`.
"""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tools.kafka import free_ports

from bench.peers.peer import CannotDo, Message, Setting
from bench.peers.process import Process, program
from bench.peers.redis import value
from bench.peers.streams import Receiver, StreamPeer, connect, streams_of
from bench.wire import BadAnswer

EXPIRES_NS = 60_000_000_000
INACTIVE_NS = 300_000_000_000
MAX_PAYLOAD = 16 * 1024 * 1024
PULLS = 2  # concurrent requests of a consumer: one waits at the server while another is served
_inboxes = itertools.count()
_REPLY = b"$JS.ACK."  # part of the header line of each message that a consumer gets


class Nats(StreamPeer):
    """One `nats-server` with JetStream."""

    name = "NATS JetStream"
    nudge = b"PING\r\n"
    settings = (
        Setting("jetstream.store_dir", "a folder", "docs.nats.io, JetStream: what turns it on"),
        Setting("max_payload", "16 MiB", "docs.nats.io, Configuration: for messages of more than 1 MB"),
        Setting("stream storage", "file", "docs.nats.io, Streams: the default, kept on disk"),
        Setting(
            "stream duplicate_window", "100 ms", "docs.nats.io, Streams: nothing is sent twice here; the least that is allowed"
        ),
        Setting(
            "consumer inactive_threshold", "5 min", "docs.nats.io, Consumers: after 5 s the first of a thousand would be gone"
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self.address = ("127.0.0.1", 0)

    @property
    def version(self) -> str:
        text = subprocess.run([program("nats-server", "nats-server"), "--version"], capture_output=True, text=True, check=True)
        return (text.stdout or text.stderr).split("v")[-1].strip()

    @property
    def data_dir(self) -> Path:
        return self.process.folder / "data"

    def __enter__(self) -> Self:
        server = program("nats-server", "nats-server")
        self._running = Process("nats")
        self.address = ("127.0.0.1", free_ports(1)[0])
        (self._running.folder / "conf").write_text(
            f'listen: "127.0.0.1:{self.address[1]}"\nmax_payload: {MAX_PAYLOAD}\njetstream {{ store_dir: "{self.data_dir}" }}\n'
        )
        start = [server, "-c", str(self._running.folder / "conf")]
        self.ready_after_s = self._running.start(start, lambda: "error" not in self._ask("INFO"))
        return self

    def _ask(self, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request to JetStream's own subjects; returns the answer."""
        with self.greet() as line:
            return _asked(line, subject, body)

    def _do(self, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        with self.greet() as line:
            return _done(line, subject, body)

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        with self.greet() as line:
            for stream in streams_of(topic, partitions):
                config = {"name": stream, "subjects": [stream], "storage": "file", "duplicate_window": 100_000_000}
                _done(line, f"STREAM.CREATE.{stream}", config)

    def delete(self, topic: str) -> None:
        with self.greet() as line:
            for number in itertools.count():
                if "error" in _asked(line, f"STREAM.DELETE.{topic}-{number}"):  # no stream has this number
                    return

    def stored(self, topic: str, partitions: int) -> int:
        with self.greet() as line:
            told = [_done(line, f"STREAM.INFO.{stream}") for stream in streams_of(topic, partitions)]
        return sum(int(each["state"]["messages"]) for each in told)

    def greet(self) -> socket.socket:
        """A connection after the greeting of both sides."""
        line = connect(self.address)
        greeting = b""
        while not greeting.endswith(b"\r\n"):
            greeting += line.recv(4096)
        line.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n')
        pong = b""
        while not pong.endswith(b"PONG\r\n"):
            pong += line.recv(4096)
        return line

    def line(self, streams: Sequence[str], message: Message, requests: int, window: int) -> _Publisher:
        if message.batch > 1:
            raise CannotDo("a publication is one message")
        return _Publisher(self.greet(), streams, message, requests, window)

    def receiver(self, stream: str, message: Message, pull: int) -> _Puller:
        config = {"deliver_policy": "all", "ack_policy": "none", "inactive_threshold": INACTIVE_NS}
        made = self._do(f"CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": config})
        return _Puller(self.greet(), f"{stream}.{made['name']}", pull)

    def leave(self, receivers: Sequence[Receiver]) -> None:
        """Delete the consumers: a consumer exists after its connection until a threshold, and a thousand of them use memory and
        CPU."""
        for receiver in receivers:
            assert isinstance(receiver, _Puller)
            self._do(f"CONSUMER.DELETE.{receiver.consumer}")


def _asked(line: socket.socket, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer to a request to JetStream's own subjects, on a connection that receives nothing else."""
    inbox = _new_inbox()
    request = _publication(f"$JS.API.{subject}".encode(), inbox, json.dumps(body).encode() if body else b"")
    line.sendall(_subscription(inbox) + b"UNSUB 1 1\r\n" + request)
    data = b""
    while not (data.count(b"\r\n") >= 2 and data.endswith(b"\r\n")):
        piece = line.recv(65_536)
        if not piece:
            raise BadAnswer("the server closed the connection")
        data += piece
        if data.startswith(b"PING\r\n"):  # the server sends these on connections that stay open long
            line.sendall(b"PONG\r\n")
            data = data.removeprefix(b"PING\r\n")
    return dict(json.loads(data.split(b"\r\n")[1]))


def _done(line: socket.socket, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """As `_asked`; raises BadAnswer for an error."""
    answer = _asked(line, subject, body)
    if "error" in answer:
        raise BadAnswer(f"{subject}: {answer['error']}")
    return answer


def _new_inbox() -> bytes:
    """A subject that only one connection uses."""
    return b"_INBOX.bench.%d" % next(_inboxes)


def _subscription(subject: bytes) -> bytes:
    return b"SUB %b 1\r\n" % subject


def _publication(subject: bytes, reply: bytes, body: bytes) -> bytes:
    return b"PUB %b %b %d\r\n%b\r\n" % (subject, reply, len(body), body)


class _Publisher:
    """One connection that publishes to streams in turn."""

    def __init__(self, line: socket.socket, streams: Sequence[str], message: Message, requests: int, window: int) -> None:
        self.is_answered = message.acks != 0
        inbox = _new_inbox()
        subjects, reply = [stream.encode() for stream in streams], inbox if self.is_answered else b""
        self.chunk = b"".join(
            _publication(subjects[number % len(subjects)], reply, value(message.value_bytes, number))
            for number in range(requests)
        )
        self.requests, self.window = requests, window
        self.socket = line
        line.sendall(_subscription(inbox))

    def take(self, received: memoryview) -> tuple[int, int]:
        data = bytes(received)
        answers, used = data.count(b'"seq":'), data.rfind(b"}\r\n") + 3
        if b'"error"' in data or b"-ERR" in data:
            raise BadAnswer(data[:200].decode(errors="replace"))
        answers -= data.count(b'"seq":', used)
        return answers, used if answers else 0


class _Puller:
    """One connection of a consumer, with `PULLS` waiting requests."""

    def __init__(self, line: socket.socket, consumer: str, pull: int) -> None:
        self.socket = line
        self.consumer = consumer  # names of the stream and the consumer
        self._pull, self._left = pull, pull
        inbox = _new_inbox()
        self._subscription = _subscription(inbox)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{consumer}"
        self._request = _publication(subject.encode(), inbox, json.dumps({"batch": pull, "expires": EXPIRES_NS}).encode())

    def begin(self) -> None:
        self.socket.sendall(self._subscription + self._request * PULLS)

    def take(self, received: memoryview) -> tuple[int, int]:
        data = bytes(received)
        used = data.rfind(b"MSG ")  # the last message may be incomplete
        if data.endswith(b"\r\n") and data.count(b"\r\n", used) == 2:
            used = len(data)
        if used <= 0:
            return 0, 0
        came = data.count(_REPLY, 0, used)
        self._left -= came
        while self._left <= 0:
            self._left += self._pull
            self.socket.sendall(self._request)
        return came, used
