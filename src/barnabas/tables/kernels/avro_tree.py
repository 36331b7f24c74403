"""Decodes nested Avro records by a tree of instructions.

A node is a part of the writer's schema, and an output is a column or a part of one. Each output has a place of its own in the arrays:
its next slot is `BASE + counts[output]`. The slot of a list or map has the number of its items.

Rules
  1. A node is a row of `nodes`, whose children are in `links`; so are the outputs and their children.
  2. A record that ends early or late, or has a value that its column may not have, is taken back: its row is null in all outputs, and its
     state is LATER.
  3. Functions call themselves as deep as the schema is; the compiler limits that.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS
from barnabas.protocol.records.kernels import read_varint as read_long
from barnabas.protocol.records.pointers import POINTER, pointer_to
from barnabas.tables.kernels.avro import LONGS_AT, OP_ENUM, OP_NULL, is_utf8, read_value
from barnabas.tables.kernels.json_spans import INTS_AT, INTS_IN, LATER, TAKEN, has_same_texts
from barnabas.tables.kernels.json_syntax import ARRAY, AT, NULL, OBJECT, TEXT

OP_RECORD, OP_ARRAY, OP_MAP, OP_UNION = range(OP_ENUM + 1, OP_ENUM + 5)
# Columns of the table of nodes: the output (or SKIPPED), and arguments. A value has those of `avro`. A record, array, map or union has the
# first link to its children and their number; a record also the links to outputs that the writer does not have.
# The first link of a map is its values, and the second one the output of its keys.
OP, TARGET, FIRST, COUNT, LACKING, LACKING_COUNT = range(6)
LOW, HIGH, FACTOR = FIRST, COUNT, LACKING
NODE_COLUMNS = 6
# Columns of the table of outputs: the first slot and the number of slots; for a struct the links to its children.
BASE, ROOM, OUT_FIRST, OUT_COUNT = range(4)
OUT_COLUMNS = 4
SKIPPED = -1


@njit(types.int64(types.int64, types.int64, types.int64, LONGS_AT, LONGS_AT, POINTER, INTS_AT), cache=True)
def slot(out, kind, row, outs, counts, kinds, rows):
    """Take the next slot of an output; -1 if there is none."""
    used = counts[out]
    if used >= outs[out * OUT_COLUMNS + ROOM]:
        return np.int64(-1)
    at = outs[out * OUT_COLUMNS + BASE] + used
    counts[out] = used + 1
    kinds[at] = np.uint8(kind)
    rows[at] = np.int32(row)
    return at


@njit(types.int64(types.int64, types.int64, LONGS_AT, LONGS_AT, LONGS_AT, POINTER, INTS_AT, LONGS_AT), cache=True)
def add_null(out, row, links, outs, counts, kinds, rows, values):
    """A null, also in the children of a struct; -1 if there is no room."""
    at = slot(out, np.int64(NULL), row, outs, counts, kinds, rows)
    if at < 0:
        return np.int64(-1)
    values[at] = 0
    first = outs[out * OUT_COLUMNS + OUT_FIRST]
    for i in range(outs[out * OUT_COLUMNS + OUT_COUNT]):
        if add_null(links[first + i], row, links, outs, counts, kinds, rows, values) < 0:
            return np.int64(-1)
    return at


@njit(
    AT(
        POINTER, AT, AT, types.int64, types.int64,  # data, position, end, node, row
        LONGS_AT, LONGS_AT, LONGS_AT, LONGS_AT,  # nodes, links, symbols, outs
        LONGS_AT, POINTER, INTS_AT, LONGS_AT, INTS_AT, INTS_AT,  # counts, kinds, rows, values, spans
    ),
    cache=True,
)  # fmt: skip
def read_node(data, at, end, node, row, nodes, links, symbols, outs, counts, kinds, rows, values, begins, ends):  # noqa: C901 - one case for each type
    """Read one value to its output; the position behind it, -1 if it is wrong."""
    place = node * NODE_COLUMNS
    op, out = nodes[place + OP], nodes[place + TARGET]
    if op == OP_UNION:
        index, at = read_long(data, at, end)
        if at < 0 or index < 0 or index >= nodes[place + COUNT]:
            return np.int64(-1)
        branch = links[nodes[place + FIRST] + index]
        return read_node(data, at, end, branch, row, nodes, links, symbols, outs, counts, kinds, rows, values, begins, ends)
    if op == OP_NULL:
        if out >= 0 and add_null(out, row, links, outs, counts, kinds, rows, values) < 0:
            return np.int64(-1)
        return np.int64(at)
    if op == OP_RECORD:
        for i in range(nodes[place + COUNT]):
            child = links[nodes[place + FIRST] + i]
            at = read_node(data, at, end, child, row, nodes, links, symbols, outs, counts, kinds, rows, values, begins, ends)
            if at < 0:
                return np.int64(-1)
        if out >= 0:
            if slot(out, np.int64(OBJECT), row, outs, counts, kinds, rows) < 0:
                return np.int64(-1)
            for i in range(nodes[place + LACKING_COUNT]):
                lacking = links[nodes[place + LACKING] + i]
                if add_null(lacking, row, links, outs, counts, kinds, rows, values) < 0:
                    return np.int64(-1)
        return np.int64(at)
    if op in (OP_ARRAY, OP_MAP):
        total = np.int64(0)
        child, keys = links[nodes[place + FIRST]], links[nodes[place + FIRST] + 1]
        while True:
            count, at = read_long(data, at, end)
            if at < 0:
                return np.int64(-1)
            if count == 0:
                break
            if count < 0:
                count = -count
                _size, at = read_long(data, at, end)
                if at < 0 or count < 0:
                    return np.int64(-1)
            if count > end - at:  # an item has at least a byte
                return np.int64(-1)
            total += count
            for _ in range(count):
                if op == OP_MAP:
                    size, at = read_long(data, at, end)
                    if at < 0 or size < 0 or size > end - at or not is_utf8(data, at, at + size):
                        return np.int64(-1)
                    if out >= 0:
                        key = slot(keys, np.int64(TEXT), row, outs, counts, kinds, rows)
                        if key < 0:
                            return np.int64(-1)
                        begins[key] = at
                        ends[key] = at + size
                    at += size
                at = read_node(data, at, end, child, row, nodes, links, symbols, outs, counts, kinds, rows, values, begins, ends)
                if at < 0:
                    return np.int64(-1)
        if out >= 0:
            if op == OP_MAP and total > 1:
                last = outs[keys * OUT_COLUMNS + BASE] + counts[keys]
                if has_same_texts(data, begins, ends, last - total, last):
                    return np.int64(-1)
            here = slot(out, np.int64(ARRAY), row, outs, counts, kinds, rows)
            if here < 0:
                return np.int64(-1)
            values[here] = total
        return np.int64(at)
    low, high, factor = nodes[place + LOW], nodes[place + HIGH], nodes[place + FACTOR]
    at, kind, value = read_value(data, at, end, op, low, high, factor, out >= 0, symbols)
    if at >= 0 and out >= 0:
        here = slot(out, kind, row, outs, counts, kinds, rows)
        if here < 0:
            return np.int64(-1)
        if kind == TEXT:
            begins[here] = value
            ends[here] = at
        else:
            values[here] = value
    return np.int64(at)


@njit(
    types.void(
        BYTES_IN, INTS_IN, INTS_IN, BYTES,  # data; begin, end and state of the rows
        LONGS, LONGS, LONGS, LONGS,  # nodes, links, symbols and outs, without their second dimension
        LONGS, BYTES, INTS, LONGS, INTS, INTS,  # output: counts, kinds, rows, values, spans
    ),
    cache=True, nogil=True,
)  # fmt: skip
def decode_tree(data, row_begins, row_ends, states, nodes, links, symbols, outs, counts, kinds, rows, values, begins, ends):
    """Records to the outputs; node 0 and output 0 are the record itself, which has a slot for each row."""
    source, nodes_at, links_at, symbols_at = pointer_to(data), pointer_to(nodes), pointer_to(links), pointer_to(symbols)
    outs_at, counts_at, kinds_at, rows_at = pointer_to(outs), pointer_to(counts), pointer_to(kinds), pointer_to(rows)
    values_at, begins_at, ends_at = pointer_to(values), pointer_to(begins), pointer_to(ends)
    before = np.empty(counts.shape[0], np.int64)
    for row in range(states.shape[0]):
        if states[row] == TAKEN:
            before[:] = counts
            end = np.int64(row_ends[row])
            at = read_node(
                source, np.int64(row_begins[row]), end, 0, row, nodes_at, links_at, symbols_at,
                outs_at, counts_at, kinds_at, rows_at, values_at, begins_at, ends_at,
            )  # fmt: skip
            if at == end:
                continue
            states[row] = LATER
            counts[:] = before
        add_null(0, row, links_at, outs_at, counts_at, kinds_at, rows_at, values_at)
