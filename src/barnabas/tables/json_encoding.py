"""Rows as JSON, as `json_values` reads it: each row gets back as it was."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.lazy_module import LazyModule
from barnabas.tables.column_types import JSON, LOCAL, Field, mark_of
from barnabas.tables.errors import TableError
from barnabas.tables.intervals import text_of_interval
from barnabas.tables.iso_times import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US
from barnabas.tables.json_columns import decode_values
from barnabas.tables.json_text import Misfit, parse

if TYPE_CHECKING:
    from barnabas.tables.kernels import json_spans
else:
    json_spans = LazyModule("barnabas.tables.kernels.json_spans")

Array = Any  # pyarrow.Array of any type
_ESCAPED = r'["\\\x00-\x1f]'  # characters that a text of JSON has in escapes
FEW_ROWS = 32  # so many take less time as Python objects
_ENCODER = msgspec.json.Encoder(decimal_format="number")
Plain = Callable[[Any], Any]


def values_of(array: pa.Array[Any], field: Field) -> list[Any]:
    """The values of a column in the form that `text_of` takes. Raises TableError."""
    try:
        values = array.to_pylist()
    except (ValueError, OverflowError) as error:
        raise TableError(f"the column {field.name} has a value that JSON cannot have: {error}") from None
    convert = _plain(field)
    return values if convert is None else [None if each is None else convert(each) for each in values]


def text_of(value: Any) -> bytes:
    """The JSON of a value from `values_of`, or of a dict of such values."""
    return _ENCODER.encode(value)


def rows_of(columns: Sequence[pa.Array[Any]], fields: Sequence[Field], rows: int) -> Array:
    """The JSON object of each row, `pa.binary()`; all columns appear in it. Raises TableError."""
    if not fields or rows < FEW_ROWS:
        names = [field.name for field in fields]
        values = [values_of(column, field) for column, field in zip(columns, fields, strict=True)]
        found = zip(*values, strict=True) if fields else [()] * rows
        return pa.array([text_of(dict(zip(names, row, strict=True))) for row in found], pa.binary())
    pieces: list[Any] = []
    for number, (column, field) in enumerate(zip(columns, fields, strict=True)):
        pieces.append(("," if number else "{") + text_of(field.name).decode() + ":")
        pieces.append(texts_of(column, field))
    joined: Array = pc.binary_join_element_wise(*pieces, "}", "", null_handling="replace", null_replacement="null")
    return joined.cast(pa.binary())


def texts_of(column: Array, field: Field) -> Array:
    """The JSON of each value, `pa.string()`; null for a null. Raises TableError."""
    kind = field.type
    if mark_of(field) == JSON:
        return _checked(column, field)
    if pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_decimal(kind):
        return column.cast(pa.string())
    if pt.is_floating(kind):
        return _float_texts(column)
    if pt.is_interval(kind):
        return pa.array([None if each is None else f'"{text_of_interval(each)}"' for each in column.to_pylist()], pa.string())
    if pt.is_string(kind):
        has_odd = pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py()
        return _each(column, field) if has_odd else _quoted(column)
    if pt.is_date(kind) or pt.is_time(kind) or pt.is_timestamp(kind):
        return _moment_texts(column, field)
    return _each(column, field)


def _each(column: Array, field: Field) -> Array:
    return pa.array([None if each is None else text_of(each).decode() for each in values_of(column, field)], pa.string())


def _quoted(texts: Array) -> Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _float_texts(column: Array) -> Array:
    texts = column.cast(pa.string())
    is_finite: Any = pc.is_finite(column)
    if pc.all(is_finite).as_py() is not False:
        return texts
    names = pc.case_when(
        pc.make_struct(pc.is_nan(column), pc.greater(column, pa.scalar(0, column.type))), '"NaN"', '"Infinity"', '"-Infinity"'
    )
    return pc.if_else(is_finite, texts, names)


def _moment_texts(column: Array, field: Field) -> Array:
    kind = field.type
    if pt.is_time(kind):
        return _quoted(pc.replace_substring(column.cast(pa.string()), ".000000", ""))
    low, high = (pa.scalar(each, kind) for each in ((FIRST_DAY, LAST_DAY) if pt.is_date(kind) else (FIRST_US, LAST_US)))
    if pc.any(pc.or_(pc.less(column, low), pc.greater(column, high))).as_py():
        raise TableError(f"the column {field.name} has a value that JSON cannot have: its year is not within 1 to 9999")
    if pt.is_date(kind):
        return _quoted(column.cast(pa.string()))
    local = column.cast(LOCAL).cast(pa.string())  # with a time zone the cast takes thirty times as long
    texts = pc.replace_substring(pc.binary_replace_slice(local, 10, 11, "T"), ".000000", "")
    return pc.binary_join_element_wise('"', texts, '"' if kind == LOCAL else 'Z"', "")


def _checked(column: Array, field: Field) -> Array:
    """Texts that are JSON."""
    if (decode_values(column.cast(pa.binary())).states == json_spans.LATER).any():
        for each in column.to_pylist():
            if each is not None:
                _raw(each, field.name)
    return column


def _plain(field: Field) -> Plain | None:
    """How values of a field become values that msgspec writes; None: they are such."""
    kind = field.type
    if mark_of(field) == JSON:
        return lambda value: _raw(value, field.name)
    if pt.is_interval(kind):
        return text_of_interval
    if pt.is_float32(kind):
        return lambda value: float(str(np.float32(value))) if math.isfinite(value) else _named(value)
    if pt.is_floating(kind):
        return lambda value: value if math.isfinite(value) else _named(value)
    if pt.is_list(kind):
        item = _plain(kind.value_field)
        return None if item is None else lambda value: [_applied(item, each) for each in value]
    if pt.is_struct(kind):
        inside = {each.name: convert for each in kind if (convert := _plain(each)) is not None}
        return (lambda value: {name: _applied(inside.get(name), each) for name, each in value.items()}) if inside else None
    if pt.is_map(kind):
        item = _plain(kind.item_field)
        return lambda value: {str(key): _applied(item, each) for key, each in value}
    return None


def _applied(convert: Plain | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _named(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _raw(value: str, name: str) -> msgspec.Raw:
    data = value.encode()
    try:
        parse(data)
    except Misfit as error:
        raise TableError(f"the column {name} has a text that does not fit: {error}") from None
    return msgspec.Raw(data)
