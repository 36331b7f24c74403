"""The syntax of JSON (RFC 8259) over bytes: where a value ends, and a text without its escapes.

Rules
  1. Explicit signatures and `cache=True`, as in `protocol/records/kernels.py`. Each position is compared with the end of its row before
     a byte is read.
  2. A position of -1 stands for bytes that are no JSON, or no UTF-8.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import PAIR
from barnabas.protocol.records.pointers import POINTER

MISSING, NULL, TRUE, FALSE, INT, FLOAT, TEXT, ESCAPED, OBJECT, ARRAY = range(10)  # kinds
AT = types.int64

SPACE, QUOTE, BACKSLASH, COMMA, COLON, MINUS, PLUS, POINT, ZERO, NINE = 32, 34, 92, 44, 58, 45, 43, 46, 48, 57
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 123, 125, 91, 93
AFTER_OPEN, AFTER_COMMA, AFTER_VALUE = range(3)


@njit(AT(POINTER, AT, AT), cache=True, inline="always")
def after_space(data, at, end):
    while at < end and (data[at] == SPACE or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@njit(types.int64(POINTER, AT, AT), cache=True)
def utf8_size(data, at, end):
    """Bytes of the character at `at`, which is not ASCII; 0 if it is no UTF-8."""
    first = data[at]
    if first < 0xC2 or first > 0xF4 or end - at < 2:
        return 0
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if end - at < size or data[at + 1] < low or data[at + 1] > high:
        return 0
    for i in range(2, size):
        if data[at + i] < 0x80 or data[at + i] > 0xBF:
            return 0
    return size


@njit(types.int64(types.int64), cache=True)
def hex_digit(byte):
    """-1 if it is none."""
    if 48 <= byte <= 57:
        return byte - 48
    if 65 <= byte <= 70:
        return byte - 55
    if 97 <= byte <= 102:
        return byte - 87
    return -1


@njit(PAIR(POINTER, AT, AT), cache=True)
def end_of_text(data, at, end):  # noqa: C901 - one loop over bytes; a call for each step costs more than the step
    """The position of the closing mark of the text whose first character is at `at`, -1 if it is wrong; 1 if it has escapes."""
    escapes = np.int64(0)
    while at < end:
        byte = data[at]
        if byte == QUOTE:
            return np.int64(at), escapes
        if byte == BACKSLASH:
            escapes = np.int64(1)
            if end - at < 2:
                break
            code = data[at + 1]
            if code == 117:  # u
                if end - at < 6:
                    break
                for i in range(2, 6):
                    if hex_digit(np.int64(data[at + i])) < 0:
                        return np.int64(-1), escapes
                at += 6
            elif code in (34, 92, 47, 98, 102, 110, 114, 116):
                at += 2
            else:
                break
        elif byte < 32:
            break
        elif byte < 128:
            at += 1
        else:
            size = utf8_size(data, at, end)
            if size == 0:
                break
            at += size
    return np.int64(-1), escapes


@njit(AT(POINTER, AT, AT), cache=True, inline="always")
def after_digits(data, at, end):
    while at < end and data[at] >= ZERO and data[at] <= NINE:
        at += 1
    return at


@njit(PAIR(POINTER, AT, AT), cache=True)
def after_number(data, at, end):
    """The position behind a number, -1 if there is none; its kind."""
    wrong = np.int64(-1), np.int64(MISSING)
    if at < end and data[at] == MINUS:
        at += 1
    if at >= end or data[at] < ZERO or data[at] > NINE:
        return wrong
    at = at + 1 if data[at] == ZERO else after_digits(data, at, end)
    kind = np.int64(INT)
    if at < end and data[at] == POINT:
        digits = at + 1
        at = after_digits(data, digits, end)
        if at == digits:
            return wrong
        kind = np.int64(FLOAT)
    if at < end and (data[at] == 101 or data[at] == 69):
        at += 1
        if at < end and (data[at] == PLUS or data[at] == MINUS):
            at += 1
        digits = at
        at = after_digits(data, digits, end)
        if at == digits:
            return wrong
        kind = np.int64(FLOAT)
    return np.int64(at), kind


@njit(PAIR(POINTER, AT, AT), cache=True)
def after_scalar(data, at, end):
    """The position behind a value that is neither object nor array, -1 if there is none; its kind."""
    first = data[at]
    if first == QUOTE:
        last, escapes = end_of_text(data, at + 1, end)
        return (last if last < 0 else last + 1), np.int64(TEXT) + escapes
    if first == 116 and end - at >= 4 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return np.int64(at + 4), np.int64(TRUE)
    if first == 110 and end - at >= 4 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return np.int64(at + 4), np.int64(NULL)
    if (
        first == 102
        and end - at >= 5
        and data[at + 1] == 97
        and data[at + 2] == 108
        and data[at + 3] == 115
        and data[at + 4] == 101
    ):
        return np.int64(at + 5), np.int64(FALSE)
    return after_number(data, at, end)


@njit(AT(POINTER, AT, AT, POINTER, types.int64), cache=True)
def after_container(data, at, end, stack, most):  # noqa: C901 - one loop over bytes; a call for each step costs more than the step
    """The position behind the object or array at `at`; -1 if it is wrong or nested deeper than `most`."""
    if most < 1:
        return -1
    stack[0] = data[at]
    depth, state = 1, AFTER_OPEN
    at += 1
    while True:
        at = after_space(data, at, end)
        if at >= end:
            return -1
        byte, top = data[at], stack[depth - 1]
        if state == AFTER_VALUE and byte == COMMA:
            state = AFTER_COMMA
            at += 1
            continue
        if state != AFTER_COMMA and byte == top + 2:  # a closing bracket is two behind its opening one
            depth -= 1
            at += 1
            if depth == 0:
                return at
            state = AFTER_VALUE
            continue
        if state == AFTER_VALUE:
            return -1
        if top == OPEN_OBJECT:
            if byte != QUOTE:
                return -1
            last, _ = end_of_text(data, at + 1, end)
            if last < 0:
                return -1
            at = after_space(data, last + 1, end)
            if at >= end or data[at] != COLON:
                return -1
            at = after_space(data, at + 1, end)
            if at >= end:
                return -1
            byte = data[at]
        if byte in (OPEN_OBJECT, OPEN_ARRAY):
            if depth >= most:
                return -1
            stack[depth] = byte
            depth += 1
            at += 1
            state = AFTER_OPEN
        else:
            at, _ = after_scalar(data, at, end)
            if at < 0:
                return -1
            state = AFTER_VALUE


@njit(PAIR(POINTER, AT, AT, POINTER, types.int64), cache=True)
def after_value(data, at, end, stack, most):
    """The position behind any value, -1 if it is wrong; its kind."""
    if at >= end:
        return np.int64(-1), np.int64(MISSING)
    if data[at] == OPEN_OBJECT:
        return np.int64(after_container(data, at, end, stack, most)), np.int64(OBJECT)
    if data[at] == OPEN_ARRAY:
        return np.int64(after_container(data, at, end, stack, most)), np.int64(ARRAY)
    return after_scalar(data, at, end)


@njit(types.int64(POINTER, types.int64, types.int64), cache=True)
def write_utf8(out, at, code):
    """Write a character; the position behind it."""
    if code < 0x80:
        out[at] = np.uint8(code)
        return at + 1
    if code < 0x800:
        out[at] = np.uint8(0xC0 | (code >> 6))
        out[at + 1] = np.uint8(0x80 | (code & 0x3F))
        return at + 2
    if code < 0x10000:
        out[at] = np.uint8(0xE0 | (code >> 12))
        out[at + 1] = np.uint8(0x80 | ((code >> 6) & 0x3F))
        out[at + 2] = np.uint8(0x80 | (code & 0x3F))
        return at + 3
    out[at] = np.uint8(0xF0 | (code >> 18))
    out[at + 1] = np.uint8(0x80 | ((code >> 12) & 0x3F))
    out[at + 2] = np.uint8(0x80 | ((code >> 6) & 0x3F))
    out[at + 3] = np.uint8(0x80 | (code & 0x3F))
    return at + 4


@njit(types.int64(POINTER, AT), cache=True)
def hex_number(data, at):
    """The number of four hexadecimal digits, which are there."""
    value = np.int64(0)
    for i in range(4):
        value = value * 16 + hex_digit(np.int64(data[at + i]))
    return value


@njit(types.int64(POINTER, AT, AT, POINTER, types.int64), cache=True)
def unescape(data, at, end, out, to):
    """Write a valid text without its escapes, never longer than with them; the position behind it, -1 for half of a surrogate pair."""
    while at < end:
        byte = data[at]
        if byte != BACKSLASH:
            out[to] = byte
            to += 1
            at += 1
            continue
        code = data[at + 1]
        if code != 117:
            at += 2
            if code == 98:
                code = np.uint8(8)
            elif code == 102:
                code = np.uint8(12)
            elif code == 110:
                code = np.uint8(10)
            elif code == 114:
                code = np.uint8(13)
            elif code == 116:
                code = np.uint8(9)
            out[to] = code
            to += 1
            continue
        number = hex_number(data, at + 2)
        at += 6
        if 0xD800 <= number <= 0xDFFF:
            if number > 0xDBFF or end - at < 6 or data[at] != BACKSLASH or data[at + 1] != 117:
                return -1
            low = hex_number(data, at + 2)
            if low < 0xDC00 or low > 0xDFFF:
                return -1
            number = 0x10000 + ((number - 0xD800) << 10) + (low - 0xDC00)
            at += 6
        to = write_utf8(out, to, number)
    return to
