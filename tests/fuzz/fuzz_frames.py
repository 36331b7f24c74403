"""Fuzzing what stands between the socket and a handler: frames, request headers, the bodies of all requests.

For any bytes, the outcome is a message or a `ProtocolError`, in time and memory in proportion to the bytes; and how the stream
is cut into pieces makes no difference to which frames are found.

    python -m tests.fuzz.fuzz_frames --seconds 60 [--guided FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import struct
import sys
import time
from pathlib import Path
from typing import Any

from barnabas.errors import ProtocolError
from barnabas.protocol.codec import decode, decode_request, encode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.produce import read_produce
from barnabas.protocol.request_headers import read_request_header
from barnabas.server.answers import request_class
from barnabas.server.api_table import SERVED
from barnabas.server.apis.api_versions import served_versions
from barnabas.server.connection import Connection
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.receiver import Receiver
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.files import OsFiles
from tests.fuzz.requests import damaged, frames

MAX_FRAME_BYTES = 64 * 1024
SIZE = struct.Struct(">i")


def one_frame(data: bytes) -> None:
    """Read `data` as the dispatcher does; what was read must write and read back to the same."""
    frame = memoryview(data)
    try:
        header = read_request_header(frame)
        first, last = served_versions(header.api_key) if header.api_key in SERVED else (0, -1)
        if header.api_key not in SERVED or header.api_version not in range(first, last + 1):
            return
        cls = request_class(header.api_key)
        if header.api_key == ApiKey.PRODUCE:
            read_produce(frame, header.body, header.api_version)
        message = decode_request(cls, header.api_version, frame, header.body)
    except ProtocolError:
        return
    again = decode(cls, header.api_version, bytes(encode(message, header.api_version)))
    if repr(again) != repr(message) and "<memory" not in repr(message):
        raise AssertionError(f"{message!r} reads back as {again!r}")


class FakeTransport(asyncio.Transport):
    """A transport to nowhere; `closed` once the connection gave up."""

    def __init__(self, descriptor: int) -> None:
        self.closed = False
        self._descriptor = descriptor

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "outbox":
            return default
        return self if name == "socket" else ("127.0.0.1", 1)

    def fileno(self) -> int:
        return self._descriptor

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


class Recorder:
    """A dispatcher that keeps copies of the frames it is given."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pinned_files = PinnedFiles(OsFiles(), 100)
        self.write_waiters = WriteWaiters(loop)
        self.frames: list[bytes] = []

    def dispatch(self, connection: Connection, data: memoryview, position: int, stop: int) -> int:
        self.frames.append(bytes(data[position + 4 : stop]))
        return stop

    def connection_opened(self, connection: Connection) -> str | None:
        return None

    def connection_closed(self, connection: Connection) -> None:
        return


def received(stream: bytes, cuts: list[int], loop: asyncio.AbstractEventLoop) -> tuple[list[bytes], bool, int]:
    """The frames of `stream` when it arrives in pieces, whether the connection was closed, and the bytes still held for it."""
    recorder, receiver, transport = Recorder(loop), Receiver(MAX_FRAME_BYTES, -1), FakeTransport(-1)
    connection = Connection(recorder, receiver, "PLAINTEXT", loop)
    connection.connection_made(transport)
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        piece = memoryview(stream)[start:stop]
        while piece and not transport.closed:
            buffer = connection.get_buffer(len(piece))
            size = min(len(buffer), len(piece))
            buffer[:size] = piece[:size]
            connection.buffer_updated(size)
            piece = piece[size:]
    held = receiver.queued_bytes
    closed = transport.closed
    connection.close()
    return recorder.frames, closed, held


def expected(stream: bytes) -> tuple[list[bytes], bool]:
    """The same, by the rule: size, frame, size, frame."""
    found: list[bytes] = []
    position = 0
    while len(stream) - position >= SIZE.size:
        (size,) = SIZE.unpack_from(stream, position)
        if not 0 <= size <= MAX_FRAME_BYTES:
            return found, True
        if position + SIZE.size + size > len(stream):
            break
        found.append(stream[position + SIZE.size : position + SIZE.size + size])
        position += SIZE.size + size
    return found, False


def run_seeded(seconds: float, seed: int) -> int:
    """Damage good requests for `seconds`; how many were tried."""
    choices = random.Random(seed)
    tried, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        one_frame(damaged(choices.choice(frames()), choices))
        tried += 1
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--guided", metavar="FOLDER", help="inputs guided by coverage, by atheris, which keeps them in this folder"
    )
    options = parser.parse_args()
    if not options.guided:
        print(f"frames: {run_seeded(options.seconds, options.seed)} inputs", flush=True)
        return
    import atheris

    corpus = Path(options.guided)
    corpus.mkdir(exist_ok=True)
    for index, frame in enumerate(frames()):
        (corpus / str(index)).write_bytes(frame)
    atheris.instrument_all()
    limits = [f"-max_total_time={options.seconds}", "-rss_limit_mb=1024", "-max_len=4096", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], one_frame)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
