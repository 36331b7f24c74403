"""Columns as JSON texts, without a Python object for each row.

The texts of the fields are joined by kernels. A value that all rows have is encoded once.
`json_text.plain` says what JSON a value has; few rows take less time by it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.connect.converters.json_text import column_values, plain, two_complement
from barnabas.connect.converters.leaves import unscaled
from barnabas.connect.errors import ConnectError
from barnabas.lazy_module import LazyModule

if TYPE_CHECKING:
    from barnabas.connect.converters import json_kernels as kernels
else:
    kernels = LazyModule("barnabas.connect.converters.json_kernels")

Array = Any  # pyarrow.Array of any type
FEW_ROWS = 32  # so many take less time as Python objects
MOST_BYTES = 2**31 - 1  # of an array of texts
_NO_BYTES = np.empty(0, np.uint8)
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
    """The same by columns; the texts of nulls say nothing, unless they are null."""
    kind = column.type
    if (pt.is_struct(kind) and kind.num_fields) or pt.is_string(kind):
        return _joined(_pieces(column, numeric=numeric), column)
    if pt.is_list(kind):
        return _lists(column, numeric=numeric)
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
        return _base64([None if each is None else two_complement(each) for each in unscaled(column)])
    return _each(column)


class _Piece(NamedTuple):
    """A part of the texts of all rows: values of a column."""

    ends: Any  # int32 [rows + 1]
    data: Any  # uint8
    valid: Any  # uint8 [rows], or [0] if no row is null
    form: int


def _pieces(column: Any, *, numeric: bool) -> list[bytes | _Piece]:
    """What the texts of a column consist of: bytes that all rows have, and pieces. The rows of a struct that are null have some text."""
    kind = column.type
    if not (pt.is_struct(kind) and kind.num_fields):
        is_text = pt.is_string(kind)
        return [_piece(column if is_text else _texts(column, numeric=numeric), kernels.QUOTED if is_text else kernels.PLAIN)]
    found: list[bytes | _Piece] = []
    for number in range(kind.num_fields):
        values = column.field(number)
        found.append((b"," if number else b"{") + msgspec.json.encode(kind.field(number).name) + b":")
        if _is_constant(values):
            found.append(msgspec.json.encode(plain(values[0].as_py())))
        elif pt.is_struct(values.type) and values.null_count:
            found.append(_piece(_texts(values, numeric=numeric), kernels.PLAIN))
        else:
            found += _pieces(values, numeric=numeric)
    return [*found, b"}"]


def _piece(texts: Any, form: int) -> _Piece:
    begin, count = texts.offset, len(texts)
    bits, ends, data = texts.buffers()
    valid = _NO_BYTES
    if texts.null_count:
        valid = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[begin : begin + count]
    return _Piece(
        np.frombuffer(ends, np.int32)[begin : begin + count + 1],
        _NO_BYTES if data is None else np.frombuffer(data, np.uint8),
        valid,
        form,
    )


def _joined(pieces: list[bytes | _Piece], column: Any) -> Array:
    """The texts of rows; null where a column is."""
    count = len(column)
    parts = list(_merged(pieces))
    sizes = np.full(count, sum(len(each) for each in parts if isinstance(each, bytes)), np.int64)
    for each in parts:
        if not isinstance(each, bytes):
            kernels.add_sizes(*each, sizes)
    places = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    if places[-1] > MOST_BYTES:
        raise ConnectError(f"{count} records have {places[-1]} bytes of JSON together, more than {MOST_BYTES}")
    ends: Any = places.astype(np.int32)
    texts: Any = np.empty(int(places[-1]), np.uint8)
    places = places[:-1].copy()
    for each in parts:
        if isinstance(each, bytes):
            kernels.write_same(np.frombuffer(each, np.uint8), places, texts)
        else:
            kernels.write_pieces(*each, places, texts)
    mask: Any = column.is_valid().buffers()[1] if column.null_count else None
    found: Array = pa.Array.from_buffers(pa.string(), count, [mask, pa.py_buffer(ends), pa.py_buffer(texts)], column.null_count)
    return found


def _merged(pieces: list[bytes | _Piece]) -> Iterator[bytes | _Piece]:
    """The same with neighbouring bytes joined."""
    waiting = b""
    for each in pieces:
        if isinstance(each, bytes):
            waiting += each
        else:
            yield waiting
            yield each
            waiting = b""
    yield waiting


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


def _base64(values: list[bytes | None]) -> Array:
    return pa.array([None if each is None else f'"{base64.b64encode(each).decode()}"' for each in values], pa.string())
