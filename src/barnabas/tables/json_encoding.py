"""Rows as JSON, as `json_values` reads it: each row gets back as it was."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from barnabas.tables.column_types import JSON, Field, mark_of
from barnabas.tables.errors import TableError
from barnabas.tables.json_text import Misfit, parse

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


def rows_of(columns: Sequence[pa.Array[Any]], fields: Sequence[Field], rows: int) -> list[bytes]:
    """The JSON object of each row; all columns appear in it. Raises TableError."""
    names = [field.name for field in fields]
    values = [values_of(column, field) for column, field in zip(columns, fields, strict=True)]
    if not names:
        return [b"{}"] * rows
    return [text_of(dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]


def _plain(field: Field) -> Plain | None:
    """How values of a field become values that msgspec writes; None: they are such."""
    kind = field.type
    if mark_of(field) == JSON:
        return lambda value: _raw(value, field.name)
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
