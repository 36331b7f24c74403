"""The resources that a load uses: CPU and memory of the loaded system, and the CPU that other processes used at the same time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from bench.peers.process import cpu_by_pid, cpu_since, family, forget_peak, peak_mb
from bench.servers import busy_seconds

Figures = dict[str, float]


class Meter:
    """The resources that a system uses between `__enter__` and `__exit__`."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._began = self._busy = 0.0
        self._own: dict[int, float] = {}
        self._theirs: dict[int, float] = {}
        self.figures: Figures = {}
        self.ended = ""  # the reason why the line of a chart ends here

    def __enter__(self) -> Self:
        forget_peak(self._pids)
        self._began, self._busy = time.monotonic(), busy_seconds()
        self._own, self._theirs = cpu_by_pid(family(os.getpid())), cpu_by_pid(self._pids)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            return
        spent = cpu_since(self._theirs, self._pids)
        whole = cpu_since(self._own, family(os.getpid()))
        seconds = time.monotonic() - self._began
        others = (
            busy_seconds() - self._busy - whole
        )  # the measured systems are children of this process, including those that wait for their turn
        cores = os.cpu_count() or 1
        self.figures = {"cpu_s": spent, "peak_mb": peak_mb(self._pids), "others_cpu": max(others, 0.0) / seconds / cores}
