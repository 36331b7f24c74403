"""Flat Avro data as columns in bulk, by a program and the kernel: no Python object for a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.tables.avro_program import Constant, Program
from barnabas.tables.column_types import Field
from barnabas.tables.formats import Array
from barnabas.tables.json_columns import Bytes, Ints, Longs, Spans, buffer, texts
from barnabas.tables.kernels import avro, json_convert
from barnabas.tables.kernels.json_spans import TAKEN
from barnabas.tables.kernels.json_syntax import MISSING, NULL


def decode_flat(
    program: Program, fields: Sequence[Field], wanted: Sequence[Field], data: Bytes, begins: Ints, ends: Ints, states: Bytes
) -> list[Array]:
    """The wanted ones of a program's fields, for the records in rows that are taken; the states of other records become LATER.

    A record is taken only if all fields fit, wanted or not.
    """
    names = [each.name for each in wanted]
    program, kept = program.only([n for n, each in enumerate(fields) if each.name in names])
    made = _columns(program, [fields[number] for number in kept], data, begins, ends, states)
    by_name = {fields[number].name: column for number, column in zip(kept, made, strict=True)}
    return [by_name[name] for name in names]


def _columns(program: Program, fields: Sequence[Field], data: Bytes, begins: Ints, ends: Ints, states: Bytes) -> list[Array]:
    shape = len(fields), len(states)
    kinds, values = np.zeros(shape, np.uint8), np.zeros(shape, np.int64)
    span_begins, span_ends = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    avro.decode_avro(
        data, begins, ends, states, program.fields, program.branches, program.symbols,
        kinds, values, values.view(np.float64), span_begins, span_ends,
    )  # fmt: skip
    return [
        _column(field, how, program, values[number], Spans(data, kinds[number], span_begins[number], span_ends[number], states))
        for number, (field, how) in enumerate(zip(fields, program.columns, strict=True))
    ]


def _column(field: Field, how: Any, program: Program, values: Longs, spans: Spans) -> Array:
    kind: Any = field.type
    rows = len(spans.states)
    if isinstance(how, Constant):
        return pc.if_else(pa.array(spans.states == TAKEN), pa.scalar(how.value, kind), pa.scalar(None, kind))
    if how == "null":
        return pa.nulls(rows, kind)
    valid = np.zeros(rows // 8 + 1, np.uint8)
    if how == "boolean":
        bits = np.zeros(rows // 8 + 1, np.uint8)
        nulls = json_convert.to_bits(spans.kinds, spans.states, bits, valid)
        return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(bits)], nulls)
    if how in ("text", "bytes"):
        return texts(spans, kind, valid, json_convert.gather, json_convert.AS_TEXT)
    if how == "uuid":
        return texts(spans, kind, valid, json_convert.to_uuids)
    if how == "decimal":
        pairs = np.empty(2 * rows, np.int64)
        most = 10**kind.precision - 1
        nulls = avro.to_avro_decimals(*spans, most % 2**64, most >> 64, pairs, valid)
        return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(pairs)], nulls)
    is_valid = (spans.states == TAKEN) & (spans.kinds != NULL) & (spans.kinds != MISSING)
    valid = np.packbits(is_valid, bitorder="little")
    nulls = rows - int(is_valid.sum())
    if how == "symbol":
        places = pa.Array.from_buffers(pa.int64(), rows, [buffer(valid), buffer(values)], nulls)
        return pa.array(program.texts, pa.string()).take(places)
    made: Any = values
    if how == "double":
        made = values.view(np.float64)
        if pt.is_float32(kind):
            made = made.astype(np.float32)
    elif kind.bit_width == 32:
        made = values.astype(np.int32)
    return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(made)], nulls)
