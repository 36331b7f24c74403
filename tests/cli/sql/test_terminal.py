"""The shell on a real terminal, in a process of its own: Ctrl-C, the pager, leaving."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import Terminal


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
    made = Terminal([sys.executable, "-m", "barnabas.cli", "sql", "-b", bootstrap], environment)
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
