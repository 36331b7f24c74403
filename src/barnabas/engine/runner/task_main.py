"""The process of one task: opens the task, and keeps it until the runner says otherwise, or is gone.

It sends to the runner: `("started", None)`, `("settled", None)`, `("failed", reason)`, `("hindered", reason or None)`.
It gets `("stop", None)` and `("levels", levels)`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from msgspec import Struct

from barnabas.engine.folders import job_log
from barnabas.engine.job_logs import JobLog
from barnabas.engine.jobs import Job, decode
from barnabas.engine.reasons import one_line
from barnabas.engine.rotating_log import RotatingLog
from barnabas.engine.runner_unit import apply_levels
from barnabas.engine.running_job import Hindered, Work

CONNECTORS = "barnabas.connect.runtime.opening"
LOOK_S = 0.1
LEAVE_S = 2.0  # for the end of a task whose runner is gone


class Start(Struct, frozen=True):
    """What a process needs to begin.

    Args:
        job: as its record has it.
        settings: of the client.
        folder: of the engine.
        levels: of loggers.
    """

    job: bytes
    settings: Mapping[str, str]
    folder: str
    levels: Mapping[str, int]


class Lines:
    """Standard output and standard error of the task's Python code: its lines go to the log of the job."""

    encoding = "utf-8"

    def __init__(self, log: RotatingLog) -> None:
        self._log, self._rest = log, ""

    def write(self, text: str) -> int:
        """Take text; whole lines are written."""
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._log.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
        return len(text)

    def flush(self) -> None:
        """Whole lines are written already."""

    def isatty(self) -> bool:
        """It is a file."""
        return False


def run_task(start: Start, pipe: Connection) -> None:
    """The work of the process. It does not return: threads of a plug-in must not keep the process."""
    faulthandler.enable()  # to the runner's log
    code = 1
    try:
        code = _run(start, pipe)
    finally:
        os._exit(code)


def _run(start: Start, pipe: Connection) -> int:
    job = decode(start.job, Job)
    log = _logger(job.name, Path(start.folder))
    apply_levels(start.levels)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_listen, args=(pipe, stopping), daemon=True).start()
    work: Work | None = None
    try:
        work = import_module(CONNECTORS).opened(job, start.settings, log)
        work.start()
        _tell(pipe, "started")
        return _watch(work, pipe, stopping)
    except Exception as error:
        log.warning("event=job-not-started job=%s", job.name, exc_info=True)
        _tell(pipe, "failed", one_line(error))
        return 1
    finally:
        if work is not None:
            work.stop()


def _watch(work: Work, pipe: Connection, stopping: threading.Event) -> int:
    """Tell the runner how the task does, until it ends."""
    has_settled, hindrance = False, None
    while not stopping.wait(LOOK_S):
        reason = work.failure()
        if reason is not None:
            _tell(pipe, "failed", reason)
            return 1
        now = work.hindrance() if isinstance(work, Hindered) else None
        if now != hindrance:
            hindrance = now
            _tell(pipe, "hindered", now)
        if work.has_settled() and not has_settled:
            has_settled = True
            _tell(pipe, "settled")
    return 0


def _tell(pipe: Connection, what: str, value: str | None = None) -> None:
    with contextlib.suppress(OSError):  # the runner is gone, and `_listen` ends the process
        pipe.send((what, value))


def _listen(pipe: Connection, stopping: threading.Event) -> None:
    """The thread that obeys the runner."""
    while True:
        try:
            what, value = pipe.recv()
        except (EOFError, OSError):
            stopping.set()
            threading.Timer(LEAVE_S, os._exit, (1,)).start()
            return
        if what == "levels":
            apply_levels(value)
        else:
            stopping.set()


def _logger(name: str, folder: Path) -> logging.Logger:
    """The logger of the job. All lines of the process go to the job's log."""
    file = RotatingLog(job_log(folder, name))
    logging.basicConfig(handlers=[JobLog(file)], level="INFO", force=True)
    output: Any = Lines(file)
    sys.stdout = sys.stderr = output
    logger = logging.Logger(f"barnabas.job.{name}")  # not by `getLogger`, for which a dot in a name is a parent's
    logger.parent = logging.root
    return logger
