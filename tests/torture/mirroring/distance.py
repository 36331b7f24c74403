"""A long way between two groups of nodes: packets take their time, and some are lost.

The hub routes the packets between the two groups through a TUN device, and `tests/carrier.py` carries them back to it. Those within a group
take the short way.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests import carrier
from tests.torture.cluster.network import Namespaces, NoNetwork, run_commands

DEVICE = "way"
TABLE = 77
MTU = 1500


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
        command = carrier.command(self._seed, DEVICE)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._process = process
        try:
            assert process.stdout is not None
            if process.stdout.readline() != carrier.READY:
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
        self._process.stdin.write(carrier.order(delay_s=delay_ms / 1000, loss=loss))
