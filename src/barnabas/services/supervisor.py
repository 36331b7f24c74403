"""The services beside a broker: one child process, which is started again when it ends.

Owns a thread of the broker's process and the child. The child's standard input is a pipe that nobody writes to. It ends when
the broker ends for any reason, also by SIGKILL; then the child stops. This module imports nothing of the services, so that a
broker stays small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from threading import Event, Thread

# not an argument: the task contains passwords, and all users of the machine can see arguments
TASK_VARIABLE = "BARNABAS_SERVICES_TASK"
FIRST_PAUSE_S, MOST_PAUSE_S = 0.5, 30.0
LONG_RUN_S = 60.0  # after a run of this length, restart pauses begin at FIRST_PAUSE_S again
STOP_TIMEOUT_S = 15.0
EXIT_USAGE = 2


def spawn(
    listeners: Mapping[str, str], properties: Mapping[str, str], log_level: str = "warning", stdout: int | None = None,
    stderr: int | None = None, environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:  # fmt: skip
    """A process with these services (URLs by name), which ends when its standard input ends."""
    task = {"listeners": dict(listeners), "properties": dict(properties), "log_level": log_level}
    return subprocess.Popen(
        [sys.executable, "-m", "barnabas.services.process"],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(environment or {}), TASK_VARIABLE: json.dumps(task)},
        start_new_session=True,  # Ctrl-C must reach only the broker, which ends the services
    )


class Supervisor:
    """Runs the services of one broker."""

    def __init__(self, listeners: Mapping[str, str], properties: Mapping[str, str], log_level: str) -> None:
        self._listeners, self._properties, self._log_level = dict(listeners), dict(properties), log_level
        self._stopping = Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._run, name="services", daemon=True)

    def start(self, bootstrap: str) -> None:
        """Start the services for this broker; returns at once."""
        self._properties["bootstrap.servers"] = bootstrap
        self._thread.start()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._process = spawn(self._listeners, self._properties, self._log_level)
            except OSError as error:
                _tell(f"the services cannot be started: {error.strerror}")
                return
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if code == EXIT_USAGE:
                _tell("the services stay off; the broker goes on without them")
                return
            pause_s = FIRST_PAUSE_S if time.monotonic() - began > LONG_RUN_S else pause_s
            _tell(f"the services ended with exit code {code}; they start again in {pause_s:g} s")
            self._stopping.wait(pause_s)
            pause_s = min(pause_s * 2, MOST_PAUSE_S)

    def stop(self) -> None:
        """End the services; may be called before they run."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)


def _tell(line: str) -> None:
    print(f"barnabas: {line}", file=sys.stderr, flush=True)
