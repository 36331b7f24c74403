"""A line with a delay and a rate between this machine's network and a namespace of its own, with real TCP at both ends.

It has two TUN devices, one here and one in the namespace. `tests/carrier.py` carries packets from one to the other: it keeps each packet
until the line is free and the delay is over.

It needs root and the program `ip`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests import carrier

from barnabas.testing.children import Child
from bench.peers.peer import PeerUnavailable
from bench.peers.process import program
from bench.servers import SOURCE

PACKET_BYTES = 9_000  # jumbo frames: a Python program carries 14,000 packets/s for 1 Gbit/s
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
        if os.geteuid() or not carrier.TUN.exists():
            raise PeerUnavailable(f"a line with a delay needs root and {carrier.TUN}")
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
        process: Child[str] = Child(
            carrier.command(0, near, far),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=SOURCE.parent,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self._stack.callback(_end, process)
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders = process.stdin
        if process.stdout.readline() != carrier.READY:
            raise PeerUnavailable(f"a line with a delay: the program at {carrier.TUN} ended")
        _ip("link", "set", far, "netns", self.namespace)
        for words, device, ours, theirs in (((), near, self.near, self.far), (("-n", self.namespace), far, self.far, self.near)):
            _ip(*words, "addr", "add", ours, "peer", theirs, "dev", device)
            _ip(*words, "link", "set", device, "mtu", str(PACKET_BYTES), "txqueuelen", str(LONG_QUEUE), "up")
        _ip("-n", self.namespace, "link", "set", "lo", "up")

    def set(self, round_trip_s: float, bytes_per_s: float) -> None:
        """Let packets from now on take half of the round trip, and pass at this rate in each direction; 0 for no limit."""
        self._orders.write(carrier.order(delay_s=round_trip_s / 2, bytes_per_s=bytes_per_s))
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
