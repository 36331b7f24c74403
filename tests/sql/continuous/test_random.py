"""A view gives the rows of its query, for random queries and rows."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql.continuous.harness import follow
from tests.sql.continuous.random_queries import TABLES, queries


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=queries(), seed=st.integers(0, 1 << 16))
def test_view_is_its_query(text: str, seed: int) -> None:
    follow(text, TABLES, seed, steps=4)
