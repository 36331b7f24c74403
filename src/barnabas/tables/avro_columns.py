"""Avro data as columns in bulk, by a program or a tree and its kernel: no Python object for a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.tables.avro_program import Constant, Program
from barnabas.tables.avro_tree import Tree
from barnabas.tables.column_types import Field
from barnabas.tables.formats import Array, binary_parts
from barnabas.tables.json_columns import Bytes, Ints, Longs, Spans, buffer, states_of, texts
from barnabas.tables.kernels import avro, avro_tree, json_convert
from barnabas.tables.kernels.json_spans import LATER, TAKEN
from barnabas.tables.kernels.json_syntax import MISSING, NULL


def decode_avro(
    program: Program | Tree, fields: Sequence[Field], wanted: Sequence[Field], payloads: Array, prefix: int
) -> tuple[list[Array], npt.NDArray[np.intp]]:
    """The wanted ones of a program's fields, and the rows for which they are null because the kernel does not take them.

    Args:
        prefix: bytes before the data in each payload that is not null.
    """
    data, ends = binary_parts(payloads)
    states = states_of(payloads)
    begins = ends[:-1] + np.int32(prefix)
    if isinstance(program, Tree):
        made = decode_nested(program, data, begins, ends[1:], states)
        columns = [made[fields.index(field)] for field in wanted]
    else:
        columns = decode_flat(program, fields, wanted, data, begins, ends[1:], states)
    return columns, np.flatnonzero(states == LATER)


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
        kinds, values, span_begins, span_ends,
    )  # fmt: skip
    return [
        _column(
            field, how, program.texts, values[number], Spans(data, kinds[number], span_begins[number], span_ends[number], states)
        )
        for number, (field, how) in enumerate(zip(fields, program.columns, strict=True))
    ]


def decode_nested(tree: Tree, data: Bytes, begins: Ints, ends: Ints, states: Bytes) -> list[Array]:
    """All fields of the records in rows that are taken; the states of other records become LATER."""
    rows = len(states)
    room = int((ends - begins).sum(where=states == TAKEN, dtype=np.int64)) + rows  # an item has at least a byte
    rooms = np.array([room if each.is_repeated else rows for each in tree.outs], np.int64)
    bases = np.concatenate([[0], np.cumsum(rooms)])
    children = [len(each.children) if pt.is_struct(each.field.type) else 0 for each in tree.outs]
    outs = np.stack([bases[:-1], rooms, np.array(tree.out_links, np.int64), np.array(children, np.int64)], axis=1).reshape(-1)
    total = int(bases[-1])
    counts, kinds, of_row = np.zeros(len(tree.outs), np.int64), np.zeros(total, np.uint8), np.zeros(total, np.int32)
    values, span_begins, span_ends = np.zeros(total, np.int64), np.zeros(total, np.int32), np.zeros(total, np.int32)
    avro_tree.decode_tree(
        data, begins, ends, states, tree.nodes, tree.links, tree.symbols, outs,
        counts, kinds, of_row, values, span_begins, span_ends,
    )  # fmt: skip

    def build(number: int) -> Array:
        out = tree.outs[number]
        here = slice(int(bases[number]), int(bases[number] + counts[number]))
        kind: Any = out.field.type
        is_valid = kinds[here] != NULL
        parts = [build(each) for each in out.children]
        if pt.is_struct(kind):
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array(~is_valid))
        if out.children:
            items = parts[0] if pt.is_list(kind) else pa.StructArray.from_arrays(parts, fields=[kind.key_field, kind.item_field])
            ends_of_lists = np.concatenate([[0], np.cumsum(values[here])]).astype(np.int32)
            valid: list[pa.Buffer | None] = [buffer(np.packbits(is_valid, bitorder="little")), buffer(ends_of_lists)]
            return pa.Array.from_buffers(kind, len(is_valid), valid, int((~is_valid).sum()), children=[items])
        fine = np.zeros(len(is_valid), np.uint8)
        made = _column(
            out.field,
            out.how,
            tree.texts,
            values[here].copy(),
            Spans(data, kinds[here], span_begins[here], span_ends[here], fine),
        )
        states[of_row[here][fine == LATER]] = LATER
        return made

    return [build(each) for each in tree.outs[0].children]


def _column(field: Field, how: Any, symbols: list[str], values: Longs, spans: Spans) -> Array:
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
        return texts(spans, kind, valid, json_convert.AS_TEXT)
    if how == "uuid":
        return texts(spans, kind, valid, json_convert.AS_UUID)
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
        return pa.array(symbols, pa.string()).take(places)
    made: Any = values
    if how == "double":
        made = values.view(np.float64)
        if pt.is_float32(kind):
            made = made.astype(np.float32)
    elif kind.bit_width == 32:
        made = values.astype(np.int32)
    return pa.Array.from_buffers(kind, rows, [buffer(valid), buffer(made)], nulls)
