"""Which functions are aggregates."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import parse_one

from barnabas.sql.continuous.functions import Functions
from tests.sql.continuous.harness import CURSOR


class Silent:
    """A cursor that nobody may ask."""

    def execute(self, sql: str) -> Any:
        raise AssertionError(sql)


@pytest.mark.parametrize(
    ("call", "is_aggregate"),
    [("sum(a)", True), ("kurtosis(a)", True), ("json_group_array(a)", True), ("lower(a)", False), ("nothing_known(a)", False)],
)
def test_the_aggregates_of_duckdb_are_known_for_all_connections(call: str, is_aggregate: bool) -> None:
    node = parse_one(f"select {call}", read="duckdb").expressions[0]
    assert Functions(CURSOR).is_aggregate(node) is is_aggregate
    assert Functions(Silent()).is_aggregate(node) is is_aggregate
