"""A short form of `python -m tests.torture.tables`, and that its check sees what it is there to see."""

from __future__ import annotations

import pytest

from tests.tables.consumer import ConsumedRow
from tests.torture.check import Broken
from tests.torture.tables.check import compare
from tests.torture.tables.plan import ABORTED, COMPACTED, KEPT, SHORT, Plan, name_of
from tests.torture.tables.rounds import torture


@pytest.mark.timeout(300)  # kills, on a machine that may be busy
def test_scans_equal_a_consumer_while_the_broker_is_killed() -> None:
    (found,) = torture(Plan(rounds=1, seed=3, seconds=1.5))
    assert found.scans > 0
    assert found.rows > 0


def row(offset: int, key: bytes = b"k", value: bytes = b"v") -> ConsumedRow:
    return ConsumedRow(offset, 0, key, value)


ROWS = [row(0), row(1), row(3)]


@pytest.mark.parametrize(
    ("kind", "scanned", "end", "consumed", "fault"),
    [
        (KEPT, ROWS[:2], 4, ROWS, "lacks 1 records"),
        (KEPT, [*ROWS, row(5)], 6, ROWS, "has 1 records that a consumer has not"),
        (KEPT, [row(1), row(0)], 4, ROWS, "not in the order"),
        (KEPT, ROWS, 3, ROWS, "its snapshot ends at 3"),
        (KEPT, [row(0, value=ABORTED)], 1, [row(0, value=ABORTED)], "aborted transaction"),
        (SHORT, [row(1), row(2), row(3)], 4, [row(1), row(3)], "has 1 records that a consumer has not"),
        (COMPACTED, [*ROWS, row(5)], 6, ROWS, "has 1 records that a consumer has not"),
        (COMPACTED, ROWS[:2], 4, ROWS, "lacks 1 records"),
    ],
)
def test_the_check_sees_faults(kind: str, scanned: list[ConsumedRow], end: int, consumed: list[ConsumedRow], fault: str) -> None:
    with pytest.raises(Broken, match=fault):
        compare(name_of(kind, 1), 0, scanned, end, consumed)


@pytest.mark.parametrize(
    ("kind", "scanned", "consumed"),
    [
        (KEPT, ROWS, [*ROWS, row(4)]),
        (SHORT, ROWS, [row(3)]),
        (SHORT, ROWS, []),
        (COMPACTED, ROWS, [row(3), row(4)]),
    ],
)
def test_the_check_passes_what_is_right(kind: str, scanned: list[ConsumedRow], consumed: list[ConsumedRow]) -> None:
    compare(name_of(kind, 1), 0, scanned, 4, consumed)
