"""The bytes of a key in a query for one row are those that the table writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.sql.planning.point import Point
from barnabas.sql.statements.key_read import KeyRead
from tests.sql.engine.test_one_row import relation_of

VALUES = st.one_of(
    st.none(), st.integers(-(2**65), 2**65), st.integers(-(2**15), 2**15), st.text(max_size=8), st.just('"\\\0\ud800')
)


@pytest.mark.parametrize("names", [("id",), ("name",), ("id", "name"), ("name", "small"), ("small", "id", "name")])
@given(data=st.data())
def test_keys_are_those_that_the_table_writes(names: tuple[str, ...], data: st.DataObject) -> None:
    relation = relation_of(names)
    fields = [relation.columns.field(name) for name in relation.keys]
    point = Point([(field, None, number) for number, field in enumerate(fields, 1)], relation.columns.names)
    plan = SimpleNamespace(
        point=point, schema=relation.columns, inputs=[SimpleNamespace(schema=relation.columns)], parameters=[None] * len(fields)
    )
    values = [data.draw(VALUES) for _ in fields]
    found = KeyRead(cast(Any, plan), relation, relation.columns.names).key(values)
    try:
        batch = point.key(values)
    except UnicodeEncodeError:
        batch = None
    is_refused = any(isinstance(each, str) and "\0" in each for each in values)
    assert found == (None if batch is None or is_refused else relation.layout.key.encode(batch)[0].as_py())
