"""Carries the packets of TUN devices over a distance: each takes its time, a line has a rate, and some packets are lost.

Many kernels have no `netem`, which other tests would use. So a process of its own makes the devices (`python -m tests.carrier SEED DEVICE
[DEVICE]`), reads packets from them, and gives them back later: to the same device, or each to the other one of two. TCP sees a real
distance: windows, buffers, retransmissions and congestion control behave as on a real line.

Rules
  1. Packets of one direction keep their order.
  2. A packet that would wait longer than `MOST_QUEUED_S` for the line is dropped, as a router does.
  3. The process says `ready`, and then reads commands from its standard input, one in a line: `DELAY_S LOSS BYTES_PER_S`. It ends when its
     input does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

MODULE = "tests.carrier"
READY = "ready\n"
TUN = Path("/dev/net/tun")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MOST_QUEUED_S, MOST_HELD = 0.2, 10_000  # packets
PACKETS_AT_ONCE = 64
PACKET_BYTES = 65_536  # at most


def command(seed: int, *devices: str) -> list[str]:
    """The command of the process; `seed` decides which packets are lost."""
    return [sys.executable, "-m", MODULE, str(seed), *devices]


def order(*, delay_s: float = 0.0, loss: float = 0.0, bytes_per_s: float = 0.0) -> str:
    """A line for the process. From then on each packet takes `delay_s`, a share of `loss` is dropped, and a direction passes
    `bytes_per_s`; 0 is no limit."""
    return f"{delay_s} {loss} {bytes_per_s}\n"


class HeldPackets:
    """The packets of one direction that are on their way; times are in seconds."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._delay_s = self._loss = self._bytes_per_s = 0.0
        self._free_at_s = 0.0  # the line
        self._held: deque[tuple[float, bytes]] = deque()  # with the moment when each arrives

    def set(self, delay_s: float, loss: float = 0.0, bytes_per_s: float = 0.0) -> None:
        """For packets that come later."""
        self._delay_s, self._loss, self._bytes_per_s = delay_s, loss, bytes_per_s

    def take(self, packet: bytes, now_s: float) -> None:
        """A packet comes; it may be lost."""
        begins_s = max(now_s, self._free_at_s)
        if begins_s - now_s > MOST_QUEUED_S or len(self._held) >= MOST_HELD or (self._loss and self._rng.random() < self._loss):
            return
        self._free_at_s = begins_s + len(packet) / self._bytes_per_s if self._bytes_per_s else now_s
        arrives_s = max(self._free_at_s, begins_s) + self._delay_s
        self._held.append((max(arrives_s, self._held[-1][0]) if self._held else arrives_s, packet))

    def due(self, now_s: float) -> Iterator[bytes]:
        """The packets that have arrived, in their order."""
        while self._held and self._held[0][0] <= now_s:
            yield self._held.popleft()[1]

    def wait_s(self, now_s: float) -> float | None:
        """Until the next packet arrives; None if there is none."""
        return max(0.0, self._held[0][0] - now_s) if self._held else None


def open_device(name: str) -> int:
    """Make a TUN device; returns its descriptor. Raises OSError."""
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


def carry(targets: Mapping[int, int], commands: int, rng: random.Random) -> None:
    """Carry packets until the end of the commands.

    Args:
        targets: by the descriptor that packets are read from, the one that they are written to; neither blocks.
    """
    ways = {source: HeldPackets(rng) for source in targets}
    pending = b""
    while True:
        now_s = time.perf_counter()
        waits = [wait for way in ways.values() if (wait := way.wait_s(now_s)) is not None]
        readable, _, _ = select.select([*ways, commands], [], [], min(waits, default=None))
        if commands in readable:
            data = os.read(commands, 4096)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                for way in ways.values():
                    way.set(*map(float, line.split()))
        now_s = time.perf_counter()
        for source, way in ways.items():
            if source in readable:
                with contextlib.suppress(BlockingIOError):
                    for _ in range(PACKETS_AT_ONCE):
                        way.take(os.read(source, PACKET_BYTES), now_s)
            for packet in way.due(now_s):
                with contextlib.suppress(OSError):  # the device is down, or has no room: the packet is lost
                    os.write(targets[source], packet)


def main(arguments: Sequence[str]) -> int:
    seed, *names = arguments
    try:
        devices = [open_device(name) for name in names]
    except OSError as error:
        print(error, flush=True)
        return 1
    print(READY, end="", flush=True)
    carry(dict(zip(devices, reversed(devices), strict=True)), sys.stdin.fileno(), random.Random(int(seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
