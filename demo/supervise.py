"""Runs the pipeline's driver as a process, kills it once in the middle of its work, and starts it again.

Rules
  1. Killing means SIGKILL to the driver's Python and to its JVM: neither can clean up.
  2. The second driver gets only the checkpoint's folder, as after a real crash.
  3. In every case, no driver process is left at the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from barnabas.testing.children import Child
from demo.data import DemoError
from demo.pipeline import Status

STOP_S = 60.0  # the pipeline finishes its micro-batch first
ERROR_LINES = 15


class Driver:
    """A running driver."""

    def __init__(self, bootstrap: str, work: Path) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self._errors = work / "driver.err"
        root = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        with self._errors.open("wb") as errors:
            self._process: Child[str] = Child(
                [sys.executable, "-m", "demo.driver", bootstrap, str(work)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )
        self._java: int | None = None

    def wait_until_up(self) -> None:
        """Wait for Spark; raises DemoError if the driver ended instead."""
        self._java = int(self._line()["java"])

    def statuses(self) -> Iterator[Status]:
        """The progress of the query, about once a second, while it runs."""
        while True:
            yield Status(**self._line())

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise DemoError("the pipeline's driver ended:\n" + self._last_errors())
        read: dict[str, Any] = json.loads(line)
        return read

    def _last_errors(self) -> str:
        return "\n".join(self._errors.read_text(errors="replace").splitlines()[-ERROR_LINES:])

    def kill(self) -> None:
        """Kill the driver at once."""
        for pid in filter(None, (self._java, self._process.pid if self._process.poll() is None else None)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # the process has already ended
        self._process.wait()

    def stop(self) -> None:
        """Stop the driver cleanly, after the current batch.

        Raises:
            DemoError: the driver ended with an error.
        """
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise DemoError(f"the pipeline's driver did not stop within {STOP_S:g} s and was killed") from None
        if code != 0:
            raise DemoError("the pipeline's driver ended with an error:\n" + self._last_errors())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self.stop() if kind is None or kind is KeyboardInterrupt else self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
