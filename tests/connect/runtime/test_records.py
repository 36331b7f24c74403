"""Rows of sources as the columns of records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.api import Batch
from barnabas.connect.errors import ConnectError
from barnabas.connect.runtime.records import records_of
from barnabas.connect.transforms.chain import _joined


def test_rows_have_the_fields_of_all_of_them() -> None:
    rows: list[dict[str, Any]] = [{"a": 1}, {"b": [{"c": 2}]}, {"a": 3, "d": {"e": "x"}}]
    found = records_of(Batch(rows, {}, key=["a"]), "t")
    assert found.column("value").to_pylist() == [
        {"a": 1, "b": None, "d": None}, {"a": None, "b": [{"c": 2}], "d": None}, {"a": 3, "b": None, "d": {"e": "x"}},
    ]  # fmt: skip
    assert found.column("key").to_pylist() == [1, None, 3]


def test_records_of_two_forms_have_the_columns_of_both() -> None:
    one = pa.table({"value": [{"n": "text"}]})
    other = pa.table({"value": [{"n": {"deep": 1}}], "key": [b"k"]})
    with pytest.raises(pa.ArrowException):
        _joined(one, other)
    texts = pa.table({"value": [{"n": [1]}, {"n": [2]}], "key": pa.array([b"k", None])})
    assert _joined(pa.table({"value": [{"n": [0.5]}]}), texts).to_pylist() == [
        {"value": {"n": [0.5]}, "key": None}, {"value": {"n": [1.0]}, "key": b"k"}, {"value": {"n": [2.0]}, "key": None},
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [[1], [{"a": 1}, {"a": "x"}], ["x", {"a": 1}], [{"a": 1}, None]])
def test_rows_of_another_form_are_refused(rows: Any) -> None:
    with pytest.raises(ConnectError, match="rows are dictionaries whose values have one type for each name"):
        records_of(Batch(rows, {}), "t")
