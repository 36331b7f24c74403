"""The short form of `python -m tests.torture.engine`."""

from __future__ import annotations

import pytest

from tests.torture.engine.rounds import torture


@pytest.mark.timeout(400)
def test_what_runs_becomes_as_the_jobs_say_whatever_is_killed() -> None:
    assert [each.number for each in torture(rounds=3, seed=2)] == [1, 2, 3]
