"""The short form of `python -m tests.torture.databases`."""

from __future__ import annotations

import pytest

from tests.torture.databases.rounds import DATABASES, torture


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", DATABASES)
def test_tables_and_topics_become_equal_whatever_is_killed(database: str) -> None:
    assert [each.number for each in torture(rounds=2, seed=2, database=database)] == [1, 2]
