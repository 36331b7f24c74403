"""A shell over a small engine, and what it printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from barnabas.cli.sql.backslash import run_command
from barnabas.cli.sql.printers import Style
from barnabas.cli.sql.shell import Failed, Options, Shell
from barnabas.sql.interface import Caller, Session
from tests.sql.postgres.fake_engine import FakeEngine


class Told:
    """A shell and its output."""

    def __init__(self, engine: FakeEngine, capsys: pytest.CaptureFixture[str], **keywords: Any) -> None:
        self.errors: list[str] = []
        self._capsys = capsys
        options = keywords.pop("options", None) or Options(Style())
        self.shell = Shell(lambda: cast(Session, engine.session(Caller())), self.errors.append, run_command, options, **keywords)

    def run(self, text: str) -> str:
        """The output of lines."""
        self.shell.run_lines(text.splitlines(keepends=True))
        return self._capsys.readouterr().out

    def fail(self, text: str) -> str:
        """The errors of lines, the last of which fails."""
        with pytest.raises(Failed):
            self.shell.run_lines(text.splitlines(keepends=True))
        found = "".join(self.errors)
        self.errors.clear()
        return found


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    made = FakeEngine()
    yield made
    made.close()


@pytest.fixture
def make_shell(engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Told]]:
    """Shells that are closed at the end."""
    made: list[Told] = []

    def make(**keywords: Any) -> Told:
        made.append(Told(engine, capsys, **keywords))
        return made[-1]

    yield make
    for each in made:
        each.shell.close()


@pytest.fixture
def told(make_shell: Callable[..., Told]) -> Told:
    return make_shell()
