"""One process of a cluster: started in its place on the network, killed, stopped in mid-air, started again.

Owns the process; whatever way the test ends, `Processes.close` or the guard leave none.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.testing.children import Guard

STOP_TIMEOUT_S = 60.0


class Node:
    """A process that can be started again and again with the same command.

    Args:
        name: of its node in the network.
        command: with the words in front that put it into its place.
        log: its output is appended there.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, guard: Guard, environment: Mapping[str, str]) -> None:
        self.name = name
        self._command = list(command)
        self._log = log
        self._guard = guard
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        self._guard.watch(self._process.pid)

    def kill(self) -> None:
        """As kill -9 does; nothing if it does not run."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """In order, and wait for the end."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{self.name} did not end within {STOP_TIMEOUT_S:g} s") from None
        finally:
            self._guard.forget(process.pid)

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
