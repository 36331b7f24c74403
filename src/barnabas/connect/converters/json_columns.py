"""Columns as JSON texts, without a Python object for each row.

The texts of the fields are joined. A value that all rows have is written once.
`json_text.plain` says what JSON a value has; few rows take less time by it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.connect.converters.json_text import column_values, plain, two_complement

Array = Any  # pyarrow.Array of any type
FEW_ROWS = 32  # so many take less time as Python objects
_ESCAPED = r'["\\\x00-\x1f]'  # characters that a text of JSON has in escapes
_NULL = "null"


def texts(column: Array, *, numeric: bool = False) -> Array:
    """The JSON of each value; null for a null.

    Args:
        numeric: whether decimals are numbers, not bytes in base64. Those within maps are bytes all the same.
    """
    return _each(column) if len(column) < FEW_ROWS and not numeric else _texts(column, numeric=numeric)


def _each(column: Any) -> Array:
    return pa.array([None if each is None else msgspec.json.encode(each) for each in column_values(column)], pa.binary()).cast(
        pa.string()
    )


def _texts(column: Any, *, numeric: bool) -> Array:
    kind = column.type
    if pt.is_struct(kind) and kind.num_fields:
        return _structs(column, numeric=numeric)
    if pt.is_list(kind):
        return _lists(column, numeric=numeric)
    if pt.is_string(kind):
        return _quoted(column)
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return column.cast(pa.string())
    if pt.is_floating(kind):
        return _floats(column)
    if pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_time(kind):
        return _numbers(column).cast(pa.string())
    if pt.is_binary(kind):
        return _base64(column.to_pylist())
    if pt.is_decimal(kind) and numeric:
        return pa.array([None if each is None else f"{each:f}" for each in column.to_pylist()], pa.string())
    if pt.is_decimal(kind):
        return _base64([None if each is None else two_complement(each) for each in _unscaled(column)])
    return _each(column)


def _structs(column: Any, *, numeric: bool) -> Array:
    kind, pieces, literal = column.type, list[Any](), ""
    for number in range(kind.num_fields):
        literal += ("," if number else "{") + msgspec.json.encode(kind.field(number).name).decode() + ":"
        values = column.field(number)
        if _is_constant(values):
            literal += msgspec.json.encode(plain(values[0].as_py())).decode()
        else:
            pieces += [literal, _texts(values, numeric=numeric)]
            literal = ""
    if not pieces:
        joined: Any = pa.repeat(pa.scalar(literal + "}", pa.string()), len(column))
    else:
        joined = pc.binary_join_element_wise(*pieces, literal + "}", "", null_handling="replace", null_replacement=_NULL)
    return _where_valid(column, joined)


def _is_constant(values: Any) -> bool:
    """Whether all rows have the same value; a miss is no fault."""
    if values.null_count:
        return bool(values.null_count == len(values))
    if not (pt.is_string(values.type) or pt.is_integer(values.type)) or values[0] != values[-1]:
        return bool(pt.is_null(values.type))
    return bool(pc.all(pc.equal(values, values[0])).as_py())


def _lists(column: Any, *, numeric: bool) -> Array:
    items: Any = pc.coalesce(_texts(column.flatten(), numeric=numeric), pa.scalar(_NULL, pa.string()))
    lengths: Any = pc.fill_null(pc.list_value_length(column), 0)
    ends: Any = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    joined: Any = pc.binary_join(pa.ListArray.from_arrays(ends, items), ",")
    return _where_valid(column, pc.binary_join_element_wise("[", joined, "]", ""))


def _where_valid(column: Any, joined: Any) -> Array:
    null: Any = pa.scalar(None, pa.string())
    found: Array = pc.if_else(pc.is_valid(column), joined, null) if column.null_count else joined
    return found


def _quoted(column: Any) -> Array:
    found: Any = pc.binary_join_element_wise('"', column, '"', "")
    is_odd: Any = pc.match_substring_regex(column, _ESCAPED)
    if pc.any(is_odd).as_py():
        odd = pa.array([msgspec.json.encode(each) for each in column.filter(is_odd).to_pylist()], pa.binary())
        found = pc.replace_with_mask(found, is_odd, odd.cast(pa.string()))
    return found


def _floats(column: Any) -> Array:
    """As Python writes them, so that a number has the same JSON among many rows and among few."""
    values = column_values(column.cast(pa.float64()) if pt.is_float16(column.type) else column)
    return pa.array([None if each is None else msgspec.json.encode(each) for each in values], pa.binary()).cast(pa.string())


def _numbers(column: Any) -> Array:
    """A column whose times are numbers since the epoch, as in Kafka Connect: milliseconds, or days."""
    kind = column.type
    if pt.is_timestamp(kind):
        found: Array = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
        return found
    if pt.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32())
    return column.cast(pa.time32("ms"), safe=False).cast(pa.int32())


def _unscaled(column: Any) -> Iterator[int | None]:
    """The numbers of decimals without their points."""
    width = column.type.bit_width // 8
    _, data = column.buffers()
    begin = column.offset * width
    for at, is_valid in enumerate(column.is_valid().to_pylist()):
        place = begin + at * width
        yield int.from_bytes(data[place : place + width], "little", signed=True) if is_valid else None


def _base64(values: list[bytes | None]) -> Array:
    return pa.array([None if each is None else f'"{base64.b64encode(each).decode()}"' for each in values], pa.string())
