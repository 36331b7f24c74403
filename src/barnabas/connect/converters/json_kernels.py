"""The loops that write JSON texts, compiled by numba, in the manner of `protocol/records/encode_kernels.py`.

An object of JSON is a row of pieces: texts that all rows have, and values. The first kernel adds up the length of each row, the second one
writes a piece into all rows.

Rules
  1. Explicit signatures and `cache=True`.
  2. A piece is measured before it is written, by the same steps, so no byte is written beyond a row.
  3. A piece is (ends, data, valid): `ends` has one number more than there are rows; `valid` has a byte for each row, or is empty if no row
     is null. A null is `null`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, LONGS
from barnabas.protocol.records.pointers import POINTER, copy_bytes, pointer_to

ENDS = types.Array(types.int32, 1, "C", readonly=True)
PLAIN, QUOTED = 0, 1  # how a piece is written: as it is, or as a text with quotes and escapes
QUOTE, BACKSLASH, SPACE = 34, 92, 32
LETTERS = np.zeros(32, np.uint8)  # of short escapes
for _at, _letter in ((8, b"b"), (9, b"t"), (10, b"n"), (12, b"f"), (13, b"r")):
    LETTERS[_at] = _letter[0]
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@njit(types.int64(POINTER, types.int64, types.int64), cache=True)
def quoted_size(data, begin, end):
    """The bytes of a text with its quotes and escapes."""
    size = 2 + end - begin
    for at in range(begin, end):
        byte = data[at]
        if byte in (QUOTE, BACKSLASH):
            size += 1
        elif byte < SPACE:
            size += 1 if LETTERS[byte] else 5
    return size


@njit(types.int64(POINTER, types.int64, POINTER, types.int64, types.int64), cache=True)
def write_quoted(target, at, data, begin, end):
    """Write a text with its quotes and escapes; the place behind it."""
    target[at] = QUOTE
    at += 1
    for place in range(begin, end):
        byte = data[place]
        if byte in (QUOTE, BACKSLASH):
            target[at], target[at + 1] = BACKSLASH, byte
            at += 2
        elif byte >= SPACE:
            target[at] = byte
            at += 1
        elif LETTERS[byte]:
            target[at], target[at + 1] = BACKSLASH, LETTERS[byte]
            at += 2
        else:
            target[at], target[at + 1], target[at + 2], target[at + 3] = BACKSLASH, 117, 48, 48  # \u00
            target[at + 4], target[at + 5] = HEX[byte >> 4], HEX[byte & 15]
            at += 6
    target[at] = QUOTE
    return at + 1


@njit(types.void(ENDS, BYTES_IN, BYTES_IN, types.int64, LONGS), cache=True, nogil=True)
def add_sizes(ends, data, valid, form, sizes):
    """Add the size of a piece to that of each row. Shapes: ends [n + 1], valid [n] or [0], sizes [n]."""
    source = pointer_to(data)
    for row in range(sizes.shape[0]):
        if valid.shape[0] and not valid[row]:
            sizes[row] += 4
        elif form == QUOTED:
            sizes[row] += quoted_size(source, np.int64(ends[row]), np.int64(ends[row + 1]))
        else:
            sizes[row] += ends[row + 1] - ends[row]


@njit(types.void(ENDS, BYTES_IN, BYTES_IN, types.int64, LONGS, BYTES), cache=True, nogil=True)
def write_pieces(ends, data, valid, form, places, texts):
    """Write a piece into each row at its place, and move the places behind it."""
    source, target = pointer_to(data), pointer_to(texts)
    for row in range(places.shape[0]):
        at, begin, end = places[row], np.int64(ends[row]), np.int64(ends[row + 1])
        if valid.shape[0] and not valid[row]:
            target[at], target[at + 1], target[at + 2], target[at + 3] = 110, 117, 108, 108  # null
            places[row] = at + 4
        elif form == QUOTED:
            places[row] = write_quoted(target, at, source, begin, end)
        else:
            copy_bytes(target, at, source, begin, end - begin)
            places[row] = at + end - begin


@njit(types.void(BYTES_IN, LONGS, BYTES), cache=True, nogil=True)
def write_same(piece, places, texts):
    """Write the same bytes into each row at its place, and move the places behind them."""
    source, target, size = pointer_to(piece), pointer_to(texts), np.int64(piece.shape[0])
    for row in range(places.shape[0]):
        copy_bytes(target, places[row], source, np.int64(0), size)
        places[row] += size
