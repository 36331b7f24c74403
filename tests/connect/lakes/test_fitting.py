"""Rows fit to the columns of a table, or say why not."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.lakes.fitting import Misfit, columns_of, fitted, lacking

MOMENT = datetime.datetime(2020, 1, 1, 10, 11, 12, 123_000, datetime.UTC)


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.array([1.0, 2.0]), pa.int64(), [1, 2]),
        (pa.array([1]), pa.float64(), [1.0]),
        (pa.array(["7"]), pa.int64(), [7]),
        (pa.array([True]), pa.string(), ["true"]),
        (pa.array(["1.5"]), pa.decimal128(10, 2), [Decimal("1.50")]),
        (pa.array([1577873472123]), pa.timestamp("us", "UTC"), [MOMENT]),
        (pa.array(["2020-01-01T10:11:12.123Z"]), pa.timestamp("us", "UTC"), [MOMENT]),
        (pa.array([1_577_873_472_123_456_789], pa.timestamp("ns")), pa.timestamp("us"), [MOMENT.replace(tzinfo=None, microsecond=123_456)]),
        (pa.nulls(2), pa.list_(pa.string()), [None, None]),
        (pa.array(["a"]).dictionary_encode(), pa.string(), ["a"]),
        (pa.array([[1], None]), pa.list_(pa.float64()), [[1.0], None]),
        (pa.array([{"x": 1}, None]), pa.struct([("y", pa.string()), ("x", pa.float64())]), [{"y": None, "x": 1.0}, None]),
        (pa.array([[{"x": 1}]]), pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())])), [[{"x": 1, "y": None}]]),
    ],
)  # fmt: skip
def test_values_are_converted(values: Any, kind: pa.DataType, wanted: list[Any]) -> None:
    found = fitted(pa.table({"a": values}), pa.schema([("b", pa.string()), ("a", kind)]))
    assert found.column("a").to_pylist() == wanted
    assert found.column("b").to_pylist() == [None] * len(wanted)
    assert found.schema.field("a").type == kind


@pytest.mark.parametrize(
    ("values", "kind", "rows"),
    [
        (pa.array([1.0, 1.5]), pa.int64(), [1]),
        (pa.array([1, 2**40]), pa.int32(), [1]),
        (pa.array(["x", "1", "y"]), pa.int64(), [0, 2]),
    ],
)
def test_values_that_would_lose_something_are_named(values: Any, kind: pa.DataType, rows: list[int]) -> None:
    with pytest.raises(Misfit, match="the column a has the type") as caught:
        fitted(pa.table({"a": values}), pa.schema([("a", kind)]))
    assert list(caught.value.reasons) == rows


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([[{"x": 1, "z": 2}]]), pa.list_(pa.struct([("x", pa.int64())]))),  # z would be lost
        (pa.array([{"x": 1}]), pa.string()),
        (pa.array(["x"]), pa.list_(pa.string())),
    ],
)
def test_nested_values_of_another_form_are_refused(values: Any, kind: pa.DataType) -> None:
    with pytest.raises(ConnectError, match="the column a has the type"):
        fitted(pa.table({"a": values}), pa.schema([("a", kind)]))


def test_the_columns_of_a_table_for_rows() -> None:
    fields: list[tuple[str, Any]] = [
            ("n", pa.null()), ("u", pa.uint32()), ("t", pa.timestamp("ns", "Europe/Berlin")),
            ("s", pa.struct([("n", pa.null()), ("x", pa.int8())])),
            ("e", pa.struct([])), ("l", pa.list_(pa.null())), ("d", pa.dictionary(pa.int32(), pa.large_string())),
    ]  # fmt: skip
    rows = pa.schema(fields)
    assert columns_of(rows) == pa.schema(
        [("u", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.struct([("x", pa.int8())])), ("d", pa.string())]
    )
    table = pa.schema([("u", pa.int64()), ("s", pa.struct([("y", pa.int8())]))])
    assert [(each.name, each.type) for each in lacking(rows, table)] == [
        ("t", pa.timestamp("us", "UTC")), ("s", pa.struct([("x", pa.int8())])), ("d", pa.string()),
    ]  # fmt: skip
