"""The command line of torture runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.torture.front import run_rounds


@dataclass(frozen=True)
class _Round:
    number: int


def _rounds(until: int, *, fails: bool) -> Iterator[_Round]:
    for number in range(1, until + 1):
        yield _Round(number)
    if fails:
        raise AssertionError("a row is missing")


@pytest.mark.parametrize("fails", [False, True])
def test_a_promise_that_is_broken_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str], fails: bool) -> None:
    code = run_rounds(
        "the command", _rounds(2, fails=fails), lambda each: f"killed {each.number}", lambda done: f"{done.rounds} right"
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["round 1: killed 1", "round 2: killed 2"]
    if fails:
        assert code == 1
        assert lines[2] == "broken after round 2: a row is missing"
        assert lines[3] == "again: the command"
    else:
        assert code == 0
        assert lines[2:] == ["2 right"]
