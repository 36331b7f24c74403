"""A network of the test's own: a namespace for every node, a hub between them, and ways that can be blocked.

How it works
  `enter` starts the calling program anew in a network namespace without anything in it, the hub, where the test's clients run. Each
  node gets a namespace of its own, tied to the hub by a pair of virtual interfaces; the hub forwards between them. To block a way, the
  hub is told by a routing rule to drop what comes from the one for the other, in silence, as a broken switch would. The other way
  stays open.

Rules
  1. Nothing of it is seen outside, and nothing is left: the namespaces have no names, so they end with the last process in them.
  2. Needs Linux with `ip`, `unshare` and `nsenter`, and root or namespaces of users that are allowed to everybody.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import NoReturn, Self

IN_HUB = "BARNABAS_TORTURE_HUB"  # set if the program runs in the hub
NEEDED = ("ip", "unshare", "nsenter")
SUBNET = "10.77"


class NoNetwork(RuntimeError):
    """No network can be made here; the text says why."""


def _unshare() -> list[str]:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise NoNetwork(f"a network of the test's own needs {', '.join(missing)} (Debian packages: iproute2, util-linux)")
    return ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-root-user"]


def is_in_hub() -> bool:
    return IN_HUB in os.environ


def check() -> None:
    """Raises NoNetwork where `enter` would fail."""
    probe = "ip link set lo up && ip link add one type veth peer name other && echo 1 > /proc/sys/net/ipv4/ip_forward"
    done = subprocess.run([*_unshare(), "sh", "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNetwork(f"this system allows no network namespaces: {done.stderr.strip()}")


def enter(module: str, arguments: Sequence[str]) -> NoReturn:
    """Become `python -m module arguments` in a hub; raises NoNetwork."""
    check()
    command = [*_unshare(), sys.executable, "-m", module, *arguments]
    os.execvpe(command[0], command, {**os.environ, IN_HUB: "1"})


class Network(ABC):
    """Nodes by name, and where they are."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    @abstractmethod
    def address(self, name: str) -> str: ...

    @abstractmethod
    def inside(self, name: str) -> list[str]:
        """The words in front of a command that is to run on a node. They become that command, under the same process id."""

    @abstractmethod
    def block(self, source: str, target: str) -> None:
        """Nothing gets from one node to the other any more."""

    @abstractmethod
    def heal(self) -> None:
        """Open every way."""

    def close(self) -> None:
        self.heal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Loopback(Network):
    """Where no other can be had: every node has a loopback address of its own, and no way can be blocked."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        # one subnet per process: several runs may use it at once
        self._subnet = f"127.{os.getpid() % 250 + 2}.{os.getpid() // 250 % 250}"

    def address(self, name: str) -> str:
        return f"{self._subnet}.{self._names.index(name) + 2}"

    def inside(self, name: str) -> list[str]:
        return []

    def block(self, source: str, target: str) -> None:
        raise NoNetwork("ways can be blocked between network namespaces only")

    def heal(self) -> None:
        return


class Namespaces(Network):
    """To be made in the hub, once in a process."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        self._blocked: set[tuple[str, str]] = set()
        run_commands("ip link set lo up", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        try:
            for number, name in enumerate(self._names, start=1):
                self._add(number, name)
        except BaseException:
            self.close()
            raise

    def _add(self, number: int, name: str) -> None:
        # An idle process keeps the namespace alive until the end of its standard input. It writes a line when it runs.
        holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._holders[name] = holder
        assert holder.stdout is not None
        holder.stdout.readline()
        near, far = f"{SUBNET}.{number}.1", self.address(name)
        run_commands(f"ip link add h{number} type veth peer name eth0 netns {holder.pid}", f"ip addr add {near}/24 dev h{number}",
             f"ip link set h{number} up")  # fmt: skip
        inside = f"ip addr add {far}/24 dev eth0 && ip link set eth0 up && ip link set lo up && ip route add default via {near}"
        run_commands(f"nsenter --target {holder.pid} --net sh -c '{inside}'")

    def address(self, name: str) -> str:
        return f"{SUBNET}.{self._names.index(name) + 1}.2"

    def inside(self, name: str) -> list[str]:
        return ["nsenter", "--target", str(self._holders[name].pid), "--net"]

    def block(self, source: str, target: str) -> None:
        if (source, target) not in self._blocked:
            self._blocked.add((source, target))
            run_commands(f"ip rule add {self.way(source, target)} blackhole")

    def heal(self) -> None:
        for way in list(self._blocked):
            run_commands(f"ip rule del {self.way(*way)} blackhole")
            self._blocked.discard(way)

    def interface(self, name: str) -> str:
        """The hub's end of the line to a node."""
        return f"h{self._names.index(name) + 1}"

    def way(self, source: str, target: str) -> str:
        """The part of a routing rule that selects packets from one node to another."""
        return f"from {self.address(source)} to {self.address(target)}"

    def close(self) -> None:
        for holder in self._holders.values():
            assert holder.stdin is not None
            assert holder.stdout is not None
            holder.stdin.close()
            holder.stdout.close()
            holder.wait()
        self._holders.clear()


def run_commands(*commands: str) -> None:
    """Run them one after the other; raises NoNetwork if one fails."""
    for command in commands:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoNetwork(f"{command}: {done.stderr.strip()}")
