"""Child processes that end with the process that started them, even if that is killed. Benchmarks, demonstrations and torture
tests start many.

Rules
  1. Each `Child` has a session of its own, so that a terminal's signal reaches only the parent. The children of a `Child` are
     in its process group.
  2. While there are children, one `sh` reads their ids from a pipe. The end of the pipe means that the parent ended, perhaps by
     SIGKILL, and `sh` kills the remaining groups. (A parent death signal comes at the end of the thread that started a child,
     and does not reach grandchildren.)
  3. A child starts its command after its id is written. If the parent is killed before, the child ends without starting the
     command.
  4. A `with` block of a child kills the group if it ends with an exception; otherwise it waits for the child.

Ugly: a child inherits the read end of the pipe that tells it to start. A command that does not exist is exit code 127.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, AnyStr, Self

# Each input line lists all process ids; the last line counts. "$1" is a folder to remove, or empty.
SCRIPT = """
while read -r line; do ids=$line; done
for id in $ids; do kill -9 "-$id" "$id" 2>/dev/null; done
[ -z "$1" ] || rm -rf -- "$1"
"""

# Waits for a line from descriptor "$1", then runs the command. If the descriptor closes first, the parent has ended: exit.
GATE = 'read -r _ <"/dev/fd/$1" || exit 1; shift; exec "$@"'


class Guard:
    """Kills the remaining process groups after this process ended; thread-safe.

    Args:
        folder: the guard also removes this folder then.
    """

    def __init__(self, folder: Path | None = None) -> None:
        command = ["sh", "-c", SCRIPT, "barnabas-guard", "" if folder is None else str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, bufsize=1, start_new_session=True)
        self._watched: set[int] = set()
        self._lock = Lock()

    def watch(self, pid: int) -> None:
        """Watch the process group of a running leader, so that it ends with this process."""
        with self._lock:
            self._watched.add(pid)
            self._tell()

    def forget(self, pid: int) -> bool:
        """Stop watching a group that has ended, since another process may get its id; returns whether other groups are left."""
        with self._lock:
            if pid in self._watched:
                self._watched.discard(pid)
                self._tell()
            return bool(self._watched)

    def _tell(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, sorted(self._watched))) + "\n")

    def close(self) -> None:
        """End the groups that the guard still watches, and the guard."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _Children:
    """The children of this process, and their guard while there are any."""

    def __init__(self) -> None:
        self._guard: Guard | None = None
        self._lock = Lock()

    def started(self, pid: int) -> None:
        with self._lock:
            if self._guard is None:
                self._guard = Guard()
            self._guard.watch(pid)

    def ended(self, pid: int) -> None:
        with self._lock:
            if self._guard is not None and not self._guard.forget(pid):
                self._guard.close()
                self._guard = None


_CHILDREN = _Children()


class Child(subprocess.Popen[AnyStr]):
    """`subprocess.Popen` with the rules above; takes the same arguments."""

    def __init__(self, command: Sequence[str | os.PathLike[str]], **options: Any) -> None:
        gate, opener = os.pipe()
        try:
            begun = ["sh", "-c", GATE, "barnabas-child", str(gate), *command]
            super().__init__(begun, **{**options, "start_new_session": True, "pass_fds": (gate, *options.get("pass_fds", ()))})
            self.args = command
            _CHILDREN.started(self.pid)
            os.write(opener, b"\n")
        finally:
            os.close(gate)
            os.close(opener)

    def poll(self) -> int | None:
        """Like `Popen.poll`."""
        code = super().poll()
        if code is not None:
            _CHILDREN.ended(self.pid)
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Like `Popen.wait`."""
        code = super().wait(timeout)
        _CHILDREN.ended(self.pid)
        return code

    def end(self) -> None:
        """Kill it with its whole process group, and wait for it."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.end()
        super().__exit__(kind, error, trace)
