"""A short form of `python -m tests.torture.views`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.views.rounds import Torture


@pytest.mark.timeout(600)  # Spark starts twice, on a machine that may be busy
def test_views_equal_their_queries_whatever_is_killed(tmp_path: Path) -> None:
    with Torture(tmp_path, seed=2) as torture:
        for number, kind in enumerate(("nothing", "engine")):
            assert torture.round(number, kind).written > 0
