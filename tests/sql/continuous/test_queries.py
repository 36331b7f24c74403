"""Every query of the tables: the view is the query after each step, and a change costs what the table says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.incremental.plan import Groups, Plan
from barnabas.sql.catalog.relations import Relation
from tests.sql.continuous import nexmark, queries, tpch
from tests.sql.continuous.harness import follow

CASES = [
    pytest.param(kind, text, module.TABLES, id=f"{module.__name__.rpartition('.')[2]}-{place}")
    for module in (queries, nexmark, tpch)
    for place, (kind, text) in enumerate(module.QUERIES)
]


def kind_of(plan: Plan) -> str:
    """What a change costs."""
    several = [each for each in plan.nodes if isinstance(each, Groups) and each.inputs]
    if any(not any(each.keys) for each in several):
        return queries.ALL
    return queries.KEYS if several else queries.ROWS


@pytest.mark.parametrize(("kind", "text", "tables"), CASES)
def test_view_is_its_query(kind: str, text: str, tables: Mapping[str, Relation]) -> None:
    found = follow(text, tables, seed=7, steps=3)
    assert kind_of(found.plan) == kind, found.notices
