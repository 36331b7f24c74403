"""The resources of a Spark session's processes: CPU time, and the maximum memory of all of them together.

Memory is the proportional set size (Pss): forked Python workers have pages in common, and each process counts its share of these.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.peers.process import cpu_of, family
from bench.servers import TICKS_PER_S, busy_seconds

LOOK_S = 0.5  # between two checks of the memory, each of which takes some milliseconds


def _stats(leader: int) -> Iterator[tuple[int, list[str]]]:
    """Each process that `leader` started, with the fields of `/proc` after its name."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                yield int(stat.parent.name), fields


def cpu_seconds(leader: int) -> float:
    """The user and system time in seconds of its processes, and of their ended children if the parents have waited for them."""
    return sum(int(field) for _, fields in _stats(leader) for field in fields[11:15]) / TICKS_PER_S


def _share_kib(pid: int) -> int:
    with suppress(OSError):  # the process has ended
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return 0


class Watched:
    """The CPU time of a session between `__enter__` and `__exit__`, and the maximum memory of its processes together."""

    def __init__(self, leader: int) -> None:
        self.cpu_s = self.peak_mb = 0.0
        self._leader = leader
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.cpu_s = -cpu_seconds(self._leader)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()
        self.cpu_s += cpu_seconds(self._leader)

    def _watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, sum(_share_kib(pid) for pid, _ in _stats(self._leader)) * 1024 / 1e6)
            if self._is_over.wait(LOOK_S):
                return


class OtherWork:
    """The share of the machine's CPU that neither the sessions, a server nor this process use."""

    def __init__(self, leaders: Sequence[int], server: int | None) -> None:
        self._leaders, self._pids = leaders, [os.getpid(), *(family(server) if server is not None else ())]
        self._began, self._busy, self._own = os.times().elapsed, busy_seconds(), self._spent()

    def _spent(self) -> float:
        return cpu_of(self._pids) + sum(map(cpu_seconds, self._leaders))

    def share(self) -> float:
        """The share since this object was created."""
        others = busy_seconds() - self._busy - (self._spent() - self._own)
        return max(others, 0.0) / (os.times().elapsed - self._began) / (os.cpu_count() or 1)
