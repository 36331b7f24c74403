"""Systems that are up but stand still while another is measured: they take nothing of its machine and stay as warm as they are."""

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
    """One of some, while the others stand still; raises as `standing_still`."""
    with standing_still([other.pid for other in of if other is not measured]):
        yield


@contextmanager
def standing_still(pids: Sequence[int]) -> Iterator[None]:
    """Stops these processes, and lets them continue at the end, also after an error within.

    One that has ended takes nothing either: systems have short-lived helpers, and that a system is gone its next measurement tells.
    One that has just begun a helper does not stop before that has memory of its own (vfork), and the helper stands still: so all
    go on for a moment, and are stopped again, until all of them do.

    Raises:
        ValueError: one of them is this process, which would never go on.
        TimeoutError: one of them does not stop within `PATIENCE_S`.
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
    """The letter by which the kernel tells the state of a process: `T` is stopped, `Z` has ended and `X` is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
