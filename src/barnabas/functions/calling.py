"""One call of a function for many rows: from columns to values of Python, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.functions.definition import ARROW, ROW, Argument, CallFailed, Function

Code = Callable[..., Any]
Column = Any  # an array of Arrow, of any type
Convert = Callable[[Any], Any]


def call(function: Function, code: Code, columns: Sequence[Column], rows: int, kind: Any) -> Column:
    """The results for all rows, of the type `kind`. Errors of the code pass; CallFailed for a result that does not fit."""
    if not function.is_strict or not columns:
        return _called(function, code, columns, rows, kind)
    valid: Column = pc.is_valid(columns[0])
    for each in columns[1:]:
        valid = pc.and_(valid, pc.is_valid(each))
    count = int(pc.sum(valid).as_py() or 0)
    if count == rows:
        return _called(function, code, columns, rows, kind)
    if not count:
        return pa.nulls(rows, kind)
    found = _called(function, code, [each.filter(valid) for each in columns], count, kind)
    places = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1), pa.scalar(None, pa.int64()))
    return found.take(places)


def _called(function: Function, code: Code, columns: Sequence[Column], rows: int, kind: Any) -> Column:
    if function.style == ROW:
        arguments = [_values(each, column) for each, column in zip(function.arguments, columns, strict=True)]
        results = (code(*each) for each in zip(*arguments, strict=True)) if arguments else (code() for _ in range(rows))
        return _array(function, results, kind)
    if function.style == ARROW:
        return _whole(function, code(*columns) if columns else code(pa.nulls(rows)), rows, kind)
    series = [each.to_pandas() for each in columns]
    one = series[0] if len(series) == 1 else tuple(series)
    made = list(code(iter([one])))
    if len(made) != 1:
        raise CallFailed(f"the function {function.name} gave {len(made)} series for one")
    return _whole(function, made[0], rows, kind)


def _values(argument: Argument, column: Column) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if argument.kind == "JSON":
        return [None if each is None else json.loads(each) for each in values]
    return values


def _whole(function: Function, found: Any, rows: int, kind: Any) -> Column:
    """The result of a call for all rows. One value stands for all."""
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    elif isinstance(found, pa.Scalar) or not hasattr(found, "__len__") or isinstance(found, (str, bytes)):
        value = found.as_py() if isinstance(found, pa.Scalar) else found
        found = _array(function, [value] * rows, kind)
    try:
        if not isinstance(found, pa.Array):
            found = pa.array(found, from_pandas=True)
        if found.type != kind:
            found = found.cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CallFailed(_not(function, str(error).split("\n")[0])) from None
    if len(found) != rows:
        raise CallFailed(f"the function {function.name} gave {len(found)} values for {rows} rows")
    return found


def _array(function: Function, results: Iterable[Any], kind: Any) -> Column:
    if function.returns is None:
        return _array_of_rows(function, results, kind)
    convert = _converter(kind, is_json=function.returns.kind == "JSON")
    values = [None if each is None else _fitting(function, convert, each, function.returns.shown) for each in results]
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CallFailed(_not(function, str(error).split("\n")[0])) from None


def _array_of_rows(function: Function, results: Iterable[Any], kind: Any) -> Column:
    parts = [kind.value_type.field(place).type for place in range(kind.value_type.num_fields)]
    converters = [_converter(each, is_json=column.kind == "JSON") for each, column in zip(parts, function.columns, strict=True)]
    made = [[] if rows is None else [_row(function, converters, row) for row in rows] for rows in results]
    try:
        return pa.array(made, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CallFailed(_not(function, str(error).split("\n")[0])) from None


def _row(function: Function, converters: Sequence[Convert], row: Any) -> dict[str, Any]:
    names = [each.name for each in function.columns]
    if isinstance(row, dict):
        values = [row.get(name) for name in names]
    elif len(names) == 1 and not (isinstance(row, (tuple, list)) and len(row) == 1):
        values = [row]
    else:
        values = list(row)
    if len(values) != len(names):
        raise CallFailed(f"the function {function.name} gave a row of {len(values)} values; it has {len(names)} columns")
    return {
        column.name: None if value is None else _fitting(function, convert, value, column.shown)
        for column, convert, value in zip(function.columns, converters, values, strict=True)
    }


def _fitting(function: Function, convert: Convert, value: Any, shown: str) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        text = repr(value)
        raise CallFailed(
            f"the function {function.name} returned {text[:60]}, which is no {shown}", str(error).split("\n")[0] or None
        ) from None


def _not(function: Function, text: str) -> str:
    return f"the function {function.name} returned what is no {function.shown_result}: {text}"


def _converter(kind: Any, *, is_json: bool) -> Convert:
    """Makes a value that the type of Arrow takes."""
    given: Any = kind
    if is_json:
        return lambda value: json.dumps(value, ensure_ascii=False)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: value if isinstance(value, str) else str(value)
    if pa.types.is_integer(kind):
        return _whole_number
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_decimal(kind):
        unit = Decimal(1).scaleb(-given.scale)
        return lambda value: (value if isinstance(value, Decimal) else Decimal(str(value))).quantize(unit)
    if pa.types.is_binary(kind):
        return lambda value: value.encode() if isinstance(value, str) else bytes(value)
    if pa.types.is_list(kind):
        inner = _converter(given.value_type, is_json=False)
        return lambda value: [None if each is None else inner(each) for each in value]
    return _as_it_is


def _whole_number(value: Any) -> int:
    found = int(value)
    if found != value and not isinstance(value, str):
        raise ValueError("it has a fraction")
    return found


def _as_it_is(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value
