"""The short form of `python -m tests.torture.connectors`."""

from __future__ import annotations

import pytest

from tests.torture.connectors.rounds import torture


@pytest.mark.timeout(600)
def test_each_record_is_written_once_whatever_is_killed() -> None:
    assert [each.number for each in torture(rounds=3, seed=1)] == [1, 2, 3]
