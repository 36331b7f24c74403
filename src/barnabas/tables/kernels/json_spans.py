"""Finds the values of an object, an array or a map in a buffer of JSON.

A span is a kind, a begin and an end. Spans of texts are without their quotation marks.

Rules
  1. A row is taken only if it is valid JSON of the expected form. Any other row is left for `json_values`, which knows the reason: its
     state becomes `LATER`. So is a row that is valid and rare, such as one nested deeper than `most`.
  2. Of members with the same name the last one counts.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS
from barnabas.protocol.records.pointers import POINTER, pointer_to
from barnabas.tables.kernels.json_syntax import (
    AT,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    ESCAPED,
    NULL,
    OPEN_OBJECT,
    QUOTE,
    TEXT,
    after_scalar,
    after_space,
    after_value,
    end_of_text,
    unescape,
)

TAKEN, ABSENT, LATER = range(3)  # states of a row; an absent row is null
KEY_ROOM = 256  # bytes of a name with escapes
NAME_SLOTS = 256
ORDINALS = 64  # members whose column is guessed from the row before
MANY_NAMES = 64  # of a map; those of a larger one are not compared with each other

INTS_IN, INTS_AT = types.Array(types.int32, 1, "C", readonly=True), types.CPointer(types.int32)
KINDS = types.Array(types.uint8, 2, "C")
SPANS = types.Array(types.int32, 2, "C")


@njit(types.boolean(POINTER, AT, POINTER, AT, types.int64), cache=True, inline="always")
def are_same(one, at, other, begin, size):
    for i in range(size):  # noqa: SIM110 - numba has no generators
        if one[at + i] != other[begin + i]:
            return False
    return True


@njit(types.boolean(POINTER, INTS_AT, INTS_AT, AT, AT), cache=True)
def has_same_texts(data, begins, ends, first, last):
    """Whether two of the spans from `first` up to `last` have the same bytes; also true for more than `MANY_NAMES`."""
    if last - first > MANY_NAMES:
        return True
    for one in range(first, last):
        at, size = np.int64(begins[one]), np.int64(ends[one] - begins[one])
        for other in range(first, one):
            if size == ends[other] - begins[other] and are_same(data, at, data, np.int64(begins[other]), size):
                return True
    return False


@njit(types.int64(POINTER, AT, AT), cache=True, inline="always")
def slot_of(data, begin, end):
    """A number below `NAME_SLOTS` for a name."""
    if begin == end:
        return np.int64(0)
    return np.int64(
        (np.uint32(end - begin) * np.uint32(7) + np.uint32(data[begin]) * np.uint32(31) + np.uint32(data[end - 1])) & 255
    )


@njit(types.boolean(POINTER, AT, AT, POINTER, INTS_AT, AT), cache=True, inline="always")
def is_named(data, begin, end, names, name_ends, column):
    at = np.int64(name_ends[column])
    return name_ends[column + 1] - at == end - begin and are_same(names, at, data, begin, end - begin)


@njit(types.int64(POINTER, AT, AT, POINTER, INTS_AT, INTS_AT, INTS_AT), cache=True)
def column_of(data, begin, end, names, name_ends, first, following):
    """The column with this name, -1 if there is none."""
    column = np.int64(first[slot_of(data, begin, end)])
    while column >= 0:
        if is_named(data, begin, end, names, name_ends, column):
            return column
        column = np.int64(following[column])
    return np.int64(-1)


@njit(types.void(BYTES, INTS, INTS, INTS), cache=True)
def index_names(names, name_ends, first, following):
    """Fill the table by which `column_of` finds a name. Arrays are int32[NAME_SLOTS] and int32[columns], both of -1."""
    data = pointer_to(names)
    for column in range(following.shape[0]):
        slot = slot_of(data, name_ends[column], name_ends[column + 1])
        following[column] = first[slot]
        first[slot] = column


@njit(
    types.void(
        BYTES_IN, INTS_IN, INTS_IN, BYTES,  # data; begin, end and state of the rows
        BYTES, INTS, INTS, INTS,  # names, as `index_names` has them
        KINDS, SPANS, SPANS, types.int64,  # spans of the columns, [columns, rows], kinds all MISSING; most levels
    ),
    cache=True, nogil=True,
)  # fmt: skip
def scan_objects(data, begins, ends, states, names, name_ends, first, following, kinds, span_begins, span_ends, most):  # noqa: C901 - one loop over bytes
    """The members of the objects in rows that are TAKEN, as spans of columns; `null` is an absent row."""
    source, names_at, ends_at = pointer_to(data), pointer_to(names), pointer_to(name_ends)
    first_at, following_at = pointer_to(first), pointer_to(following)
    stack_array, key_array = np.empty(max(most, 1), np.uint8), np.empty(KEY_ROOM, np.uint8)
    stack, key = pointer_to(stack_array), pointer_to(key_array)
    guesses = np.full(ORDINALS, -1, np.int64)
    for row in range(states.shape[0]):
        if states[row] != TAKEN:
            continue
        states[row] = LATER  # unless the row comes to its end
        end = np.int64(ends[row])
        at = after_space(source, np.int64(begins[row]), end)
        if at >= end or source[at] != OPEN_OBJECT:
            if at < end:
                at, kind = after_scalar(source, at, end)
                if kind == NULL and at > 0 and after_space(source, at, end) == end:
                    states[row] = ABSENT
            continue
        at = after_space(source, at + 1, end)
        is_whole = at < end and source[at] == CLOSE_OBJECT
        ordinal = 0
        while not is_whole:
            if at >= end or source[at] != QUOTE:
                break
            name = at + 1
            name_end, escapes = end_of_text(source, name, end)
            if name_end < 0:
                break
            at = after_space(source, name_end + 1, end)
            if at >= end or source[at] != COLON:
                break
            begin = after_space(source, at + 1, end)
            at, kind = after_value(source, begin, end, stack, most - 1)
            if at < 0:
                break
            column = np.int64(-1)
            if escapes == 1:
                if name_end - name > KEY_ROOM:
                    break
                size = unescape(source, name, name_end, key, 0)
                if size >= 0:
                    column = column_of(key, 0, size, names_at, ends_at, first_at, following_at)
            else:
                place = min(ordinal, ORDINALS - 1)
                column = guesses[place]
                if column < 0 or not is_named(source, name, name_end, names_at, ends_at, column):
                    column = column_of(source, name, name_end, names_at, ends_at, first_at, following_at)
                    guesses[place] = column
            if column >= 0:
                inner = np.int64(kind in (TEXT, ESCAPED))
                kinds[column, row] = kind
                span_begins[column, row] = begin + inner
                span_ends[column, row] = at - inner
            ordinal += 1
            at = after_space(source, at, end)
            if at >= end:
                break
            if source[at] == CLOSE_OBJECT:
                is_whole = True
            elif source[at] == COMMA:
                at = after_space(source, at + 1, end)
            else:
                break
        if is_whole and after_space(source, at + 1, end) == end:
            states[row] = TAKEN


@njit(types.void(BYTES_IN, INTS_IN, INTS_IN, BYTES, BYTES, INTS, INTS, types.int64), cache=True, nogil=True)
def scan_values(data, begins, ends, states, kinds, value_begins, value_ends, most):
    """The value that is the whole of a row, for rows that are TAKEN; `null` is left for later."""
    source = pointer_to(data)
    stack_array = np.empty(max(most, 1), np.uint8)
    stack = pointer_to(stack_array)
    for row in range(states.shape[0]):
        if states[row] != TAKEN:
            continue
        end = np.int64(ends[row])
        begin = after_space(source, np.int64(begins[row]), end)
        at, kind = after_value(source, begin, end, stack, most)
        if at < 0 or kind == NULL or after_space(source, at, end) != end:
            states[row] = LATER
            continue
        inner = np.int64(kind in (TEXT, ESCAPED))
        kinds[row] = kind
        value_begins[row] = begin + inner
        value_ends[row] = at - inner


@njit(
    types.int64(
        BYTES_IN, INTS_IN, INTS_IN, BYTES,  # data; begin, end and state of the rows
        INTS, BYTES, INTS, INTS, BYTES, INTS, INTS,  # ends of the lists, spans of their items, spans of their keys
        types.int64, types.int64, types.int64,  # the opening bracket, most levels, most items of a row
    ),
    cache=True, nogil=True,
)  # fmt: skip
def split(  # noqa: C901 - one loop over bytes
    data,
    begins,
    ends,
    states,
    list_ends,
    kinds,
    item_begins,
    item_ends,
    key_kinds,
    key_begins,
    key_ends,
    bracket,
    most,
    most_items,
):
    """The items of valid arrays, or the items and keys of valid objects, as spans; how many there are.

    An object with a name twice, or with more than one name and escapes in one, is left for later.
    """
    source = pointer_to(data)
    stack_array = np.empty(max(most, 1), np.uint8)
    stack = pointer_to(stack_array)
    count = np.int64(0)
    list_ends[0] = 0
    for row in range(states.shape[0]):
        first = count
        if states[row] == TAKEN:
            end = np.int64(ends[row])
            at = after_space(source, np.int64(begins[row]) + 1, end)
            is_whole = at < end and source[at] == bracket + 2
            is_odd = False
            while not is_whole:
                if bracket == OPEN_OBJECT:
                    if at >= end or source[at] != QUOTE:
                        break
                    key_begins[count] = at + 1
                    last, escapes = end_of_text(source, at + 1, end)
                    if last < 0:
                        break
                    key_ends[count] = last
                    key_kinds[count] = TEXT + escapes
                    is_odd |= escapes == 1
                    at = after_space(source, last + 1, end)
                    if at >= end or source[at] != COLON:
                        break
                    at = after_space(source, at + 1, end)
                begin = at
                at, kind = after_value(source, begin, end, stack, most)
                if at < 0 or count - first == most_items:
                    break
                inner = np.int64(kind in (TEXT, ESCAPED))
                kinds[count] = kind
                item_begins[count] = begin + inner
                item_ends[count] = at - inner
                count += 1
                at = after_space(source, at, end)
                if at >= end:
                    break
                if source[at] == bracket + 2:
                    is_whole = True
                elif source[at] == COMMA:
                    at = after_space(source, at + 1, end)
                else:
                    break
            if is_whole and bracket == OPEN_OBJECT and count - first > 1:
                is_whole = not is_odd and not has_same_texts(source, pointer_to(key_begins), pointer_to(key_ends), first, count)
            if not is_whole:
                states[row] = LATER
                count = first
        list_ends[row + 1] = count
    return count
