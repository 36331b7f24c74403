"""Decodes flat Avro records by a table of instructions, and single values for `avro_tree`.

Rules
  1. A program is int64[fields, FIELD_COLUMNS] and int64[branches, BRANCH_COLUMNS]: a field has one branch, or those of its union. A record
     is its fields one behind the other.
  2. Values go to `values` as longs, as the bits of doubles or as symbols, texts and bytes to spans; both are [columns, rows].
  3. A record that ends early or late, or has a value that the column may not have, is left for later, as in `json_spans`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS, TABLE
from barnabas.protocol.records.kernels import read_varint as read_long
from barnabas.protocol.records.pointers import POINTER, pointer_to
from barnabas.tables.kernels.json_convert import PARTS, has_value, settle
from barnabas.tables.kernels.json_spans import INTS_IN, KINDS, LATER, SPANS, TAKEN
from barnabas.tables.kernels.json_syntax import AT, FALSE, INT, NULL, TEXT, TRUE, utf8_size

# Columns of the table of fields: the output column (or CHECKED, SKIPPED), the first branch, the number of branches, whether it is a union.
TARGET, FIRST, BRANCHES, IS_UNION = range(4)
FIELD_COLUMNS = 4
CHECKED, SKIPPED = -1, -2  # a field that the reader has and nobody asked for; one that the reader does not have
# Columns of the table of branches. LOW and HIGH are the bounds of a long, FACTOR multiplies it. SIZE is that of a fixed. The symbols of an
# enum are rows FIRST_SYMBOL up to FIRST_SYMBOL + SYMBOLS of `symbols`, which names the reader's texts (-1: none).
OP, LOW, HIGH, FACTOR = range(4)
SIZE, FIRST_SYMBOL, SYMBOLS = LOW, LOW, HIGH
BRANCH_COLUMNS = 4
OP_NULL, OP_BOOLEAN, OP_LONG, OP_LONG_TO_DOUBLE, OP_FLOAT, OP_DOUBLE, OP_BYTES, OP_TEXT, OP_FIXED, OP_ENUM = range(10)

LONGS_AT = types.CPointer(types.int64)
MOST_DECIMAL_BYTES = 16
HALVES = types.UniTuple(types.uint64, 2)


@njit(types.boolean(POINTER, AT, AT), cache=True)
def is_utf8(data, at, end):
    while at < end:
        if data[at] < 128:
            at += 1
            continue
        size = utf8_size(data, at, end)
        if size == 0:
            return False
        at += size
    return True


@njit(types.uint64(POINTER, AT, types.int64), cache=True)
def little_endian(data, at, size):
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@njit(PARTS(POINTER, AT, AT, AT, AT, AT, AT, types.boolean, LONGS_AT), cache=True, inline="always")
def read_value(data, at, end, op, low, high, factor, is_checked, symbols):  # noqa: C901 - one case for each type
    """One value that has no parts. It is inlined: a call takes as long as the reading of a value.

    Args:
        op, low, high, factor: of its branch; `low` may be SIZE or FIRST_SYMBOL, `high` SYMBOLS.
        is_checked: whether a number must be within its bounds, and a symbol one of the reader's.

    Returns:
        The position behind it, -1 if it is wrong; its kind; the number, the bits of the double, the reader's symbol, or the begin of the
        text, which ends at the position.
    """
    kind, value = np.int64(INT), np.int64(0)
    if op == OP_NULL:
        kind = np.int64(NULL)
    elif op in (OP_LONG, OP_LONG_TO_DOUBLE):
        value, at = read_long(data, at, end)
        if is_checked and (value < low or value > high):
            at = np.int64(-1)
        value = value * factor if op == OP_LONG else np.float64(value).view(np.int64)
    elif op in (OP_BYTES, OP_TEXT, OP_FIXED):
        size, kind = low, np.int64(TEXT)
        if op != OP_FIXED:
            size, at = read_long(data, at, end)
        if at < 0 or size < 0 or size > end - at or (op == OP_TEXT and not is_utf8(data, at, at + size)):
            return np.int64(-1), kind, value
        value = np.int64(at)
        at += size
    elif op in (OP_DOUBLE, OP_FLOAT):
        size = 8 if op == OP_DOUBLE else 4
        if size > end - at:
            return np.int64(-1), kind, value
        bits = little_endian(data, at, size)
        value = np.int64(bits) if op == OP_DOUBLE else np.float64(np.uint32(bits).view(np.float32)).view(np.int64)
        at += size
    elif op == OP_BOOLEAN:
        if at >= end or data[at] > 1:
            return np.int64(-1), kind, value
        kind = np.int64(TRUE) if data[at] == 1 else np.int64(FALSE)
        at += 1
    else:
        index, at = read_long(data, at, end)
        if at < 0 or index < 0 or index >= high:
            return np.int64(-1), kind, value
        value = symbols[low + index]
        if is_checked and value < 0:
            at = np.int64(-1)
    return np.int64(at), kind, value


@njit(
    types.void(
        BYTES_IN, INTS_IN, INTS_IN, BYTES,  # data; begin, end and state of the rows
        TABLE, TABLE, LONGS,  # fields, branches, symbols
        KINDS, TABLE, SPANS, SPANS,  # output: kinds all MISSING; values; spans
    ),
    cache=True, nogil=True,
)  # fmt: skip
def decode_avro(data, begins, ends, states, fields, branches, symbols, kinds, values, span_begins, span_ends):
    source, symbols_at = pointer_to(data), pointer_to(symbols)
    for row in range(states.shape[0]):
        if states[row] != TAKEN:
            continue
        at, end = np.int64(begins[row]), np.int64(ends[row])
        for field in range(fields.shape[0]):
            branch = fields[field, FIRST]
            if fields[field, IS_UNION] == 1:
                index, at = read_long(source, at, end)
                if at < 0 or index < 0 or index >= fields[field, BRANCHES]:
                    at = np.int64(-1)
                    break
                branch += index
            column = fields[field, TARGET]
            at, kind, value = read_value(
                source, at, end, branches[branch, OP], branches[branch, LOW], branches[branch, HIGH], branches[branch, FACTOR],
                column > SKIPPED, symbols_at,
            )  # fmt: skip
            if at < 0:
                break
            if column >= 0:
                kinds[column, row] = kind
                if kind == TEXT:
                    span_begins[column, row] = value
                    span_ends[column, row] = at
                else:
                    values[column, row] = value
        if at != end:
            states[row] = LATER


@njit(HALVES(POINTER, AT, AT), cache=True)
def big_number(data, at, end):
    """The low and the high half of a signed big-endian number of at most 16 bytes."""
    fill = np.uint64(0)
    if at < end and data[at] >= 128:
        fill = ~fill
    low, high = fill, fill
    for i in range(at, end):
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | np.uint64(data[i])
    return low, high


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, types.uint64, types.uint64, LONGS, BYTES), cache=True, nogil=True)
def to_avro_decimals(data, kinds, begins, ends, states, most_low, most_high, out, valid):
    """Decimals of 128 bits whose amount is at most `most`, in two halves; the number of nulls."""
    source = pointer_to(data)
    kinds_at, states_at, valid_at = pointer_to(kinds), pointer_to(states), pointer_to(valid)
    nulls = np.int64(0)
    zero, one = np.uint64(0), np.uint64(1)
    for row in range(states.shape[0]):
        out[2 * row] = 0
        out[2 * row + 1] = 0
        begin, end = np.int64(begins[row]), np.int64(ends[row])
        fits = has_value(kinds_at, states_at, row) and 0 < end - begin <= MOST_DECIMAL_BYTES
        if fits:
            low, high = big_number(source, begin, end)
            amount_low, amount_high = low, high
            if source[begin] >= 128:
                amount_low = ~low + one
                amount_high = ~high + (one if amount_low == zero else zero)
            fits = amount_high < most_high or (amount_high == most_high and amount_low <= most_low)
            if fits:
                out[2 * row] = np.int64(low)
                out[2 * row + 1] = np.int64(high)
        nulls += settle(fits, kinds_at, states_at, valid_at, row)
    return nulls
