"""Stops running systems while another one is measured: they use no CPU of the machine and stay warm."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

PATIENCE_S = 60.0  # a process may be waiting for a disk
STILL = "TZX"
POLL_S = 0.001
AGAIN_S = 1.0


class Process(Protocol):
    """A system or a loop with one process."""

    @property
    def pid(self) -> int: ...


@contextmanager
def alone(measured: Process, of: Sequence[Process]) -> Iterator[None]:
    """Stops all processes in `of` except `measured` during the block; raises as `standing_still`."""
    with standing_still([other.pid for other in of if other is not measured]):
        yield


@contextmanager
def standing_still(pids: Sequence[int]) -> Iterator[None]:
    """Stops these processes, and lets them continue at the end of the block, also after an error.

    A process that has ended is ignored: systems have short-lived helpers, and the next measurement shows if a system is gone. A
    process that has just started a helper does not stop before the helper has memory of its own (vfork), but the helper is
    stopped. So all processes continue for a moment and are stopped again, until all have stopped.

    Raises:
        ValueError: one of them is this process, which would never continue.
        TimeoutError: one of them does not stop within `PATIENCE_S` seconds.
    """
    if os.getpid() in pids:
        raise ValueError("a process cannot stand still while it measures another")
    began = stopped = time.monotonic()
    try:
        _signal(pids, signal.SIGSTOP)
        while moving := [pid for pid in pids if state_of(pid) not in STILL]:
            now = time.monotonic()
            if now > began + PATIENCE_S:
                raise TimeoutError(f"process {moving[0]} does not stop: its state is {state_of(moving[0])}")
            if now > stopped + AGAIN_S:
                _signal(pids, signal.SIGCONT)
                stopped = now
            time.sleep(POLL_S)
            if stopped == now:
                _signal(pids, signal.SIGSTOP)
        yield
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def state_of(pid: int) -> str:
    """The kernel's letter for the state of a process: `T` is stopped, `Z` has ended, `X` is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
