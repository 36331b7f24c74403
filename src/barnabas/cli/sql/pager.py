"""Where results go: standard output, a file, or a pager for results that a terminal does not hold.

The pager starts with the first text that does not fit, and gets all that follows as it comes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from typing import IO, Protocol

from barnabas.cli.sql.reports import width
from barnabas.cli.sql.statement_thread import ctrl_c_calls

LESS = {"LESS": "-SRFX"}  # long lines are cut, colours stay, a short text needs no key


class OutputClosed(Exception):
    """The user has left the pager."""


class Sink(Protocol):
    """Takes the text of one result."""

    def write(self, text: str) -> None: ...

    def close(self) -> None: ...


class StandardOutput:
    """Standard output as it is."""

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def close(self) -> None:
        sys.stdout.flush()


class FileOutput:
    """A file that stays open for the results to come."""

    def __init__(self, path: str) -> None:
        self._file = open(os.path.expanduser(path), "w", encoding="utf-8")  # noqa: SIM115 - closed by `finish`

    def write(self, text: str) -> None:
        self._file.write(text)

    def close(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        """No result follows."""
        self._file.close()


def pager_command() -> list[str] | None:
    """The user's pager, or less; None if there is none."""
    text = os.environ.get("PAGER", "less")
    try:
        command = shlex.split(text)
    except ValueError:
        return None
    return command if command and shutil.which(command[0]) else None


class Paged:
    """A terminal, with a pager for texts that it does not hold."""

    def __init__(self, command: list[str] | None, size: os.terminal_size) -> None:
        self._command, self._size = command, size
        self._held: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None

    def write(self, text: str) -> None:
        if self._process is not None:
            self._pass(text)
            return
        if self._command is None:
            sys.stdout.write(text)
            return
        self._held.append(text)
        self._lines += text.count("\n")
        if self._lines > self._size.lines - 2 or self._is_wide(text):
            self._start()

    def _is_wide(self, text: str) -> bool:
        return any(width(line) > self._size.columns for line in text.splitlines())

    def _start(self) -> None:
        assert self._command is not None
        sys.stdout.flush()
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env={**LESS, **os.environ}
        )
        held, self._held = "".join(self._held), []
        self._pass(held)

    def _pass(self, text: str) -> None:
        pipe = self._pipe()
        try:
            pipe.write(text)
            pipe.flush()
        except BrokenPipeError:
            raise OutputClosed from None

    def _pipe(self) -> IO[str]:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin

    def close(self) -> None:
        """Show the rest, and wait until the user has left the pager."""
        if self._process is None:
            sys.stdout.write("".join(self._held))
            sys.stdout.flush()
            self._held = []
            return
        with contextlib.suppress(BrokenPipeError):
            self._pipe().close()
        with ctrl_c_calls(lambda: None):  # Ctrl-C belongs to the pager
            self._process.wait()
