"""The link between a task and the process with its JVM: messages over a pair of sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

TASK_VARIABLE = "BARNABAS_DEBEZIUM_TASK"  # with passwords, so it is no argument
LENGTH = struct.Struct(">I")
DONE = b"\x01"  # the rows of a part are in the log


class Task(Struct, frozen=True):
    """What the process is to do.

    Args:
        descriptor: of its socket.
        properties: of Debezium.
        offsets: partitions of the source, and where each goes on.
        options: of the JVM.
    """

    descriptor: int
    properties: Mapping[str, str]
    offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
    options: Sequence[str]


class Part(Struct, frozen=True, tag="part", array_like=True):
    """Changes of one partition of the source, and the offset behind them. Keys and values are JSON with schemas.

    Args:
        rows: topic, key and value of each.
    """

    rows: Sequence[tuple[str, bytes | None, bytes | None]]
    partition: Mapping[str, Any]
    offset: Mapping[str, Any]


class End(Struct, frozen=True, tag="end", array_like=True):
    """Debezium has ended; without an error it has no more."""

    error: str | None


_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Part | End)


def send(connection: socket.socket, message: Part | End) -> None:
    """Send a message. Raises OSError if the other side is gone."""
    data = _ENCODER.encode(message)
    connection.sendall(LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Part | End | None:
    """The next message; None if the other side is gone."""
    head = _exactly(connection, LENGTH.size)
    data = None if head is None else _exactly(connection, LENGTH.unpack(head)[0])
    return None if data is None else _DECODER.decode(data)


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        some = connection.recv(min(size - len(data), 1 << 20))
        if not some:
            return None
        data += some
    return bytes(data)
