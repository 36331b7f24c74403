"""Runs of pipelines on this machine: one folder for each name, with its description, state, log and progress. No Spark.

    <state>/<name>/lock           the process of the run holds it
                   run.json       pipeline, process, times, result
                   log            output of Spark and the pipeline
                   events.jsonl   events of a declared pipeline's flows, in the running or last update
                   source-*.json  progress, by the sources of that update (`progress.py`)

Rules
  1. A name has one run at a time: the process with its lock. A lock ends with its process, even if that is killed.
  2. Only the holder of the lock writes `run.json`. If it says "running" and no process has the lock, the run was killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from barnabas.errors import BarnabasError
from barnabas.pipelines.runs.progress import SourceProgress, read_progress

STATE_VARIABLE = "BARNABAS_STATE_DIR"
NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
MAX_LINE_BYTES = 64 << 10  # the last error is searched in this many bytes at the end of a log
POLL_S = 0.1


class PipelineError(BarnabasError):
    """A pipeline cannot be run, stopped or found; the text gives the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Run:
    """One run, the content of `run.json`.

    Args:
        state: running, completed, failed, stopped or killed.
        started_s, ended_s: seconds since the epoch.
        error: one line, for a failed run.
    """

    name: str
    what: str
    pid: int
    started_s: float
    state: str = "running"
    ended_s: float | None = None
    error: str | None = None


def state_folder() -> Path:
    """The folder of all runs, from the environment."""
    if given := os.environ.get(STATE_VARIABLE):
        return Path(given) / "pipelines"
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "barnabas" / "pipelines"


class RunFolder:
    """The folder of one pipeline's name."""

    def __init__(self, name: str, state: Path | None = None) -> None:
        if not NAME.fullmatch(name) or name.strip(".") == "":
            raise PipelineError(
                f"{name!r} is not a name for a pipeline: allowed are letters, digits, '.', '_' and '-', at most 100"
            )
        self.name = name
        self.path = (state or state_folder()) / name

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @contextmanager
    def running(self, what: str) -> Iterator[Run]:
        """Lock the name, and clean its folder; `finish` records the result.

        Raises:
            PipelineError: the pipeline runs already.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PipelineError(f"pipeline {self.name} is running already") from None
            self.log.unlink(missing_ok=True)
            begin_update(self.events)
            run = Run(self.name, what, os.getpid(), time.time())
            self._write(run)
            yield run

    def finish(self, run: Run, state: str, error: str | None = None) -> None:
        self._write(replace(run, state=state, ended_s=time.time(), error=error))

    def _write(self, run: Run) -> None:
        draft = self.path / "run.json.new"
        draft.write_text(json.dumps(asdict(run), indent=1))
        draft.replace(self.path / "run.json")

    def read(self) -> Run | None:
        """The last run; None if there was none."""
        try:
            run = Run(**json.loads((self.path / "run.json").read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise PipelineError(f"{self.path / 'run.json'} is not the file of a run: {error}") from error
        return replace(run, state="killed") if run.state == "running" and not self.is_held() else run

    def is_held(self) -> bool:
        """Whether a process runs this pipeline now."""
        try:
            with (self.path / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True

    def progress(self) -> list[SourceProgress]:
        return read_progress(self.path)

    def stop(self, timeout_s: float) -> None:
        """End the run and wait until it has ended.

        Raises:
            PipelineError: the pipeline does not run, or did not end in time.
        """
        run = self.read()
        if run is None or run.state != "running":
            raise PipelineError(f"pipeline {self.name} does not run")
        with suppress(ProcessLookupError):
            os.kill(run.pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        while self.is_held():
            if time.monotonic() > deadline:
                raise PipelineError(f"pipeline {self.name} (process {run.pid}) has not ended in {timeout_s:g} seconds")
            time.sleep(POLL_S)

    def forget(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def known_runs(state: Path | None = None) -> list[tuple[RunFolder, Run]]:
    """Every pipeline that ran here, by name."""
    base = state or state_folder()
    folders = [RunFolder(path.parent.name, base) for path in sorted(base.glob("*/run.json"))]
    return [(folder, run) for folder in folders if (run := folder.read()) is not None]


def begin_update(events: Path) -> None:
    """Remove the events of the previous update, so that a pipeline without an end uses no more space than one update."""
    for old in (events, *events.parent.glob("source-*.json")):
        old.unlink(missing_ok=True)


def events_of(path: Path) -> list[dict[str, Any]]:
    """The events of a declared pipeline's last update so far, from their file."""
    with Events(path) as events:
        return events.read()


class Events:
    """Reads a growing file of events; if the file is replaced, it continues with the next one. Closed at the end of a `with`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self) -> list[dict[str, Any]]:
        """The events since the last call; an incomplete line is read by a later call."""
        found = self._read_on()
        try:
            if self._file is not None and os.path.samestat(os.fstat(self._file.fileno()), self._path.stat()):
                return found
            following = self._path.open("rb")
        except FileNotFoundError:
            return found
        if self._file is not None:
            found += self._read_on()  # the last events of the previous update
            self._file.close()
        self._file, self._rest = following, b""
        return found + self._read_on()

    def _read_on(self) -> list[dict[str, Any]]:
        if self._file is None:
            return []
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [json.loads(line) for line in lines]


def flow_error(path: Path) -> str | None:
    """The last error event of a flow in a file of events, in one line; Spark may retry the flow."""
    for event in reversed(events_of(path)):
        _, mark, reason = str(event["message"]).partition("Error:")
        if mark:
            return " ".join(reason.split())
    return None


def last_error(folder: RunFolder) -> str | None:
    """The reason of a failed run in one line: the error event of a flow; without one, the last line of an exception in the
    log."""
    if told := flow_error(folder.events):
        return told
    try:
        with folder.log.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - MAX_LINE_BYTES, 0))
            lines = log.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    return error_line(lines)


def error_line(lines: Sequence[str]) -> str | None:
    """The last line of a log that names an exception; without one, its last line."""
    errors = [line.strip() for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception|Failed|Loss)\b", line)]
    errors = errors or [line.strip() for line in lines if line.strip()]
    return errors[-1] if errors else None
