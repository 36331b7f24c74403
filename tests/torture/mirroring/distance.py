"""A long way between two groups of nodes: packets take their time, and some are lost.

Many kernels have no `netem`, which other tests would use. So the hub routes the packets between the two groups through a TUN device, and
a process of its own (`python -m tests.torture.mirroring.distance`) reads them there, holds each back for the delay, drops some, and gives
the others back for the rest of their way. TCP sees a real distance: it retransmits and slows down.

Rules
  1. Only packets between the groups pass here. Those within a group take the short way.
  2. Packets of one direction keep their order.
  3. The process reads commands from its standard input, one in a line: `DELAY_MS LOSS`. It ends when its input does.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence

from tests.torture.cluster.network import Namespaces, NoNetwork, run_commands

DEVICE = "way"
TABLE = 77
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 1500
MOST_HELD = 10_000  # packets; as a router does, the process drops more


class LongWay:
    """The device, the routes and the process, from `__enter__` to `__exit__`.

    Args:
        one, other: the nodes of the two groups.
        seed: decides which packets are lost.

    Raises:
        NoNetwork: from `with`, if the system has no TUN devices.
    """

    def __init__(self, network: Namespaces, one: Sequence[str], other: Sequence[str], seed: int) -> None:
        self._network = network
        self._ways = [(a, b) for a in one for b in other] + [(b, a) for a in one for b in other]
        self._seed = seed
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> LongWay:
        command = [sys.executable, "-m", "tests.torture.mirroring.distance", str(self._seed)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._process = process
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise NoNetwork("no TUN device can be made here")
            run_commands(f"ip link set {DEVICE} up mtu {MTU}", f"ip route add default dev {DEVICE} table {TABLE}",
                         "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done")  # fmt: skip
            for source, target in self._ways:
                run_commands(f"ip rule add {self._network.way(source, target)} iif {self._network.interface(source)} "
                             f"lookup {TABLE}")  # fmt: skip
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            process.wait()

    def set(self, delay_ms: int = 0, loss: float = 0.0) -> None:
        """Each packet takes `delay_ms` in each direction, and a share of `loss` is dropped."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{delay_ms} {loss}\n")


def open_device() -> int:
    """Make the device; returns its descriptor. Raises OSError."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


class HeldPackets:
    """The packets that are on their way; times are in seconds."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._delay_s, self._loss = 0.0, 0.0
        self._held: deque[tuple[float, bytes]] = deque()

    def set(self, delay_s: float, loss: float) -> None:
        """For packets that come later."""
        self._delay_s, self._loss = delay_s, loss

    def take(self, packet: bytes, now_s: float) -> None:
        """A packet comes; it may be lost."""
        if self._rng.random() >= self._loss and len(self._held) < MOST_HELD:
            last_s = self._held[-1][0] if self._held else 0.0
            self._held.append((max(last_s, now_s + self._delay_s), packet))

    def due(self, now_s: float) -> Iterator[bytes]:
        """The packets that have arrived, in their order."""
        while self._held and self._held[0][0] <= now_s:
            yield self._held.popleft()[1]

    def wait_s(self, now_s: float) -> float | None:
        """Until the next packet arrives; None if there is none."""
        return max(0.0, self._held[0][0] - now_s) if self._held else None


def carry(device: int, commands: int, held: HeldPackets) -> None:
    """Until the end of the commands."""
    pending = b""
    while True:
        readable, _, _ = select.select([device, commands], [], [], held.wait_s(time.monotonic()))
        if commands in readable:
            data = os.read(commands, 4096)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                delay_ms, loss = line.split()
                held.set(int(delay_ms) / 1000, float(loss))
        if device in readable:
            held.take(os.read(device, 65_536), time.monotonic())
        for packet in held.due(time.monotonic()):
            os.write(device, packet)


def main(arguments: Sequence[str]) -> int:
    try:
        device = open_device()
    except OSError as error:
        print(error, flush=True)
        return 1
    print("ready", flush=True)
    carry(device, sys.stdin.fileno(), HeldPackets(random.Random(int(arguments[0]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
