"""A task in a process of its own, as its runner sees it; `running_job.py: Work`."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from barnabas.engine.runner.task_main import Start, run_task
from barnabas.errors import BarnabasError

LOOK_S = 0.05
STOP_S = 12.0  # a task itself gives its plug-in ten seconds
KILL_S = 2.0  # for the end of a process that was killed
LOCK = threading.Lock()  # multiprocessing asks processes of all threads for their exit codes, and a code can be read once
SERVER_GONE = 255  # multiprocessing's exit code of a process whose fork server has died


class TaskFailed(BarnabasError):
    """The task could not start, in one line."""


class TaskProcess:
    """See the module.

    Args:
        context: of the fork server.
        start: what the process needs.
        levels: of loggers, that were set since the runner began.
    """

    def __init__(self, context: ForkServerContext, start: Start, levels: Callable[[], Mapping[str, int]]) -> None:
        self._context, self._begin, self._levels = context, start, levels
        self._told: Mapping[str, int] = start.levels
        self._process: ForkServerProcess | None = None
        self._pipe: Connection | None = None
        self._heard: set[str] = set()
        self._reason: str | None = None
        self._hindrance: str | None = None
        self._cancelled = False

    @property
    def pid(self) -> int | None:
        """Of the process, once there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process, and wait until the task is open. Raises TaskFailed, OSError."""
        self._pipe, theirs = self._context.Pipe()
        try:
            process = self._context.Process(target=run_task, args=(self._begin, theirs), daemon=True)
            with LOCK:
                process.start()
            self._process = process
        finally:
            theirs.close()
        while "started" not in self._heard:
            self._pipe.poll(LOOK_S)
            if self._cancelled:
                raise TaskFailed("the task was stopped while it started")
            reason = self.failure()
            if reason is not None:
                raise TaskFailed(reason)

    def failure(self) -> str | None:
        """Why the task has ended, in one line; None while it runs."""
        self._receive()
        if self._reason is None:
            code = self._exit_code()
            if code is not None:
                self._receive()  # its last words
                self._reason = self._reason or ended(code)
        self._tell_levels()
        return self._reason

    def _receive(self) -> None:
        pipe = self._pipe
        try:
            while pipe is not None and pipe.poll():
                what, value = pipe.recv()
                self._heard.add(what)
                if what == "failed":
                    self._reason = value
                elif what == "hindered":
                    self._hindrance = value
        except (EOFError, OSError):
            self._pipe = None
            assert pipe is not None
            pipe.close()

    def _tell_levels(self) -> None:
        levels = self._levels()
        if levels != self._told:
            self._told = levels
            self._send("levels", levels)

    def _send(self, what: str, value: Any = None) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):  # the process has ended, and `failure` says why
                self._pipe.send((what, value))

    def _exit_code(self) -> int | None:
        if self._process is None:
            return None
        with LOCK:
            return self._process.exitcode

    def hindrance(self) -> str | None:
        """Why the task waits while it runs."""
        return self._hindrance

    def has_settled(self) -> bool:
        """Whether the task works."""
        return "settled" in self._heard

    def cancel(self) -> None:
        """Kill a task that opens."""
        self._cancelled = True

    def stop(self) -> None:
        """End the task: ask, wait, kill."""
        process = self._process
        if process is None:
            return
        self._send("stop")
        if not self._waits(0.0 if self._cancelled else STOP_S) or self._exit_code() == SERVER_GONE:
            self.kill()
            self._waits(KILL_S)
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _waits(self, timeout_s: float) -> bool:
        """Wait for the end of the process; whether it has ended."""
        deadline_s = time.monotonic() + timeout_s
        while self._exit_code() is None and time.monotonic() < deadline_s:
            time.sleep(LOOK_S / 5)
        return self._exit_code() is not None

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)


def ended(code: int) -> str:
    """Why a process has ended, in one line."""
    if code < 0:
        return f"the process of the task ended with signal {-code}"
    if code == SERVER_GONE:
        return "the process of the task ended with the fork server of the runner"
    return f"the process of the task ended with exit code {code}"
