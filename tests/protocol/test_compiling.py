"""One line tells that kernels are compiled: in the log, and to who waits at a terminal."""

from __future__ import annotations

import logging
import sys

import pytest
from numba.core.event import trigger_event

from barnabas.cli.table_options import table_errors
from barnabas.protocol.records import compiling

LOGGER = "barnabas.protocol.records.compiling"


@pytest.fixture(autouse=True)
def _untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has compiled nothing."""
    monkeypatch.setattr(compiling.listener, "_is_told", False)


def compile_twice() -> None:
    for _ in range(2):
        with trigger_event("numba:compile"):
            pass


def test_the_log_tells_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        compile_twice()
    [line] = [each.getMessage() for each in caplog.records if each.name == LOGGER]
    assert line.startswith("event=compiling-kernels ")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_terminal_shows_it(is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    logger = logging.getLogger(LOGGER)
    before = (logger.level, list(logger.handlers))
    with table_errors():
        compile_twice()
    shown = capsys.readouterr()
    text = "compiling the loops that read records: this takes some ten seconds, once after an installation\n"
    assert (shown.out, shown.err) == ("", text if is_terminal else "")
    assert (logger.level, logger.handlers) == before
