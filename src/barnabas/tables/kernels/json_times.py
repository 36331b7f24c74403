"""Dates and times from spans of JSON values, as `iso_times` reads them."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS, PAIR
from barnabas.protocol.records.pointers import POINTER, pointer_to
from barnabas.tables.kernels.json_convert import settle, whole_number
from barnabas.tables.kernels.json_spans import TAKEN
from barnabas.tables.kernels.json_syntax import AT, INT, TEXT, after_digits

DATE, TIME, TIMESTAMP = range(3)
DAY_US = 86_400_000_000
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
NONE = -(2**63)
MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


@njit(types.int64(POINTER, AT, AT, types.int64), cache=True)
def digits_at(data, at, end, count):
    """A number of exactly so many digits; -1 if they are not there."""
    if end - at < count:
        return -1
    value = np.int64(0)
    for i in range(at, at + count):
        if data[i] < 48 or data[i] > 57:
            return -1
        value = value * 10 + np.int64(data[i] - 48)
    return value


@njit(types.int64(POINTER, AT, AT), cache=True)
def date_at(data, at, end):
    """Days since 1970 of the ten characters of a date; NONE."""
    if end - at < 10 or data[at + 4] != 45 or data[at + 7] != 45:
        return NONE
    year, month, day = digits_at(data, at, end, 4), digits_at(data, at + 5, end, 2), digits_at(data, at + 8, end, 2)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return NONE
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > MONTH_DAYS[month] + (month == 2 and is_leap):
        return NONE
    from_march = (month + 9) % 12
    since_march = year - (month <= 2)  # years that begin in March end with the leap day
    return (
        since_march * 365
        + since_march // 4
        - since_march // 100
        + since_march // 400
        + (153 * from_march + 2) // 5
        + day
        - 719_469
    )


@njit(PAIR(POINTER, AT, AT), cache=True)
def time_at(data, at, end):
    """Microseconds since midnight and the position behind the time; NONE."""
    none = np.int64(NONE), np.int64(at)
    if end - at < 5 or data[at + 2] != 58:
        return none
    hours, minutes, seconds, micros = digits_at(data, at, end, 2), digits_at(data, at + 3, end, 2), np.int64(0), np.int64(0)
    at += 5
    if at < end and data[at] == 58:
        seconds = digits_at(data, at + 1, end, 2)
        at += 3
        if at < end and data[at] == 46:
            behind = after_digits(data, at + 1, end)
            if behind == at + 1:
                return none
            kept = min(behind - at - 1, 6)
            micros = digits_at(data, at + 1, end, kept)
            for _ in range(6 - kept):
                micros *= 10
            at = behind
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59 or seconds < 0 or seconds > 59:
        return none
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros, np.int64(at)


@njit(types.int64(POINTER, AT, AT), cache=True)
def timestamp_at(data, at, end):
    """Microseconds since 1970; NONE."""
    days = date_at(data, at, end)
    if days == NONE:
        return NONE
    at += 10
    if at == end:
        return days * DAY_US
    if data[at] != 84 and data[at] != 116 and data[at] != 32:
        return NONE
    within, at = time_at(data, at + 1, end)
    if within == NONE:
        return NONE
    value = days * DAY_US + within
    if at < end and (data[at] == 90 or data[at] == 122):
        at += 1
    elif at < end:
        sign = np.int64(data[at])
        hours, minutes = digits_at(data, at + 1, end, 2), np.int64(0)
        at += 3
        if at < end:
            at += data[at] == 58
            minutes = digits_at(data, at, end, 2)
            at += 2
        if (sign != 43 and sign != 45) or hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return NONE
        shift = (hours * 60 + minutes) * 60_000_000
        value += shift if sign == 45 else -shift
    return value if at == end and FIRST_US <= value <= LAST_US else NONE


@njit(types.int64(POINTER, AT, AT, types.int64), cache=True)
def moment_of_text(data, at, end, what):
    if what == DATE:
        return date_at(data, at, end) if end - at == 10 else NONE
    if what == TIME:
        value, behind = time_at(data, at, end)
        return value if behind == end else NONE
    return timestamp_at(data, at, end)


@njit(types.int64(POINTER, AT, AT, types.int64), cache=True)
def moment_of_millis(data, at, end, what):
    is_whole, millis, negative = whole_number(data, at, end)
    if is_whole == 0 or millis < 0 or millis > LAST_US // 1000:
        return NONE
    value = -millis * 1000 if negative == 1 else millis * 1000
    if value < FIRST_US:
        return NONE
    if what == TIME:
        return value if 0 <= value < DAY_US else NONE
    return value // DAY_US if what == DATE else value


@njit(types.int64(BYTES_IN, BYTES, INTS, INTS, BYTES, types.int64, LONGS, BYTES), cache=True, nogil=True)
def to_moments(data, kinds, begins, ends, states, what, out, valid):
    """Days, or microseconds since midnight or 1970."""
    source = pointer_to(data)
    kinds_at, states_at, valid_at = pointer_to(kinds), pointer_to(states), pointer_to(valid)
    nulls = np.int64(0)
    for row in range(states.shape[0]):
        value = np.int64(NONE)
        if states[row] == TAKEN and kinds[row] == TEXT:
            value = moment_of_text(source, np.int64(begins[row]), np.int64(ends[row]), what)
        elif states[row] == TAKEN and kinds[row] == INT:
            value = moment_of_millis(source, np.int64(begins[row]), np.int64(ends[row]), what)
        out[row] = 0 if value == NONE else value
        nulls += settle(value != NONE, kinds_at, states_at, valid_at, row)
    return nulls
