"""Children end with who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.testing.children import Child
from tests.processes import is_alive
from tests.waiting import wait_until

SLEEPS = "import time; time.sleep(600)"
STARTER = f"""
import select, subprocess, sys
from barnabas.testing.children import Child

inner = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEPS!r}]).pid, flush=True); sys.stdin.read()"
with Child([sys.executable, "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
    print(child.pid, child.stdout.readline(), flush=True)
    while not select.select([sys.stdin], [], [], 0.1)[0]:  # a signal just before a read that blocks would not be seen
        pass
    {{how}}
"""


@contextmanager
def starter(how: str = "pass") -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with a child and a grandchild, and their ids."""
    command = [sys.executable, "-c", STARTER.replace("{how}", how)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        yield process, pids


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_they_end_with_a_starter_that_is_killed(number: signal.Signals) -> None:
    with starter() as (process, pids):
        process.send_signal(number)
        assert process.wait() != 0
        wait_until(lambda: not any(map(is_alive, pids)))


def test_they_end_with_a_block_that_fails() -> None:
    with starter("raise RuntimeError") as (process, pids):
        process.communicate()
        assert process.returncode == 1
        wait_until(lambda: not any(map(is_alive, pids)))


def test_a_child_does_not_begin_whose_starter_is_killed_before_the_guard_knows_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = (
        "import os, signal, sys; from barnabas.testing import children; "
        "children._CHILDREN.started = lambda pid: (print(pid, flush=True), os.kill(os.getpid(), signal.SIGKILL)); "
        f"children.Child(['touch', {str(begun)!r}])"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.wait()
    wait_until(lambda: not is_alive(pid))
    assert not begun.exists()


def test_a_child_is_the_command_itself() -> None:
    with Child([sys.executable, "-c", "import os; print(os.getpid(), os.getpgrp())"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.read().split() == [str(child.pid)] * 2


def test_no_guard_is_left_when_the_last_child_has_ended() -> None:
    before = _children()
    with Child([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as first:
        second: Child[bytes] = Child([sys.executable, "-c", SLEEPS])
        assert len(_children()) == len(before) + 3
        second.end()
        assert second.returncode == -signal.SIGKILL
        assert first.poll() is None
    assert _children() == before


def _children() -> list[str]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()
