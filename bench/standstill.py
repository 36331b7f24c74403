"""Systems that are up but stand still while another is measured: they take nothing of its machine and stay as warm as they are."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

PATIENCE_S = 10.0
POLL_S = 0.001


class Process(Protocol):
    """What has one process."""

    @property
    def pid(self) -> int: ...


@contextmanager
def alone(measured: Process, of: Sequence[Process]) -> Iterator[None]:
    """One of some, while the others stand still; raises as `standing_still`."""
    with standing_still([other.pid for other in of if other is not measured]):
        yield


@contextmanager
def standing_still(pids: Sequence[int]) -> Iterator[None]:
    """Stops these processes with everything they are at, and lets them go on at the end, whatever happens within.

    Raises:
        ValueError: one of them is this process, which would never go on.
        ProcessLookupError: one of them is gone, now or at the end.
        TimeoutError: one of them does not stop within `PATIENCE_S`.
    """
    if os.getpid() in pids:
        raise ValueError("a process cannot stand still while it measures another")
    with ExitStack() as going_on:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            going_on.callback(os.kill, pid, signal.SIGCONT)
        deadline = time.monotonic() + PATIENCE_S
        while moving := [pid for pid in pids if state_of(pid) != "T"]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {moving[0]} does not stop")
            time.sleep(POLL_S)
        yield


def state_of(pid: int) -> str:
    """The letter by which the kernel tells the state of a process: `T` is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
