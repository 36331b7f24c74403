"""The short form of `python -m tests.torture.databases`."""

from __future__ import annotations

import pytest

from tests.torture.databases.rounds import torture


@pytest.mark.timeout(400)
def test_tables_and_topics_become_equal_whatever_is_killed() -> None:
    assert [each.number for each in torture(rounds=2, seed=2)] == [1, 2]
