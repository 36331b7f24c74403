"""The loops over bytes of pgoutput, compiled by numba, in the manner of `protocol/records/kernels.py`.

Rules
  1. Explicit signatures and `cache=True`.
  2. Every place is checked against the end of its message before it is read. A message that is cut off or has an unknown kind stops the
     kernel, which returns its number.
  3. A cell is a place in the bytes and a length; a length below 0 says what a cell without bytes is.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS
from barnabas.protocol.records.pointers import copy_bytes, pointer_to

LONGS_IN = types.Array(types.int64, 1, "C", readonly=True)
INTS_IN = types.Array(types.int32, 1, "C", readonly=True)
LONG_TABLE, INT_TABLE = types.Array(types.int64, 2, "C"), types.Array(types.int32, 2, "C")
BYTES_OUT = types.Array(types.uint8, 1, "C")

# lengths of cells: a null, a large value that is not sent, and one of a row that is not there
NULL, UNCHANGED, ABSENT = -1, -2, -3
KIND, OID, OLD, NEW, IS_KEY = range(5)  # what a change has in its line of the table of messages
COMMIT_LSN, TIME_US, XID = 1, 2, 3  # what a begin has
END_LSN = 1  # what a commit has
WIDTH = 5
EPOCH_US = 946_684_800_000_000  # 2000-01-01, from which PostgreSQL counts


@njit(types.int64(BYTES_IN, types.int64, types.int64), cache=True)
def number_at(data, at, size):
    """The unsigned number of `size` bytes at a place, in big endian; one of eight bytes keeps its bits."""
    found = np.int64(0)
    for place in range(at, at + size):
        found = (found << 8) | np.int64(data[place])
    return found


@njit(types.int64(BYTES_IN, types.int64, types.int64), cache=True)
def row_end(data, at, end):
    """The place behind a row; -1 if it goes beyond the end, or has a value of an unknown kind."""
    if at + 2 > end:
        return -1
    count = number_at(data, at, 2)
    at += 2
    for _ in range(count):
        if at >= end:
            return -1
        kind = data[at]
        if kind == 116:  # t
            if at + 5 > end:
                return -1
            at += 5 + number_at(data, at + 1, 4)
        elif kind == 110 or kind == 117:  # n, u
            at += 1
        else:
            return -1
    return at if at <= end else -1


@njit(types.boolean(BYTES_IN, types.int64, types.int64, LONGS), cache=True)
def read_change(data, begin, end, line):
    """Read an insert, an update or a deletion; whether that is possible."""
    kind, which, at = data[begin], data[begin + 5], begin + 6
    line[OID] = number_at(data, begin + 1, 4)
    line[OLD] = line[NEW] = line[IS_KEY] = 0
    after = row_end(data, at, end)
    if after < 0:
        return False
    if kind == 73 or (kind == 85 and which == 78):  # the new row alone
        line[NEW] = at
        return True
    line[OLD] = at
    line[IS_KEY] = which == 75  # K
    if kind == 68:
        return True
    line[NEW] = after + 1
    return after < end and data[after] == 78 and row_end(data, after + 1, end) >= 0


@njit(types.int64(BYTES_IN, LONGS_IN, LONG_TABLE), cache=True)
def read_messages(data, ends, found):
    """What messages have, each in a line of `found`; the number of the first one that cannot be read, or -1.

    Shapes: ends [n + 1], where message i lies from `ends[i]` up to `ends[i + 1]`; found [n, WIDTH].
    """
    for number in range(found.shape[0]):
        begin, end = ends[number], ends[number + 1]
        if begin >= end:
            return number
        kind = data[begin]
        found[number, KIND] = kind
        if kind == 73 or kind == 85 or kind == 68:  # I, U, D
            if begin + 6 > end:
                return number
            if not read_change(data, begin, end, found[number]):
                return number
        elif kind == 66:  # B
            if begin + 21 > end:
                return number
            found[number, COMMIT_LSN] = number_at(data, begin + 1, 8)
            found[number, TIME_US] = number_at(data, begin + 9, 8) + EPOCH_US
            found[number, XID] = number_at(data, begin + 17, 4)
        elif kind == 67:  # C
            if begin + 26 > end:
                return number
            found[number, END_LSN] = number_at(data, begin + 10, 8)
        elif kind != 82 and kind != 84 and kind != 89 and kind != 79 and kind != 77:  # R, T, Y, O, M
            return number
    return -1


@njit(types.int64(BYTES_IN, LONGS_IN, LONG_TABLE, INT_TABLE), cache=True)
def read_cells(data, ats, begins, lengths):
    """The cells of rows that `read_messages` has read; the number of the first row that has another number of columns, or -1.

    Shapes: ats [n], 0 for a row that is not there; begins, lengths [columns, n].
    """
    columns = begins.shape[0]
    for row in range(ats.shape[0]):
        at = ats[row]
        if at == 0:
            for column in range(columns):
                begins[column, row], lengths[column, row] = 0, ABSENT
            continue
        if number_at(data, at, 2) != columns:
            return row
        at += 2
        for column in range(columns):
            kind = data[at]
            begins[column, row] = at + 5
            if kind == 116:
                length = number_at(data, at + 1, 4)
                lengths[column, row] = length
                at += 5 + length
            else:
                lengths[column, row] = NULL if kind == 110 else UNCHANGED
                at += 1
    return -1


@njit(types.void(BYTES_IN, LONGS_IN, INTS_IN, INTS, BYTES_OUT), cache=True)
def gather(data, begins, lengths, ends, found):
    """The bytes of cells, one behind the other. Shapes: begins, lengths [n]; ends [n + 1], as Arrow has them, filled before."""
    source, target = pointer_to(data), pointer_to(found)
    for row in range(lengths.shape[0]):
        if lengths[row] > 0:
            copy_bytes(target, np.int64(ends[row]), source, begins[row], np.int64(lengths[row]))


@njit(types.void(BYTES_IN, LONGS_IN, INTS_IN, LONGS_IN, INTS_IN, BYTES), cache=True)
def mark_different(data, begins, lengths, other_begins, other_lengths, found):
    """Mark the rows whose cells differ: `found` [n] becomes 1 there, and keeps its value elsewhere. Cells of absent rows do not count."""
    for row in range(found.shape[0]):
        length = lengths[row]
        if length == ABSENT or other_lengths[row] == ABSENT:
            continue
        if length != other_lengths[row]:
            found[row] = 1
            continue
        for at in range(length):
            if data[begins[row] + at] != data[other_begins[row] + at]:
                found[row] = 1
                break
