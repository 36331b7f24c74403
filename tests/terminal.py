"""Programs on a terminal, as a person sees them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence

import pytest

from tests.waiting import wait_until

# the first terminal that a process of its own session opens becomes its terminal, from which Ctrl-C comes
TAKES_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A process on a pseudo terminal of 24 lines and 80 columns.

    Args:
        command: the path of a program, and its arguments.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._descriptor, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKES_TERMINAL, *command], stdin=other, stdout=other, stderr=other, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(other)
        self._seen = b""

    def send(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def expect(self, text: str) -> str:
        """The output before this text."""
        try:
            wait_until(lambda: self.shows(text))
        except AssertionError:
            pytest.fail(f"{text!r} was not shown after {self._seen!r}")
        before, _, self._seen = self._seen.partition(text.encode())
        return before.decode(errors="replace")

    def shows(self, text: str) -> bool:
        """Whether the output has this text, after a look at what has come."""
        if text.encode() not in self._seen and select.select([self._descriptor], [], [], 0.1)[0]:
            self._seen += os.read(self._descriptor, 1 << 16)
        return text.encode() in self._seen

    def status(self) -> int:
        """The exit code."""

        def has_ended() -> bool:
            if select.select([self._descriptor], [], [], 0)[0]:
                with contextlib.suppress(OSError):  # the other end is closed
                    os.read(self._descriptor, 1 << 16)
            return self._process.poll() is not None

        wait_until(has_ended, "the process did not end")
        os.close(self._descriptor)
        return self._process.returncode

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            os.close(self._descriptor)
