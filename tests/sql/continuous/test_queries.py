"""Every query of the tables: the view is the query after each step, and a change costs what the table says."""

from __future__ import annotations

import pytest

from barnabas.incremental.plan import Groups, Plan, Sessions
from tests.sql.continuous.cases import ALL, FILES, KEYS, ROWS, queries, tables
from tests.sql.continuous.harness import follow

CASES = [
    pytest.param(kind, text, name, id=f"{name}-{place}") for name in FILES for place, (kind, text) in enumerate(queries(name), 1)
]


def kind_of(plan: Plan) -> str:
    """The cost of a change."""
    several = [each for each in plan.nodes if isinstance(each, Groups) and each.inputs]
    if any(not any(each.keys) for each in several):
        return ALL
    return KEYS if several or any(isinstance(each, Sessions) for each in plan.nodes) else ROWS


@pytest.mark.parametrize(("kind", "text", "name"), CASES)
def test_view_is_its_query(kind: str, text: str, name: str) -> None:
    found = follow(text, tables(name), seed=7, steps=3)
    assert kind_of(found.plan) == kind, found.notices
