"""Encodes slots of Arrow arrays to Avro data by a table of nodes.

A node is a part of a schema together with the array of its values. The nodes of a record's fields, of an array's items and of a map's keys
and values follow their node, each with its own nodes behind it; node 0 is the whole value.

Rules
  1. A node is a row of int64[nodes, COLUMNS]. It has addresses of Arrow's buffers, which the caller keeps alive, and whose offsets the
     caller has checked.
  2. The caller gives room for the largest data that the arrays can have (`MOST`); the kernel checks no end.
  3. A row with a value that does not fit is left for later: it gets no bytes and a mark.
  4. Functions call themselves as deep as the schema is.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS, write_varint
from barnabas.protocol.records.pointers import POINTER, copy_bytes, pointer_at, pointer_to

# Columns of the table: SIZE is the number of nodes with those below, COUNT that of a record's fields. NULL_BYTE is the byte that stands for
# null (NOTHING: no byte, REFUSED: null does not fit), VALUE_BYTE the byte before other values (REFUSED: none). VALID, VALUES and ENDS are
# addresses, VALID may be 0; slot i is at OFFSET + i in them.
OP, SIZE, COUNT, NULL_BYTE, VALUE_BYTE, VALID, OFFSET, VALUES, ENDS, FIRST, SECOND = range(11)
COLUMNS = 11
LOW, HIGH = FIRST, SECOND  # the bounds of a number
WIDTH = FIRST  # of a fixed, in bytes
IS_FIXED = SECOND  # of a decimal
NOTHING, REFUSED = -2, -1
(OP_NULL, OP_BOOLEAN, OP_INT, OP_LONG, OP_MILLIS, OP_FLOAT, OP_FLOAT_TO_DOUBLE, OP_DOUBLE_TO_FLOAT, OP_DOUBLE, OP_TEXT, OP_FIXED, OP_SYMBOL,
 OP_DECIMAL, OP_RECORD, OP_ARRAY, OP_MAP) = range(16)  # fmt: skip
# The bytes of a value without those below, of texts without their own, by OP.
MOST = (0, 1, 5, 10, 10, 4, 8, 4, 8, 5, 0, 5, 22, 0, 6, 6)
MOST_KEYS = 32  # of a map whose keys are compared here

LONGS_AT, INTS_AT = types.CPointer(types.int64), types.CPointer(types.int32)
bytes_at, longs_at, ints_at = pointer_at(types.uint8), pointer_at(types.int64), pointer_at(types.int32)
floats_at, doubles_at = pointer_at(types.float32), pointer_at(types.float64)


@njit(types.boolean(types.int64, types.int64), cache=True, inline="always")
def is_set(address, place):
    return (bytes_at(address)[place >> 3] >> np.uint8(place & 7)) & np.uint8(1) != 0


@njit(types.int64(POINTER, types.int64, types.uint64, types.int64), cache=True)
def put_bits(out, at, bits, size):
    """Write the lowest bytes of a number, the lowest first; the position behind them."""
    for i in range(size):
        out[at + i] = np.uint8((bits >> np.uint64(8 * i)) & np.uint64(0xFF))
    return at + size


@njit(types.int64(types.uint64), cache=True)
def bit_length(value):
    size = np.int64(0)
    while value != np.uint64(0):
        value >>= np.uint64(1)
        size += 1
    return size


@njit(types.int64(POINTER, types.int64, LONGS_AT, types.int64, types.int64, types.boolean), cache=True)
def put_decimal(out, at, halves, place, width, is_fixed):
    """Write the big-endian bytes of 128 bits; the position behind them, -1 if they are too long."""
    low, high = np.uint64(halves[2 * place]), np.uint64(halves[2 * place + 1])
    is_negative = halves[2 * place + 1] < 0
    amount_low, amount_high = low, high
    if is_negative:
        amount_low = ~low + np.uint64(1)
        amount_high = ~high + (np.uint64(1) if amount_low == np.uint64(0) else np.uint64(0))
    bits = bit_length(amount_high) + 64 if amount_high != np.uint64(0) else bit_length(amount_low)
    size = (bits + 8) >> 3
    if is_fixed:
        if size > width:
            return np.int64(-1)
        size = width
    else:
        at = write_varint(out, at, size)
    fill = np.uint8(255) if is_negative else np.uint8(0)
    for i in range(size):
        down = size - 1 - i
        if down >= 16:
            out[at + i] = fill
        elif down >= 8:
            out[at + i] = np.uint8((high >> np.uint64(8 * (down - 8))) & np.uint64(0xFF))
        else:
            out[at + i] = np.uint8((low >> np.uint64(8 * down)) & np.uint64(0xFF))
    return at + size


@njit(types.boolean(POINTER, INTS_AT, types.int64, types.int64), cache=True)
def has_same_keys(data, ends, begin, end):
    for one in range(begin, end):
        size = ends[one + 1] - ends[one]
        for other in range(begin, one):
            if ends[other + 1] - ends[other] != size:
                continue
            is_same = True
            for i in range(size):
                if data[ends[one] + i] != data[ends[other] + i]:
                    is_same = False
                    break
            if is_same:
                return True
    return False


@njit(types.boolean(POINTER, types.int64, types.int64), cache=True)
def is_branch(data, begin, end):
    """Whether a text is `map` or `null`."""
    if end - begin == 3:
        return data[begin] == 109 and data[begin + 1] == 97 and data[begin + 2] == 112
    return (
        end - begin == 4 and data[begin] == 110 and data[begin + 1] == 117 and data[begin + 2] == 108 and data[begin + 3] == 108
    )


@njit(types.int64(LONGS_AT, types.int64, types.int64, types.int64, POINTER, types.int64), cache=True)
def put_number(nodes, here, op, slot, out, at):
    """Write a value of a fixed size or a number; the position behind it, -1 if it does not fit."""
    address = nodes[here + VALUES]
    if op in (OP_INT, OP_LONG, OP_MILLIS, OP_SYMBOL):
        value = np.int64(ints_at(address)[slot]) if op in (OP_INT, OP_SYMBOL) else longs_at(address)[slot]
        if value < nodes[here + LOW] or value > nodes[here + HIGH]:
            return np.int64(-1)
        if op == OP_MILLIS:
            value = value // 1000
        return write_varint(out, at, value)
    if op == OP_FLOAT:
        return put_bits(out, at, np.uint64(np.uint32(ints_at(address)[slot])), np.int64(4))
    if op == OP_DOUBLE:
        return put_bits(out, at, np.uint64(longs_at(address)[slot]), np.int64(8))
    if op == OP_FLOAT_TO_DOUBLE:
        return put_bits(out, at, np.float64(floats_at(address)[slot]).view(np.uint64), np.int64(8))
    if op == OP_DOUBLE_TO_FLOAT:
        return put_bits(out, at, np.uint64(np.float32(doubles_at(address)[slot]).view(np.uint32)), np.int64(4))
    if op == OP_BOOLEAN:
        out[at] = np.uint8(1) if is_set(address, slot) else np.uint8(0)
        return at + 1
    return put_decimal(out, at, longs_at(address), slot, nodes[here + WIDTH], nodes[here + IS_FIXED] != 0)


@njit(types.int64(LONGS_AT, types.int64, types.int64, POINTER, types.int64), cache=True)
def put_node(nodes, node, slot, out, at):  # noqa: C901 - one case for each type
    """Write the value of a node in a slot; the position behind it, -1 if it does not fit."""
    here = node * COLUMNS
    op = nodes[here + OP]
    place = slot + nodes[here + OFFSET]
    if nodes[here + VALID] != 0 and not is_set(nodes[here + VALID], place):
        null = nodes[here + NULL_BYTE]
        if null < 0:
            return at if null == NOTHING else np.int64(-1)
        out[at] = np.uint8(null)
        return at + 1
    if nodes[here + VALUE_BYTE] >= 0:
        out[at] = np.uint8(nodes[here + VALUE_BYTE])
        at += 1
    if op in (OP_TEXT, OP_FIXED):
        begin, end = np.int64(ints_at(nodes[here + ENDS])[place]), np.int64(ints_at(nodes[here + ENDS])[place + 1])
        if op == OP_TEXT:
            at = write_varint(out, at, end - begin)
        elif end - begin != nodes[here + WIDTH]:
            return np.int64(-1)
        copy_bytes(out, at, bytes_at(nodes[here + VALUES]), begin, end - begin)
        return at + end - begin
    if op == OP_RECORD:
        child = node + 1
        for _ in range(nodes[here + COUNT]):
            at = put_node(nodes, child, slot, out, at)
            if at < 0:
                return np.int64(-1)
            child += nodes[child * COLUMNS + SIZE]
        return at
    if op in (OP_ARRAY, OP_MAP):
        begin, end = np.int64(ints_at(nodes[here + ENDS])[place]), np.int64(ints_at(nodes[here + ENDS])[place + 1])
        child = node + 1
        if op == OP_MAP and begin < end:
            keys = child * COLUMNS
            data, ends = bytes_at(nodes[keys + VALUES]), ints_at(nodes[keys + ENDS])
            first = begin + nodes[keys + OFFSET]
            if end - begin > MOST_KEYS or has_same_keys(data, ends, first, first + end - begin):
                return np.int64(-1)
            is_union = nodes[here + VALUE_BYTE] >= 0
            if is_union and end - begin == 1 and is_branch(data, np.int64(ends[first]), np.int64(ends[first + 1])):
                return np.int64(-1)
            child += 1
        if begin < end:
            at = write_varint(out, at, end - begin)
        for item in range(begin, end):
            if op == OP_MAP:
                at = put_node(nodes, node + 1, item, out, at)
            at = put_node(nodes, child, item, out, at)
            if at < 0:
                return np.int64(-1)
        out[at] = np.uint8(0)
        return at + 1
    if op == OP_NULL:
        return np.int64(-1)
    return put_number(nodes, here, op, place, out, at)


@njit(types.int64(LONGS, BYTES_IN, BYTES, INTS, BYTES), cache=True, nogil=True)
def encode_rows(nodes, prefix, out, ends, is_later):
    """Encode the slots of node 0, one behind the other; the number of rows that are left for later.

    Args:
        nodes: the table without its second dimension.
        prefix: bytes before each row.
        ends: int32[rows + 1]; the first one is 0.
        is_later: uint8[rows]; 1 stays as it is, a row without a value.
    """
    table, to, before = pointer_to(nodes), pointer_to(out), pointer_to(prefix)
    size = np.int64(prefix.shape[0])
    at, left = np.int64(0), np.int64(0)
    for row in range(is_later.shape[0]):
        begin = at
        if is_later[row] == 0:
            copy_bytes(to, at, before, np.int64(0), size)
            at = put_node(table, np.int64(0), np.int64(row), to, at + size)
            if at < 0:
                at = begin
                is_later[row] = np.uint8(1)
                left += 1
        ends[row + 1] = np.int32(at)
    return left
