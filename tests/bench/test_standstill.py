"""Processes that stand still while something else is measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from bench.standstill import standing_still, state_of

from tests.waiting import wait_until

ECHOES = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


# A vfork child: its parent stands still until the child reads one byte from standard input and ends.
HELD_UP = """
import ctypes, os, platform, signal, sys
CLONE, CLONE_VFORK = {"x86_64": 56, "aarch64": 220}[platform.machine()], 0x4000
if ctypes.CDLL(None).syscall(CLONE, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    print(os.getpid(), flush=True)
    os._exit(len(os.read(0, 1)) - 1)
os.wait()
print("on", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def echo() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", ECHOES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert _answer(process, "up") == "up\n"
        yield process
        process.kill()


def _answer(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_a_process_stands_still_and_goes_on(echo: subprocess.Popen[str]) -> None:
    with standing_still([echo.pid]):
        assert state_of(echo.pid) == "T"
    assert _answer(echo, "on") == "on\n"


def test_it_goes_on_when_measuring_fails(echo: subprocess.Popen[str]) -> None:
    with pytest.raises(ZeroDivisionError), standing_still([echo.pid]):
        raise ZeroDivisionError
    assert _answer(echo, "on") == "on\n"


def test_a_process_that_is_gone_keeps_nobody_waiting(echo: subprocess.Popen[str]) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with standing_still([gone.pid, echo.pid]):
        assert (state_of(gone.pid), state_of(echo.pid)) == ("X", "T")
    assert _answer(echo, "on") == "on\n"


def test_a_process_that_ends_meanwhile_does_not_keep_the_others_from_going_on(echo: subprocess.Popen[str]) -> None:
    ends = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with standing_still([ends.pid, echo.pid]):
        ends.kill()
        ends.wait()
    assert _answer(echo, "on") == "on\n"


def test_one_that_has_ended_and_was_not_waited_for_counts_as_still() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    wait_until(lambda: state_of(ended.pid) == "Z")
    with standing_still([ended.pid]):
        assert state_of(ended.pid) == "Z"
    assert ended.wait() == 0


def test_one_whose_helper_begins_stops_once_that_has_begun() -> None:
    with subprocess.Popen([sys.executable, "-c", HELD_UP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGSTOP)
        parent.stdin.write("x")
        parent.stdin.flush()
        with standing_still([parent.pid, child]):
            assert state_of(parent.pid) == "T"
        assert parent.stdout.readline() == "on\n"


def test_who_measures_does_not_stop_itself(echo: subprocess.Popen[str]) -> None:
    with pytest.raises(ValueError, match="while it measures"), standing_still([echo.pid, os.getpid()]):
        pytest.fail("nobody would let it go on")
    assert state_of(echo.pid) != "T"
