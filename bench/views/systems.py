"""`barnabas engine start` as a process of its own, and what it starts."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from bench.peers.process import OwnProcess, Process
from bench.registry.systems import HOST, SOURCE

MASTER = "local[2]"
SPARK_READY = re.compile(r"Spark is ready after ([\d.]+) s")
DRIVER, JVM, WORKERS, ENGINE = "driver (Python)", "driver (JVM)", "Spark's Python workers", "engine"
POLL_S = 0.01
_PR_SET_CHILD_SUBREAPER = 36


class Engine(OwnProcess):
    """The engine. Spark starts with the first view.

    Args:
        folder: of states and logs; it outlives the process.
    """

    def __init__(self, bootstrap: str, folder: Path) -> None:
        super().__init__()
        self._bootstrap, self._folder = bootstrap, folder

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "barnabas.cli", "engine", "start", "--bootstrap-server", self._bootstrap]
        command += ["--listener", f"http://{HOST}:0", "--data-dir", str(self._folder), "--master", MASTER]
        self._running = Process("engine")
        self.ready_after_s = self._running.start(command, lambda: "http://" in self._output(), {"PYTHONPATH": str(SOURCE)})
        return self

    def _output(self) -> str:
        return (self.process.folder / "output").read_text()

    @property
    def spark_s(self) -> float:
        """The seconds of Spark's start, as the engine tells them."""
        found = SPARK_READY.findall(self._output())
        assert found, f"Spark has started:\n{self._output()}"
        return float(found[-1])

    def memory_mb(self) -> dict[str, float]:
        """Memory by kind of process. Forked workers share pages; each counts its part of them (the proportional set size)."""
        found: dict[str, float] = dict.fromkeys((ENGINE, DRIVER, JVM, WORKERS), 0.0)
        for pid in self.pids:
            with suppress(OSError):  # the process has ended
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                found[_kind(words)] += shared_mb(pid)
        return found

    def kill(self) -> None:
        """End it by SIGKILL, and wait until nothing of it is left."""
        pids = self.pids
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # the CPU time of orphans counts as ours, not as other work
        os.kill(pids[0], signal.SIGKILL)
        left = pids[1:]
        while left := [pid for pid in left if _is_there(pid)]:
            time.sleep(POLL_S)
        self.__exit__()


def _kind(words: list[bytes]) -> str:
    if words[0].endswith(b"java"):
        return JVM
    if b"barnabas.engine.driver" in words:
        return DRIVER
    return ENGINE if b"engine" in words else WORKERS


def _is_there(pid: int) -> bool:
    """Whether a process runs, or its parent has not waited for it; this process is the parent of an orphan, and waits for it."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return Path(f"/proc/{pid}").exists()


def shared_mb(pid: int) -> float:
    """The proportional set size of a process, in units of 1,000,000 bytes. Raises OSError."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6
