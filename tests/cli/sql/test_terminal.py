"""The shell on a real terminal, in a process of its own: Ctrl-C, the pager, leaving."""

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
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until

# the first terminal that a process of its own session opens becomes its terminal, from which Ctrl-C comes
TAKES_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A process on a pseudo terminal of 24 lines and 80 columns."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._descriptor, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [sys.executable, "-c", TAKES_TERMINAL, sys.executable, "-m", "barnabas.cli", *arguments]
        self._process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True
        )
        os.close(other)
        self._seen = b""

    def send(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def expect(self, text: str) -> str:
        """The output before this text."""
        wanted = text.encode()

        def has_come() -> bool:
            if wanted not in self._seen and select.select([self._descriptor], [], [], 0.1)[0]:
                self._seen += os.read(self._descriptor, 1 << 16)
            return wanted in self._seen

        try:
            wait_until(has_come)
        except AssertionError:
            pytest.fail(f"{text!r} was not shown after {self._seen!r}")
        before, _, self._seen = self._seen.partition(wanted)
        return before.decode(errors="replace")

    def status(self) -> int:
        """The exit code."""

        def has_ended() -> bool:
            if select.select([self._descriptor], [], [], 0)[0]:
                with contextlib.suppress(OSError):  # the other end is closed
                    os.read(self._descriptor, 1 << 16)
            return self._process.poll() is not None

        wait_until(has_ended, "the shell did not end")
        os.close(self._descriptor)
        return self._process.returncode

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            os.close(self._descriptor)


@pytest.fixture
def terminal(bootstrap: str, tmp_path: Path) -> Iterator[Terminal]:
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
        "PAGER": "less",
        "LESS": "-SR",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    made = Terminal(["sql", "-b", bootstrap], environment)
    yield made
    made.kill()


def test_a_session_on_a_terminal(terminal: Terminal) -> None:
    terminal.expect("barnabas=>")
    terminal.send("select 1 as one;\r")
    terminal.expect("(1 row)")
    terminal.expect("barnabas=>")
    terminal.send("select 1; select count(*) from range(100000000000) a, range(1000000) b;\r")
    terminal.expect("(1 row)")
    terminal.send("\x03")
    terminal.expect("ERROR:  canceling statement due to user request")
    terminal.expect("barnabas=>")
    terminal.send("select * from range(100000000000) t(long_name);\r")
    shown = terminal.expect("10\x1b")  # the first page in the pager
    assert "long_name" in shown
    terminal.send("q")
    terminal.expect("barnabas=>")
    terminal.send("select 2 as two;\r")
    terminal.expect("(1 row)")
    terminal.expect("barnabas=>")
    terminal.send("\x04")
    assert terminal.status() == 0
