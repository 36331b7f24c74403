"""Makes the buffers of Arrow columns from spans of JSON values, as `json_values` does it for single ones.

Rules
  1. Every kernel takes the spans of one column and the states of the rows. The state of a row whose value is wrong, or right and rare,
     becomes LATER; the value of a row that is not TAKEN is null.
  2. `valid` is a bitmap of zeros at the start. A kernel returns the number of nulls.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS
from barnabas.protocol.records.pointers import POINTER, copy_bytes, pointer_to
from barnabas.tables.kernels.json_spans import LATER, TAKEN
from barnabas.tables.kernels.json_syntax import (
    AT,
    ESCAPED,
    FALSE,
    FLOAT,
    INT,
    MINUS,
    MISSING,
    NULL,
    POINT,
    TEXT,
    TRUE,
    ZERO,
    after_number,
    unescape,
)

AS_TEXT, AS_JSON, AS_FLOAT = range(3)  # ways of `gather`
MOST_FLOAT_BYTES = 40  # of a number that `gather` takes; with two digits in the exponent it is within the range of a double
MOST_DIGITS = 18  # of a decimal; they fit 63 bits
UUID_BYTES = 36
PARTS = types.UniTuple(types.int64, 3)
WIDE = types.UniTuple(types.uint64, 2)
POWERS = 10 ** np.arange(19, dtype=np.int64)


@njit(types.int64(BYTES, BYTES, BYTES, BYTES), cache=True, nogil=True)
def to_bits(kinds, states, out, valid):
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        kind = kinds[row]
        if states[row] == TAKEN and kind in (TRUE, FALSE):
            valid[row >> 3] |= np.uint8(1 << (row & 7))
            if kind == TRUE:
                out[row >> 3] |= np.uint8(1 << (row & 7))
            continue
        nulls += 1
        if states[row] == TAKEN and kind != NULL and kind != MISSING:
            states[row] = LATER
    return nulls


@njit(PARTS(POINTER, AT, AT), cache=True)
def whole_number(data, at, end):
    """1, the value's amount as bits of a uint64, and whether it is negative; 0 if it is no whole number of up to 19 digits.

    The text is a number of JSON. A fraction of zeros is taken."""
    negative = np.int64(data[at] == MINUS)
    at += negative
    amount, digits = np.uint64(0), 0
    while at < end and data[at] >= ZERO and data[at] <= 57:
        amount = amount * np.uint64(10) + np.uint64(data[at] - ZERO)
        digits += 1
        at += 1
    if digits > 19:
        return np.int64(0), np.int64(0), negative
    if at < end and data[at] == POINT:
        at += 1
        while at < end and data[at] == ZERO:
            at += 1
    return np.int64(at == end), np.int64(amount), negative


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, types.int64, types.int64, LONGS, BYTES), cache=True, nogil=True)
def to_ints(data, kinds, begins, ends, states, low, high, out, valid):
    """Whole numbers from low to high."""
    source = pointer_to(data)
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        out[row] = 0
        kind = kinds[row]
        if states[row] == TAKEN and kind in (INT, FLOAT):
            is_whole, value, negative = whole_number(source, np.int64(begins[row]), np.int64(ends[row]))
            if is_whole == 1 and value >= 0:  # not beyond 63 bits
                value = -value if negative == 1 else value
                if low <= value <= high:
                    out[row] = value
                    valid[row >> 3] |= np.uint8(1 << (row & 7))
                    continue
        nulls += 1
        if states[row] == TAKEN and kind != NULL and kind != MISSING:
            states[row] = LATER
    return nulls


@njit(WIDE(types.uint64, types.uint64), cache=True)
def product(one, other):
    """The high and the low half of a product."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    low = (one & mask) * (other & mask)
    cross = (one >> half) * (other & mask) + (low >> half)
    other_cross = (one & mask) * (other >> half) + (cross & mask)
    high = (one >> half) * (other >> half) + (cross >> half) + (other_cross >> half)
    return high, (other_cross << half) | (low & mask)


@njit(PARTS(POINTER, AT, AT), cache=True)
def decimal_number(data, at, end):
    """The amount, its digits, and how many of them are a fraction; -1 digits for a number with an exponent or too many of them."""
    amount, digits, fraction = np.int64(0), np.int64(0), np.int64(0)
    in_fraction = False
    if data[at] == MINUS:
        at += 1
    while at < end:
        byte = data[at]
        at += 1
        if byte == POINT:
            in_fraction = True
            continue
        if byte < ZERO or byte > 57 or digits == MOST_DIGITS:
            return amount, np.int64(-1), fraction
        amount = amount * 10 + np.int64(byte - ZERO)
        digits += amount > 0
        fraction += in_fraction
        if fraction > MOST_DIGITS:
            return amount, np.int64(-1), fraction
    return amount, digits, fraction


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, types.int64, types.int64, LONGS, BYTES), cache=True, nogil=True)
def to_decimals(data, kinds, begins, ends, states, digits, scale, out, valid):
    """Decimals of 128 bits, two longs each, the low half first."""
    source = pointer_to(data)
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        out[2 * row] = 0
        out[2 * row + 1] = 0
        kind = kinds[row]
        if states[row] == TAKEN and kind in (INT, FLOAT, TEXT):
            begin, end = np.int64(begins[row]), np.int64(ends[row])
            behind = end
            if kind == TEXT:
                behind, _ = after_number(source, begin, end)
            if behind == end:
                amount, found, fraction = decimal_number(source, begin, end)
                more = scale - fraction
                if found >= 0 and 0 <= more <= MOST_DIGITS and (amount == 0 or found + more <= digits):
                    high, low = product(np.uint64(amount), np.uint64(POWERS[more]))
                    if source[begin] == MINUS:
                        low = ~low + np.uint64(1)
                        high = ~high + np.uint64(low == np.uint64(0))
                    out[2 * row] = np.int64(low)
                    out[2 * row + 1] = np.int64(high)
                    valid[row >> 3] |= np.uint8(1 << (row & 7))
                    continue
        nulls += 1
        if states[row] == TAKEN and kind != NULL and kind != MISSING:
            states[row] = LATER
    return nulls


@njit(types.boolean(POINTER, AT, AT), cache=True)
def is_small_number(data, at, end):
    """Whether a number is short and has at most two digits in its exponent."""
    if end - at > MOST_FLOAT_BYTES:
        return False
    for i in range(at, end):
        if data[i] == 101 or data[i] == 69:
            i += 1
            if data[i] == 43 or data[i] == MINUS:
                i += 1
            return end - i <= 2
    return True


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, types.int64, INTS, BYTES, BYTES), cache=True, nogil=True)
def gather(data, kinds, begins, ends, states, way, out_ends, out, valid):
    """Texts behind each other. `out` has room for all spans and two bytes more for each row.

    AS_TEXT: the text that a value is, and the JSON of any other. AS_JSON: the JSON of each value. AS_FLOAT: the JSON of numbers, which
    can be read as doubles.
    """
    source, to = pointer_to(data), pointer_to(out)
    nulls, at = np.int64(0), np.int64(0)
    out_ends[0] = 0
    for row in range(states.shape[0]):
        kind = kinds[row]
        if states[row] == TAKEN and kind != NULL and kind != MISSING:
            begin, end = np.int64(begins[row]), np.int64(ends[row])
            is_text = kind in (TEXT, ESCAPED)
            behind = np.int64(-1)
            if way == AS_TEXT and kind == ESCAPED:
                behind = unescape(source, begin, end, to, at)
            elif way != AS_FLOAT or (kind in (INT, FLOAT) and is_small_number(source, begin, end)):
                if way == AS_JSON and is_text:
                    begin -= 1
                    end += 1
                copy_bytes(to, at, source, begin, end - begin)
                behind = at + end - begin
            if behind >= 0:
                at = behind
                valid[row >> 3] |= np.uint8(1 << (row & 7))
                out_ends[row + 1] = at
                continue
            states[row] = LATER
        nulls += 1
        out_ends[row + 1] = at
    return nulls


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, INTS, BYTES, BYTES), cache=True, nogil=True)
def to_uuids(data, kinds, begins, ends, states, out_ends, out, valid):
    """UUIDs as texts in lower case."""
    source = pointer_to(data)
    nulls, at = np.int64(0), np.int64(0)
    out_ends[0] = 0
    for row in range(states.shape[0]):
        kind = kinds[row]
        if states[row] == TAKEN and kind != NULL and kind != MISSING:
            begin = np.int64(begins[row])
            fits = kind == TEXT and ends[row] - begin == UUID_BYTES
            if fits:
                for i in range(UUID_BYTES):
                    byte = source[begin + i]
                    if i == 8 or i == 13 or i == 18 or i == 23:
                        fits &= byte == MINUS
                    else:
                        fits &= (48 <= byte <= 57) or (65 <= byte <= 70) or (97 <= byte <= 102)
                        byte |= np.uint8(0x20)  # digits have this bit
                    out[at + i] = byte
            if fits:
                at += UUID_BYTES
                valid[row >> 3] |= np.uint8(1 << (row & 7))
                out_ends[row + 1] = at
                continue
            states[row] = LATER
        nulls += 1
        out_ends[row + 1] = at
    return nulls


@njit(types.int64(types.int64), cache=True)
def base64_digit(byte):
    """-1 if it is none."""
    if 65 <= byte <= 90:
        return byte - 65
    if 97 <= byte <= 122:
        return byte - 71
    if 48 <= byte <= 57:
        return byte + 4
    return 62 if byte == 43 else 63 if byte == 47 else -1


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, INTS, BYTES, BYTES), cache=True, nogil=True)
def to_binary(data, kinds, begins, ends, states, out_ends, out, valid):
    """The bytes of base64 texts."""
    source = pointer_to(data)
    nulls, at = np.int64(0), np.int64(0)
    out_ends[0] = 0
    for row in range(states.shape[0]):
        kind = kinds[row]
        if states[row] == TAKEN and kind != NULL and kind != MISSING:
            begin, end = np.int64(begins[row]), np.int64(ends[row])
            fits = kind == TEXT and (end - begin) % 4 == 0
            to = at
            for group in range(begin, end, 4):
                if not fits:
                    break
                pad = 0
                if group + 4 == end and source[end - 1] == 61:
                    pad = 2 if source[end - 2] == 61 else 1
                bits = np.int64(0)
                for i in range(4 - pad):
                    digit = base64_digit(np.int64(source[group + i]))
                    fits &= digit >= 0
                    bits = (bits << 6) | (digit & 63)
                bits <<= 6 * pad
                for i in range(3 - pad):
                    out[to] = np.uint8((bits >> (16 - 8 * i)) & 255)
                    to += 1
            if fits:
                at = to
                valid[row >> 3] |= np.uint8(1 << (row & 7))
                out_ends[row + 1] = at
                continue
            states[row] = LATER
        nulls += 1
        out_ends[row + 1] = at
    return nulls
