"""The whole bench of views, with few records: it starts Spark three times."""

from __future__ import annotations

import pytest
from bench.views import __main__ as cases

pytestmark = pytest.mark.interop


@pytest.mark.timeout(900)
def test_all_of_it_is_measured() -> None:
    amounts = cases.Amounts(2_000, 2_000, 1_000, 5, 2.0, 0.2, 0.5, 0.5)
    found = {result.case: result for result in cases.measure(1, amounts)}
    assert all(value > 0 for result in found.values() for values in result.figures.values() for value in values)
    assert set(found["backlog"].figures) == {cases.OURS, cases.PLAIN}
    assert set(found["restart"].figures) == {cases.FOLLOWS, cases.SPARK, cases.REST}
