"""From columns to values of Python, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.functions.body import loaded
from barnabas.functions.calling import call
from barnabas.functions.definition import CallFailed, Function
from tests.functions.making import argument, function


def called(made: Function, columns: list[Any], kind: pa.DataType, rows: int | None = None) -> list[Any]:
    count = len(columns[0]) if rows is None else rows
    found: list[Any] = call(made, loaded(made), columns, count, kind).to_pylist()
    return found


def test_nulls_are_passed_unless_the_function_is_strict() -> None:
    column = pa.array([1, None, 3], pa.int64())
    assert called(function("return -1 if a is None else a"), [column], pa.int64()) == [1, -1, 3]
    strict = function("return a + 1", is_strict=True)
    assert called(strict, [column], pa.int64()) == [2, None, 4]
    assert called(strict, [pa.nulls(2, pa.int64())], pa.int64()) == [None, None]


def test_a_strict_function_over_arrays() -> None:
    body = "import pyarrow.compute as pc\nassert a.null_count == 0\nreturn pc.add(a, b)"
    made = function(body, "a BIGINT; b BIGINT", style="arrow", is_strict=True)
    columns = [pa.array([1, None, 3, 4], pa.int64()), pa.array([10, 20, None, 40], pa.int64())]
    assert called(made, columns, pa.int64()) == [11, None, None, 44]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("return a", pa.string(), "7"),
        ("return float(a)", pa.int64(), 7),
        ("return str(a)", pa.int64(), 7),
        ("return a", pa.float64(), 7.0),
        ("return a / 3", pa.decimal128(10, 2), Decimal("2.33")),
        ("return 'x'", pa.binary(), b"x"),
        ("return (a, None)", pa.list_(pa.int64()), [7, None]),
        ("return [a]", pa.list_(pa.string()), ["7"]),
        ("return {'x': a}", pa.struct([("x", pa.int32())]), {"x": 7}),
        ("return None", pa.int64(), None),
        ("return a > 3", pa.bool_(), True),
    ],
)
def test_results_that_fit(body: str, kind: pa.DataType, expected: Any) -> None:
    assert called(function(body), [pa.array([7], pa.int64())], kind) == [expected]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return 'x'", pa.int64()),
        ("return 2.5", pa.int64()),
        ("return 1 << 80", pa.int64()),
        ("return object()", pa.float64()),
        ("return 12345", pa.decimal128(4, 2)),
        ("return 'x'", pa.date32()),
    ],
)
def test_results_that_do_not_fit(body: str, kind: pa.DataType) -> None:
    with pytest.raises(CallFailed, match="the function f returned"):
        called(function(body), [pa.array([7], pa.int64())], kind)


def test_documents() -> None:
    made = function("a['n'] += 1\nreturn a", "a JSON", "JSON")
    assert called(made, [pa.array(['{"n": 1}'])], pa.string()) == ['{"n": 2}']
    assert called(function("return a is None", "a JSON", "BOOLEAN"), [pa.array(["null", None])], pa.bool_()) == [True, True]


def test_pandas() -> None:
    body = "def f(batches):\n    for a, b in batches:\n        yield a + b"
    made = function(body, "a BIGINT; b BIGINT", style="pandas")
    assert called(made, [pa.array([1, 2]), pa.array([10, 20])], pa.int64()) == [11, 22]
    one = function("def f(batches):\n    for each in batches:\n        yield each * 2", style="pandas")
    assert called(one, [pa.array([1, 2])], pa.int64()) == [2, 4]


def test_a_vectorised_function_gives_a_value_for_each_row() -> None:
    made = function("return a[:1]", style="arrow")
    with pytest.raises(CallFailed, match="gave 1 values for 2 rows"):
        called(made, [pa.array([1, 2])], pa.int64())
    assert called(function("return 5", style="arrow"), [pa.array([1, 2])], pa.int64()) == [5, 5]
    with pytest.raises(CallFailed, match="returned what is no bigint"):
        called(function("import pyarrow as pa\nreturn pa.array(['x'] * len(a))", style="arrow"), [pa.array([1, 2])], pa.int64())


def test_a_function_without_arguments_is_called_for_each_row() -> None:
    made = function("SD['n'] = SD.get('n', 0) + 1\nreturn SD['n']", "")
    assert called(made, [], pa.int64(), rows=3) == [1, 2, 3]


def test_rows() -> None:
    kind = pa.list_(pa.struct([("x", pa.int32()), ("w", pa.string())]))
    columns = (argument("x", "INTEGER"), argument("w", "VARCHAR"))
    made = function("def f(a):\n    for i in range(a):\n        yield i, i", returns=None, columns=columns)
    assert called(made, [pa.array([2, 0])], kind) == [[{"x": 0, "w": "0"}, {"x": 1, "w": "1"}], []]
    made = function("return [{'w': 'x', 'x': a}]", returns=None, columns=columns)
    assert called(made, [pa.array([2])], kind) == [[{"x": 2, "w": "x"}]]
    with pytest.raises(CallFailed, match="gave a row of 3 values; it has 2 columns"):
        called(function("return [(1, 2, 3)]", returns=None, columns=columns), [pa.array([2])], kind)
