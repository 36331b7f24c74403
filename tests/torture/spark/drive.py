"""The driver's process from outside: started, watched, killed; and its Python workers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from barnabas.testing.children import Child
from tests.torture.spark.plan import Sink

ROOT = Path(__file__).parents[3]
WAIT_S = 900.0  # Spark's start takes 30 s of CPU, and the machine may be busy
STOP_S = 60.0


class NothingHappens(AssertionError):
    """The awaited event did not happen."""


class Driver:
    """Runs `tests.torture.spark.driver`; a thread reads what it says."""

    def __init__(self, bootstrap: str, folder: Path, sink: Sink) -> None:
        self._bootstrap, self._folder, self._sink = bootstrap, folder, sink
        self._process: Child[str] | None = None
        self._java: int | None = None
        self._news = threading.Condition()
        self.batches = 0  # finished batches reported by all processes
        self.failures: list[str] = []  # errors of queries

    def start(self) -> None:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "tests.torture.spark.driver", self._bootstrap, str(self._folder), self._sink.value]
        with (self._folder / "driver.log").open("ab") as log:
            self._process = Child(
                command,
                env={**os.environ, "PYTHONPATH": path},
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._java = None
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                with suppress(json.JSONDecodeError), self._news:  # a kill may cut the last line
                    self._take(json.loads(line))
                    self._news.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        self._java = message.get("java", self._java)
        self.batches += "batch" in message
        if "failed" in message:
            self.failures.append(message["failed"])

    def wait_for_batches(self, count: int) -> None:
        """Wait until so many more micro-batches were finished."""
        with self._news:
            target = self.batches + count
            if not self._news.wait_for(lambda: self.batches >= target or not self.is_running(), WAIT_S):
                raise NothingHappens(f"no {count} micro-batches within {WAIT_S:g} s; failures: {self.failures[-2:]}")
        if not self.is_running():
            raise NothingHappens(f"the driver ended by itself; its log is in {self._folder}: {self.log_tail()}")

    def log_tail(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")[-2000:]

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL to its Python and its JVM; its workers end with the JVM."""
        assert self._process is not None
        for pid in (self._java, self._process.pid):
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def kill_worker(self, rng: random.Random) -> bool:
        """SIGKILL to one of the Python processes below the JVM; False where there is none."""
        workers = [] if self._java is None else python_below(self._java)
        if not workers:
            return False
        with suppress(ProcessLookupError):
            os.kill(rng.choice(workers), signal.SIGKILL)
        return True

    def stop(self) -> None:
        """In order; killed if that takes too long."""
        if self._process is None:
            return
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._close()

    def _close(self) -> None:
        assert self._process is not None
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


def python_below(pid: int) -> list[int]:
    """The Python processes among the descendants of a process."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        waiting += children
        found += children
    return sorted(each for each in found if _is_python(each))


def _is_python(pid: int) -> bool:
    with suppress(OSError):
        return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 1)[0]
    return False
