"""Makes the buffers of Arrow columns from spans of JSON values, as `json_values` does it for single ones.

Rules
  1. Every kernel takes the spans of one column and the states of the rows. The state of a row whose value is wrong, or right and rare,
     becomes LATER; the value of a row that is not TAKEN is null.
  2. `valid` is a bitmap of zeros at the start. A kernel returns the number of nulls.
  3. Helpers take pointers. An array would have its reference count changed for each row, also by a helper that is inlined.
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

AS_TEXT, AS_JSON, AS_FLOAT, AS_UUID, AS_BYTES = range(5)  # ways of `gather`
MOST_FLOAT_BYTES = 40  # of a number that `gather` takes; with two digits in the exponent it is within the range of a double
MOST_DIGITS = 18  # of a decimal; they fit 63 bits
UUID_BYTES = 36
PARTS = types.UniTuple(types.int64, 3)
WIDE = types.UniTuple(types.uint64, 2)
POWERS = 10 ** np.arange(19, dtype=np.int64)


@njit(types.boolean(POINTER, POINTER, AT), cache=True, inline="always")
def has_value(kinds, states, row):
    return states[row] == TAKEN and kinds[row] != NULL and kinds[row] != MISSING


@njit(types.int64(types.boolean, POINTER, POINTER, POINTER, AT), cache=True, inline="always")
def settle(fits, kinds, states, valid, row):
    """Mark a row whose value fits as valid, and leave a row with another value for later; 1 if the row is null."""
    if fits:
        valid[row >> 3] |= np.uint8(1 << (row & 7))
        return 0
    if has_value(kinds, states, row):
        states[row] = LATER
    return 1


@njit(types.int64(BYTES, BYTES, BYTES, BYTES), cache=True, nogil=True)
def to_bits(kinds, states, out, valid):
    kinds_at, states_at, valid_at = pointer_to(kinds), pointer_to(states), pointer_to(valid)
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        kind = kinds[row]
        fits = states[row] == TAKEN and kind in (TRUE, FALSE)
        if fits and kind == TRUE:
            out[row >> 3] |= np.uint8(1 << (row & 7))
        nulls += settle(fits, kinds_at, states_at, valid_at, row)
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
    kinds_at, states_at, valid_at = pointer_to(kinds), pointer_to(states), pointer_to(valid)
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        out[row] = 0
        kind, fits = kinds[row], False
        if states[row] == TAKEN and kind in (INT, FLOAT):
            is_whole, value, negative = whole_number(source, np.int64(begins[row]), np.int64(ends[row]))
            fits = is_whole == 1 and value >= 0  # not beyond 63 bits
            value = -value if negative == 1 else value
            fits &= low <= value <= high
            if fits:
                out[row] = value
        nulls += settle(fits, kinds_at, states_at, valid_at, row)
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
    kinds_at, states_at, valid_at = pointer_to(kinds), pointer_to(states), pointer_to(valid)
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        out[2 * row] = 0
        out[2 * row + 1] = 0
        kind, fits = kinds[row], False
        begin, end = np.int64(begins[row]), np.int64(ends[row])
        is_number = kind in (INT, FLOAT) or (kind == TEXT and after_number(source, begin, end)[0] == end)
        if states[row] == TAKEN and is_number:
            amount, found, fraction = decimal_number(source, begin, end)
            more = scale - fraction
            fits = found >= 0 and 0 <= more <= MOST_DIGITS and (amount == 0 or found + more <= digits)
            if fits:
                high, low = product(np.uint64(amount), np.uint64(POWERS[more]))
                if source[begin] == MINUS:
                    low = ~low + np.uint64(1)
                    high = ~high + np.uint64(low == np.uint64(0))
                out[2 * row] = np.int64(low)
                out[2 * row + 1] = np.int64(high)
        nulls += settle(fits, kinds_at, states_at, valid_at, row)
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


@njit(AT(POINTER, AT, AT, POINTER, AT), cache=True)
def write_uuid(data, begin, end, out, at):
    """Write a UUID in lower case; the position behind it, -1 if it is none."""
    if end - begin != UUID_BYTES:
        return -1
    fits = True
    for i in range(UUID_BYTES):
        byte = data[begin + i]
        if i == 8 or i == 13 or i == 18 or i == 23:
            fits &= byte == MINUS
        else:
            fits &= (48 <= byte <= 57) or (65 <= byte <= 70) or (97 <= byte <= 102)
            byte |= np.uint8(0x20)  # digits have this bit
        out[at + i] = byte
    return at + UUID_BYTES if fits else -1


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


@njit(AT(POINTER, AT, AT, POINTER, AT), cache=True)
def write_base64(data, begin, end, out, at):
    """Write the bytes of a text in base64; the position behind them, -1 if it is none."""
    if (end - begin) % 4 != 0:
        return -1
    for group in range(begin, end, 4):
        pad = 0
        if group + 4 == end and data[end - 1] == 61:
            pad = 2 if data[end - 2] == 61 else 1
        bits = np.int64(0)
        for i in range(4 - pad):
            digit = base64_digit(np.int64(data[group + i]))
            if digit < 0:
                return -1
            bits = (bits << 6) | digit
        bits <<= 6 * pad
        for i in range(3 - pad):
            out[at] = np.uint8((bits >> (16 - 8 * i)) & 255)
            at += 1
    return at


@njit(AT(POINTER, AT, AT, AT, types.int64, POINTER, AT), cache=True)
def write_value(data, begin, end, kind, way, out, at):
    """Write a value in a way of `gather`, never longer than its span and two bytes; the position behind it, -1 if it does not fit."""
    if way == AS_TEXT and kind == ESCAPED:
        return unescape(data, begin, end, out, at)
    if way == AS_UUID:
        return write_uuid(data, begin, end, out, at) if kind == TEXT else -1
    if way == AS_BYTES:
        return write_base64(data, begin, end, out, at) if kind == TEXT else -1
    if way == AS_FLOAT and not (kind in (INT, FLOAT) and is_small_number(data, begin, end)):
        return -1
    if way == AS_JSON and kind in (TEXT, ESCAPED):
        begin -= 1
        end += 1
    copy_bytes(out, at, data, begin, end - begin)
    return at + end - begin


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, types.int64, INTS, BYTES, BYTES), cache=True, nogil=True)
def gather(data, kinds, begins, ends, states, way, out_ends, out, valid):
    """Texts or bytes behind each other. `out` has room for all spans and two bytes more for each row.

    AS_TEXT: the text that a value is, and the JSON of any other. AS_JSON: the JSON of each value. AS_FLOAT: the JSON of numbers, which
    can be read as doubles. AS_UUID: UUIDs in lower case. AS_BYTES: the bytes of base64.
    """
    source, to = pointer_to(data), pointer_to(out)
    kinds_at, states_at, valid_at = pointer_to(kinds), pointer_to(states), pointer_to(valid)
    nulls, at = np.int64(0), np.int64(0)
    out_ends[0] = 0
    for row in range(states.shape[0]):
        behind = np.int64(-1)
        if has_value(kinds_at, states_at, row):
            behind = write_value(source, np.int64(begins[row]), np.int64(ends[row]), np.int64(kinds[row]), way, to, at)
        at = max(at, behind)
        out_ends[row + 1] = at
        nulls += settle(behind >= 0, kinds_at, states_at, valid_at, row)
    return nulls
