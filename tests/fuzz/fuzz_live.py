"""Fuzzing a real broker: damaged requests on many connections.

Afterwards the broker must still answer, its memory must not have grown beyond what a load explains, and no line of its log may show an
exception: a connection that sent nonsense is closed with one warning.

    python -m tests.fuzz.fuzz_live --seconds 60
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from barnabas.protocol.codec import decode, encode
from barnabas.protocol.headers import write_request_header
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.testing import Broker
from tests.fuzz.requests import damaged, frames, odd

SIZE = struct.Struct(">i")
MOST_FRAMES = 8  # on one connection
ANSWER_TIMEOUT_S = 10.0
SOAK_TIMEOUT_S = 0.01  # a connection that still waits after this is left: long polls are not what is tried
MAX_GROWTH_MB = 150  # topics and groups made by requests that stayed good take some


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to the broker."""

    connections: int
    warnings: int
    grown_mb: float


def run(seconds: float, seed: int) -> Outcome:
    """Send nonsense for `seconds`.

    Raises:
        AssertionError: the broker ended, does not answer, grew too much, or wrote about an exception.
    """
    choices = random.Random(seed)
    with Broker({"auto.create.topics.enable": "false"}, log_level="warning") as broker:
        check_answers(broker)
        before, connections, end = resident_mb(broker), 0, time.monotonic() + seconds
        while time.monotonic() < end:
            attack(broker, stream(choices), choices)
            connections += 1
        check_answers(broker)
        assert broker.is_running(), broker.log[-4000:]
        grown = resident_mb(broker) - before
        lines = broker.log.splitlines()
    assert not any("Traceback" in line for line in lines), excerpt(lines)
    assert grown < MAX_GROWTH_MB, f"the broker grew by {grown:.0f} MB"
    closed = [line for line in lines if "connection closed" in line]
    assert len(closed) <= connections, "more than one line for a connection"
    return Outcome(connections, len(closed), grown)


def excerpt(lines: list[str]) -> str:
    """The log without what is as it should be."""
    return "\n".join(line for line in lines if "connection closed" not in line)[-16_000:]


def stream(choices: random.Random) -> bytes:
    """A few frames, odd or damaged, some with a size that lies, or nothing but noise."""
    if not choices.randrange(10):
        return choices.randbytes(choices.randrange(1, 4096))
    data = b""
    for _ in range(choices.randint(1, MOST_FRAMES)):
        kind = choices.randrange(4)
        frame = odd(choices) if kind else damaged(choices.choice(frames()), choices)
        size = len(frame) if choices.randrange(40) else choices.choice((-1, 0, len(frame) - 1, len(frame) + 1, 2**31 - 1))
        data += SIZE.pack(size) + frame
    return data


def attack(broker: Broker, data: bytes, choices: random.Random) -> None:
    """One connection: send in pieces, take what comes for a moment, leave."""
    with contextlib.suppress(OSError), connect(broker) as line:
        cut = choices.randrange(len(data) + 1)
        line.sendall(data[:cut])
        line.sendall(data[cut:])
        line.settimeout(SOAK_TIMEOUT_S)
        while line.recv(65_536):
            pass


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=ANSWER_TIMEOUT_S)


def check_answers(broker: Broker) -> None:
    """A fresh client is served."""
    request = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
    frame = write_request_header(18, 3, 1, "fuzz") + bytes(encode(request, 3))
    with connect(broker) as line:
        line.sendall(SIZE.pack(len(frame)) + frame)
        with line.makefile("rb") as answers:
            (size,) = SIZE.unpack(answers.read(4))
            answer = decode(ApiVersionsResponse, 3, answers.read(size), 4)
    assert answer.error_code == 0
    assert answer.api_keys


def resident_mb(broker: Broker) -> float:
    """Memory of the broker's process."""
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError("the broker has no memory: it ended")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcome = run(options.seconds, options.seed)
    print(
        f"live broker: {outcome.connections} connections, {outcome.warnings} closed for what they sent, "
        f"{outcome.grown_mb:.1f} MB grown",
        flush=True,
    )


if __name__ == "__main__":
    main()
