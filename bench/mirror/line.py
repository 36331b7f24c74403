"""A line with a delay and a rate between this machine's network and a namespace of its own, with real TCP at both ends.

It has two TUN devices, one here and one in the namespace. A process carries packets from one to the other: it keeps each packet until the
line is free and the delay is over. It drops packets that would wait longer than `MOST_QUEUED_S` for the line, as a router does. So windows,
buffers and congestion control of TCP behave as on a real line. Kernels without the queueing discipline `netem` can do this too.

It needs root and the program `ip`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.testing.children import Child
from bench.peers.peer import PeerUnavailable
from bench.peers.process import program
from bench.servers import SOURCE

PACKET_BYTES = 9_000  # jumbo frames: a Python program carries 14,000 packets/s for 1 Gbit/s
MOST_QUEUED_S = 0.2
PACKETS_AT_ONCE = 64
TUN = Path("/dev/net/tun")
_SET_INTERFACE, _IS_TUN_WITHOUT_HEADER = 0x400454CA, 0x1001  # TUNSETIFF; IFF_TUN | IFF_NO_PI
LONG_QUEUE = 10_000  # packets that the device keeps for the program


class Line:
    """The line, while it is entered. `near` is the address of this end, `far` that of the end in the namespace."""

    def __init__(self) -> None:
        number = os.getpid()
        net = f"10.{64 + number % 128}.{number // 128 % 256}"
        self.near, self.far = f"{net}.1", f"{net}.2"
        self.namespace = f"bench-{number}"
        self._devices = f"bn{number}", f"bf{number}"
        self._stack = ExitStack()

    @property
    def inside(self) -> tuple[str, ...]:
        """Words before a command that runs in the namespace."""
        return ("ip", "netns", "exec", self.namespace)

    def __enter__(self) -> Self:
        """Raises PeerUnavailable."""
        program("ip", "iproute2")
        if os.geteuid() or not TUN.exists():
            raise PeerUnavailable(f"a line with a delay needs root and {TUN}")
        try:
            self._build()
        except BaseException as error:
            self._stack.close()
            if isinstance(error, subprocess.CalledProcessError):
                raise PeerUnavailable(f"a line with a delay: {error.stderr.strip()}") from error
            raise
        return self

    def _build(self) -> None:
        near, far = self._devices
        _ip("netns", "add", self.namespace)
        self._stack.callback(_ip, "netns", "del", self.namespace)
        carrier: Child[str] = Child(
            [sys.executable, "-m", "bench.mirror.line", near, far],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=SOURCE.parent,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self._stack.callback(_end, carrier)
        assert carrier.stdin is not None
        assert carrier.stdout is not None
        self._orders = carrier.stdin
        if not carrier.stdout.readline():
            raise PeerUnavailable(f"a line with a delay: the program at {TUN} ended")
        _ip("link", "set", far, "netns", self.namespace)
        for words, device, ours, theirs in (((), near, self.near, self.far), (("-n", self.namespace), far, self.far, self.near)):
            _ip(*words, "addr", "add", ours, "peer", theirs, "dev", device)
            _ip(*words, "link", "set", device, "mtu", str(PACKET_BYTES), "txqueuelen", str(LONG_QUEUE), "up")
        _ip("-n", self.namespace, "link", "set", "lo", "up")

    def set(self, round_trip_s: float, bytes_per_s: float) -> None:
        """Let packets from now on take half of the round trip, and pass at this rate in each direction; 0 for no limit."""
        self._orders.write(f"{round_trip_s / 2} {bytes_per_s}\n")
        self._orders.flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _end(process: Child[str]) -> None:
    process.terminate()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class _Direction:
    """Packets on their way to a device."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._free_at = 0.0  # the line
        self._under_way: deque[tuple[float, bytes]] = deque()  # with the moment when it arrives

    def take(self, packet: bytes, now: float, delay_s: float, bytes_per_s: float) -> None:
        begins = max(now, self._free_at)
        if begins - now > MOST_QUEUED_S:
            return
        self._free_at = begins + (len(packet) / bytes_per_s if bytes_per_s else 0.0)
        self._under_way.append((self._free_at + delay_s, packet))

    def deliver(self, now: float) -> float:
        """Deliver what has arrived; returns the seconds until the next packet does, or a long time."""
        while self._under_way:
            at, packet = self._under_way[0]
            if at > now:
                return at - now
            self._under_way.popleft()
            with contextlib.suppress(OSError):  # the device is down, or has no room: the packet is lost
                os.write(self._device, packet)
        return 1.0


def _carry(names: list[str]) -> None:
    devices = []
    for name in names:
        device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), _IS_TUN_WITHOUT_HEADER))
        devices.append(device)
    ways = {devices[0]: _Direction(devices[1]), devices[1]: _Direction(devices[0])}
    print("ready", flush=True)
    delay_s = bytes_per_s = 0.0
    while True:
        now = time.perf_counter()
        pause_s = min(way.deliver(now) for way in ways.values())
        ready, _, _ = select.select([*devices, sys.stdin.fileno()], [], [], pause_s)
        now = time.perf_counter()
        for each in ready:
            if each == sys.stdin.fileno():
                words = sys.stdin.readline().split()
                if not words:
                    return
                delay_s, bytes_per_s = map(float, words)
                continue
            with contextlib.suppress(BlockingIOError):
                for _ in range(PACKETS_AT_ONCE):
                    ways[each].take(os.read(each, PACKET_BYTES + 100), now, delay_s, bytes_per_s)


if __name__ == "__main__":
    _carry(sys.argv[1:])
