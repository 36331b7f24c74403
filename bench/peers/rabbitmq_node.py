"""One node of RabbitMQ with the stream plugin: the common start and stop of streams and queues."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path
from typing import Self

from tools.kafka import free_ports

from bench.peers.peer import PeerUnavailable
from bench.peers.process import Process, program
from bench.peers.streams import StreamPeer, connect, streams_of
from bench.wire import BadAnswer

LIB = Path("/usr/lib/rabbitmq/bin")
NO_PASSWORD = b"\0guest\0guest"


def _is_open(port: int) -> bool:
    connect(("127.0.0.1", port)).close()
    return True


class Talk:
    """A connection that has logged in."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = connect(address)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise BadAnswer("the server closed the connection")
            data += piece
        return data

    def make(self, stream: str) -> None:
        raise NotImplementedError

    def remove(self, stream: str) -> None:
        """Delete a stream; raises BadAnswer if there is none of this name."""
        raise NotImplementedError


class RabbitNode(StreamPeer):
    """A single node; `address` is that of the protocol that the client uses."""

    def __init__(self) -> None:
        super().__init__()
        self.address = ("127.0.0.1", 0)

    @property
    def version(self) -> str:
        found = sorted(LIB.parent.glob("lib/rabbitmq_server-*"))
        return found[-1].name.rpartition("-")[2] if found else "unknown"

    @property
    def data_dir(self) -> Path:
        return self.process.folder / "data"

    def port_of(self, amqp: int, streams: int) -> int:
        """The port of the client's protocol."""
        raise NotImplementedError

    def talk(self) -> Talk:
        raise NotImplementedError

    def greet(self) -> socket.socket:
        return self.talk().socket

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        talk = self.talk()
        with talk.socket:
            for stream in streams_of(topic, partitions):
                talk.make(stream)

    def delete(self, topic: str) -> None:
        talk = self.talk()
        with talk.socket:
            for number in itertools.count():
                try:
                    talk.remove(f"{topic}-{number}")
                except BadAnswer:  # no stream or queue has this number
                    return

    def __enter__(self) -> Self:
        program("rabbitmq-server", "rabbitmq-server")
        if not (LIB / "rabbitmq-server").exists():
            raise PeerUnavailable(f"{LIB} is not there (Debian package: rabbitmq-server)")
        amqp, streams, distribution, names = free_ports(4)
        self.address = ("127.0.0.1", self.port_of(amqp, streams))
        self._running = Process("rabbitmq")
        folder = self._running.folder
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{amqp}\nstream.listeners.tcp.1 = 127.0.0.1:{streams}\n"
            "stream.frame_max = 0\nlog.console.level = error\n"
        )
        (folder / "enabled_plugins").write_text("[rabbitmq_stream].")
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"bench-{os.getpid()}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.data_dir),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
        }
        epmd = program("epmd", "erlang-base")  # otherwise the node starts an epmd that outlives it
        self._running.start([epmd], lambda: _is_open(names), environment)
        self.ready_after_s = self._running.start([str(LIB / "rabbitmq-server")], self._is_ready, environment)
        return self

    def _is_ready(self) -> bool:
        try:
            self.greet().close()
        except BadAnswer:
            return False
        return True
