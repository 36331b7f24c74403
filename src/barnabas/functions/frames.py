"""Messages between a server and the process of a function: a head in JSON and a payload, both with their lengths before them."""

from __future__ import annotations

import struct
from typing import IO, Any

import msgspec
import pyarrow as pa

_LENGTHS = struct.Struct("<IQ")


def send(stream: IO[bytes], head: dict[str, Any], payload: Any = b"") -> None:
    """Write a message. Raises OSError."""
    encoded = msgspec.json.encode(head)
    stream.write(_LENGTHS.pack(len(encoded), len(payload)))
    stream.write(encoded)
    stream.write(payload)
    stream.flush()


def receive(stream: IO[bytes], most_bytes: int) -> tuple[dict[str, Any], bytes] | None:
    """The next message; None at the end of the stream, also within a message. Raises ValueError for one that is too large."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    head_bytes, payload_bytes = _LENGTHS.unpack(lengths)
    if head_bytes + payload_bytes > most_bytes:
        raise ValueError(f"a message of {head_bytes + payload_bytes} bytes")
    head, payload = stream.read(head_bytes), stream.read(payload_bytes)
    if len(head) < head_bytes or len(payload) < payload_bytes:
        return None
    found: dict[str, Any] = msgspec.json.decode(head)
    return found, payload


def encoded(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch as a payload."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decoded(payload: bytes) -> pa.RecordBatch:
    """The batch of a payload."""
    return pa.ipc.open_stream(payload).read_next_batch()
