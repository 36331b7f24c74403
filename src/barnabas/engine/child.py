"""A process of the engine, with all that it starts: it ends with the engine, and its lines go to a log.

Rules
  1. Its standard input is a pipe. It ends when the engine ends for any reason, also by SIGKILL.
  2. It may hold a lock, which an engine that starts later cannot get before the process has ended.
  3. It leads a process group. It counts as ended when the group is gone; what is left of the group after a while is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from barnabas.engine.rotating_log import RotatingLog
from barnabas.errors import BarnabasError
from barnabas.pipelines.runs.folders import error_line

READY = b"ready\n"
LEAVE_S = 20.0  # for the rest of the group after the process has ended
LAST_LINES = 100  # in which the reason of an end is looked for


class StillThere(BarnabasError):
    """The process that an earlier engine started has not ended."""


class Child:
    """A running process.

    Args:
        lock: a file in a folder that exists; None: two of these processes do no harm.
        log: gets its standard error and its standard output.
        leave_s: for the rest of the group after the process has ended.
        announces: whether it prints the line `ready` when it works; otherwise it is ready at once.

    Raises:
        OSError: it cannot be started.
        StillThere: another process holds the lock.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: RotatingLog,
        *,
        lock: Path | None,
        announces: bool,
        leave_s: float = LEAVE_S,
    ) -> None:
        self._log, self._leave_s = log, leave_s
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)
        self._ready = threading.Event()
        if not announces:
            self._ready.set()
        with contextlib.ExitStack() as stack:
            held = [] if lock is None else [stack.enter_context(_locked(lock)).fileno()]
            self._process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True, pass_fds=held,
            )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pumps = [
            threading.Thread(target=self._pump, args=(stream,), name="engine-log", daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for each in self._pumps:
            each.start()
        self._leave_by_s: float | None = None

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its group."""
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    def _pump(self, stream: BinaryIO) -> None:
        for line in stream:
            if line == READY and not self._ready.is_set():
                self._ready.set()
                continue
            self._last.append(line)
            self._log.write(line)

    def tell(self, line: str) -> bool:
        """Write a line to its standard input; whether that was possible."""
        assert self._process.stdin is not None
        try:
            os.set_blocking(self._process.stdin.fileno(), False)
            return os.write(self._process.stdin.fileno(), f"{line}\n".encode()) > len(line)
        except OSError:
            return False

    def poll(self) -> int | None:
        """The exit code, once the process and its group are gone."""
        code = self._process.poll()
        if code is None:
            return None
        if self._signal_group(0):
            now_s = time.monotonic()
            self._leave_by_s = self._leave_by_s or now_s + self._leave_s
            if now_s < self._leave_by_s:
                with contextlib.suppress(ChildProcessError):  # orphans are children of the first process of a container
                    os.waitpid(-self.pid, os.WNOHANG)
                return None
            self._signal_group(signal.SIGKILL)
        return code

    def terminate(self) -> None:
        """Tell the process to end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """End the process and its group at once."""
        self._leave_by_s = time.monotonic()
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: int) -> bool:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def reason(self, code: int) -> str:
        """Why it ended, in one line."""
        if code in (-signal.SIGKILL, -signal.SIGTERM):  # from outside, so the log does not say why
            return f"its process was ended by {signal.Signals(-code).name}"
        lines = [line.decode(errors="replace") for line in self._last]
        what = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        told = error_line(lines)
        return f"its process ended with {what}" + (f": {told}" if told else "")

    def close(self) -> None:
        """Release the pipes of a process that has ended."""
        for each in self._pumps:
            each.join(1.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._log.close()


def _locked(path: Path) -> IO[str]:
    """A file with its lock. Raises StillThere."""
    held = path.open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise StillThere("the process of an earlier engine has not ended yet") from None
    return held
