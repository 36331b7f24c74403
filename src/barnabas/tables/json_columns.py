"""JSON objects as columns in bulk, by the kernels: no Python object for a record.

How it works: one pass over the bytes finds the span of each column's value in each row. One pass for each column makes Arrow buffers of
its spans. Structs, lists and maps repeat this with the spans of their parts. Rows that the kernels do not take, `json_values` decodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas import limits
from barnabas.lazy_module import LazyModule
from barnabas.tables.column_types import JSON, UUID, Field, mark_of
from barnabas.tables.formats import Array, binary_parts
from barnabas.tables.intervals import interval_of_text, intervals
from barnabas.tables.json_values import absent_value

if TYPE_CHECKING:
    from barnabas.tables.kernels import json_convert as convert
    from barnabas.tables.kernels import json_spans as scan
    from barnabas.tables.kernels import json_syntax as syntax
    from barnabas.tables.kernels import json_times as times
else:
    convert = LazyModule("barnabas.tables.kernels.json_convert")
    scan = LazyModule("barnabas.tables.kernels.json_spans")
    syntax = LazyModule("barnabas.tables.kernels.json_syntax")
    times = LazyModule("barnabas.tables.kernels.json_times")

KERNELS = "barnabas.tables.kernels.json_spans"
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """Where the values of a column lie.

    Args:
        data: the buffer.
        kinds, begins, ends: of each row.
        states: of each row; kernels change them.
    """

    data: Bytes
    kinds: Bytes
    begins: Ints
    ends: Ints
    states: Bytes


class Names:
    """The names of fields, as the kernel looks them up."""

    def __init__(self, fields: Sequence[Field]) -> None:
        encoded = [field.name.encode() for field in fields]
        self.data = np.frombuffer(bytearray(b"".join(encoded)), np.uint8)
        self.ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
        self.first = np.full(scan.NAME_SLOTS, -1, np.int32)
        self.following = np.full(len(fields), -1, np.int32)
        scan.index_names(self.data, self.ends, self.first, self.following)


def decode_objects(fields: Sequence[Field], payloads: Array, prefix: int = 0) -> tuple[list[Array], npt.NDArray[np.intp]]:
    """Columns of the payloads, and the rows for which they are null because the kernels do not take them.

    Args:
        prefix: bytes before the JSON of each payload that is not null.
    """
    data, ends = binary_parts(payloads)
    states = states_of(payloads)
    columns = members(fields, data, ends[:-1] + np.int32(prefix) if prefix else ends[:-1], ends[1:], states)
    return columns, np.flatnonzero(states == scan.LATER)


def decode_values(payloads: Array) -> Spans:
    """The spans of payloads that are one JSON value each. Payloads that are none, and `null`, have the state LATER."""
    rows = len(payloads)
    data, ends = binary_parts(payloads)
    states = states_of(payloads)
    spans = Spans(data, np.zeros(rows, np.uint8), np.zeros(rows, np.int32), np.zeros(rows, np.int32), states)
    scan.scan_values(data, ends[:-1], ends[1:], states, *spans[1:4], limits.MAX_VALUE_DEPTH)
    return spans


def states_of(payloads: Array) -> Bytes:
    """The states of rows before their decoding."""
    states = np.zeros(len(payloads), np.uint8)
    if payloads.null_count:
        states[payloads.is_null().to_numpy(zero_copy_only=False)] = scan.ABSENT
    return states


def members(fields: Sequence[Field], data: Bytes, begins: Ints, ends: Ints, states: Bytes) -> list[Array]:
    """The members of objects as columns."""
    names = Names(fields)
    shape = len(fields), len(states)
    kinds, span_begins, span_ends = np.zeros(shape, np.uint8), np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    scan.scan_objects(
        data, begins, ends, states, names.data, names.ends, names.first, names.following,
        kinds, span_begins, span_ends, limits.MAX_VALUE_DEPTH,
    )  # fmt: skip
    return [
        _with_absent(
            field,
            kinds[number],
            states,
            column(field, Spans(data, kinds[number], span_begins[number], span_ends[number], states)),
        )
        for number, field in enumerate(fields)
    ]


def _with_absent(field: Field, kinds: Bytes, states: Bytes, made: Array) -> Array:
    """A column with its value for rows that lack the field."""
    value = absent_value(field)
    if value is None:
        return made
    is_absent = (kinds == syntax.MISSING) & (states == scan.TAKEN)
    return pc.if_else(pa.array(is_absent), pa.scalar(value, field.type), made) if is_absent.any() else made


def column(field: Field, spans: Spans) -> Array:
    """The values of spans; a row that is not taken is null and has the state LATER."""
    kind: Any = field.type
    mark = mark_of(field)
    rows = len(spans.states)
    valid = np.zeros(rows // 8 + 1, np.uint8)
    if mark == UUID:
        return texts(spans, kind, valid, convert.AS_UUID)
    if pt.is_string(kind):
        return texts(spans, kind, valid, convert.AS_JSON if mark == JSON else convert.AS_TEXT)
    if pt.is_binary(kind):
        return texts(spans, kind, valid, convert.AS_BYTES)
    if pt.is_interval(kind):
        return _intervals(spans, valid)
    if pt.is_list(kind):
        return _list(kind, spans)
    if pt.is_struct(kind):
        return _struct(kind, spans)
    if pt.is_map(kind):
        return _map(kind, spans)
    if pt.is_floating(kind):
        return _floats(kind, spans, valid)
    if pt.is_boolean(kind):
        bits = np.zeros(rows // 8 + 1, np.uint8)
        nulls = convert.to_bits(spans.kinds, spans.states, bits, valid)
        return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(bits)], nulls)
    if pt.is_decimal(kind):
        pairs = np.empty(2 * rows, np.int64)
        nulls = convert.to_decimals(*spans, kind.precision, kind.scale, pairs, valid)
        return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(pairs)], nulls)
    longs = np.empty(rows, np.int64)
    if pt.is_integer(kind):
        name: Any = kind.to_pandas_dtype()
        info = np.iinfo(name)
        nulls = convert.to_ints(*spans, info.min, min(info.max, 2**63 - 1), longs, valid)
        return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(longs.astype(name, copy=False))], nulls)
    what = times.DATE if pt.is_date(kind) else times.TIME if pt.is_time(kind) else times.TIMESTAMP
    nulls = times.to_moments(*spans, what, longs, valid)
    values = longs.astype(np.int32) if what == times.DATE else longs
    return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(values)], nulls)


def buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(values)  # type: ignore[arg-type]  # numpy arrays are buffers, which the stubs do not know


def texts(spans: Spans, kind: Any, valid: Bytes, way: int) -> Array:
    """Texts or bytes, made of their spans in a way of `gather`."""
    rows = len(spans.states)
    room = int((spans.ends - spans.begins).sum(dtype=np.int64)) + 2 * rows
    ends, out = np.empty(rows + 1, np.int32), np.empty(room, np.uint8)
    nulls = convert.gather(*spans, way, ends, out, valid)
    return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(ends), buffer(out[: ends[-1]])], nulls)


def _floats(kind: Any, spans: Spans, valid: Bytes) -> Array:
    """Arrow reads the texts of the numbers, as exactly as Python."""
    numbers = texts(spans, pa.string(), valid, convert.AS_FLOAT)
    doubles = numbers.cast(pa.float64())
    if not pt.is_float32(kind):
        return doubles
    singles = doubles.cast(kind, safe=False)
    values = np.frombuffer(singles.buffers()[1], np.float32)[: len(singles)]
    is_wide = np.isinf(values) & (spans.states == scan.TAKEN)
    spans.states[is_wide] = scan.LATER
    return singles


def _intervals(spans: Spans, valid: Bytes) -> Array:
    made = texts(spans, pa.string(), valid, convert.AS_TEXT).to_pylist()
    values = [None if each is None else interval_of_text(each) for each in made]
    odd = [place for place, (text, value) in enumerate(zip(made, values, strict=True)) if text is not None and value is None]
    spans.states[odd] = scan.LATER
    return intervals(values)


def _parts(spans: Spans, kind: int) -> Bytes:
    """States for the parts of values of a kind: other values are left for later, and null ones are absent."""
    taken = spans.states == scan.TAKEN
    is_null = (spans.kinds == syntax.NULL) | (spans.kinds == syntax.MISSING)
    spans.states[taken & ~is_null & (spans.kinds != kind)] = scan.LATER
    states = np.full(len(spans.states), scan.ABSENT, np.uint8)
    states[taken & (spans.kinds == kind)] = scan.TAKEN
    return states


def _struct(kind: Any, spans: Spans) -> Array:
    states = _parts(spans, syntax.OBJECT)
    columns = members(list(kind), spans.data, spans.begins, spans.ends, states)
    spans.states[states == scan.LATER] = scan.LATER
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(states != scan.TAKEN))


def _list(kind: Any, spans: Spans) -> Array:
    ends, nulls, valid, items, _ = _split(spans, syntax.ARRAY, syntax.OPEN_ARRAY)
    made = column(kind.value_field, items)
    _spread(spans, items.states, ends)
    return pa.Array.from_buffers(kind, len(spans.states), [valid, buffer(ends)], nulls, children=[made])


def _map(kind: Any, spans: Spans) -> Array:
    ends, nulls, valid, items, keys = _split(spans, syntax.OBJECT, syntax.OPEN_OBJECT)
    made = column(kind.item_field, items)
    key_column = column(kind.key_field, keys) if pt.is_string(kind.key_type) else _int_keys(kind, keys)
    items.states[keys.states == scan.LATER] = scan.LATER
    _spread(spans, items.states, ends)
    if key_column.null_count:  # of a row that is left for later; a map must not have them
        key_column = pc.fill_null(key_column, "" if pt.is_string(kind.key_type) else 0)
    pairs = pa.StructArray.from_arrays([key_column, made], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, len(spans.states), [valid, buffer(ends)], nulls, children=[pairs])


def _int_keys(kind: Any, keys: Spans) -> Array:
    """Whole numbers as names. Only canonical ones are taken: no two spellings of a number may be in a map."""
    names = column(pa.field("key", pa.string()), keys)
    try:
        made = names.cast(kind.key_type)
        if made.cast(pa.string()).equals(names):
            return made
    except pa.ArrowInvalid:
        pass
    keys.states[:] = scan.LATER
    return pa.nulls(len(names), kind.key_type)


def _split(spans: Spans, kind: int, bracket: int) -> tuple[Ints, int, pa.Buffer, Spans, Spans]:
    """The ends of lists or maps, their nulls, their validity, and the spans of their items and keys."""
    states = _parts(spans, kind)
    rows = len(states)
    taken = states == scan.TAKEN
    room = int((spans.ends - spans.begins).sum(where=taken, dtype=np.int64)) // 2 + rows + 1
    with_keys = room if bracket == syntax.OPEN_OBJECT else 0
    ends = np.empty(rows + 1, np.int32)
    items, keys = _room(spans.data, room), _room(spans.data, with_keys)
    count = scan.split(
        spans.data, spans.begins, spans.ends, states, ends, *items[1:4], *keys[1:4],
        bracket, limits.MAX_VALUE_DEPTH, limits.MAX_TABLE_ITEMS,
    )  # fmt: skip
    spans.states[states == scan.LATER] = scan.LATER
    is_valid = states == scan.TAKEN
    valid = buffer(np.packbits(is_valid, bitorder="little"))
    return ends, rows - int(is_valid.sum()), valid, _first(items, count), _first(keys, min(count, with_keys))


def _room(data: Bytes, size: int) -> Spans:
    return Spans(data, np.empty(size, np.uint8), np.empty(size, np.int32), np.empty(size, np.int32), np.zeros(size, np.uint8))


def _first(spans: Spans, count: int) -> Spans:
    return Spans(spans.data, spans.kinds[:count], spans.begins[:count], spans.ends[:count], spans.states[:count])


def _spread(spans: Spans, states: Bytes, ends: Ints) -> None:
    """Leave a row for later if one of its parts is."""
    later = np.flatnonzero(states == scan.LATER)
    if len(later):
        spans.states[np.searchsorted(ends, later, side="right") - 1] = scan.LATER
