"""The loops that encode Arrow columns as records, compiled by numba: the partition of a key, and the bytes of a batch's
records.

Importing this module imports numpy and numba, which are extras; the pipelines do.

Rules
  1. Explicit signatures and `cache=True`, as in `kernels`.
  2. A kernel measures a record before it writes it, so no byte is written beyond the given space.
  3. A column is (ends, data, valid): `ends` has one number more than there are rows and begins with the start of the first
     value; `valid` has a byte for each row, or is empty if no row is null. A missing column has an empty `ends`.

Ugly: optional columns are empty arrays, since a kernel with an explicit signature cannot take None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS, varint_size, write_varint
from barnabas.protocol.records.pointers import POINTER, copy_bytes, pointer_to

INTS_IN = types.Array(types.int32, 1, "C", readonly=True)
LONGS_IN = types.Array(types.int64, 1, "C", readonly=True)

# Slots of `state`, the input and output of `encode_records`.
POSITION, DELTA, TAKEN, NEEDED = range(4)  # next byte, next offset delta, rows taken by this call, bytes the next record needs
BASE_TIME, MAX_TIME = 4, 5  # of the batch, if rows have times: that of its first record, and the greatest one
STATE_SIZE = 6
ATTRIBUTE_BYTES = 1  # per record


@njit(types.int64(POINTER, types.int64, types.int64), cache=True)
def murmur2(data, begin, end):
    """MurmurHash 2 of data[begin:end] with the seed of Kafka's default partitioner, made positive as in Kafka."""
    length = end - begin
    m = np.uint32(0x5BD1E995)
    h = np.uint32(0x9747B28C) ^ np.uint32(length)
    position = begin
    for _ in range(length // 4):
        k = (
            np.uint32(data[position])
            | (np.uint32(data[position + 1]) << np.uint32(8))
            | (np.uint32(data[position + 2]) << np.uint32(16))
            | (np.uint32(data[position + 3]) << np.uint32(24))
        )
        k = np.uint32(k * m)
        k = np.uint32(k ^ (k >> np.uint32(24)))
        k = np.uint32(k * m)
        h = np.uint32(h * m)
        h = np.uint32(h ^ k)
        position += 4
    rest = end - position
    if rest == 3:
        h = np.uint32(h ^ (np.uint32(data[position + 2]) << np.uint32(16)))
    if rest >= 2:
        h = np.uint32(h ^ (np.uint32(data[position + 1]) << np.uint32(8)))
    if rest >= 1:
        h = np.uint32(h ^ np.uint32(data[position]))
        h = np.uint32(h * m)
    h = np.uint32(h ^ (h >> np.uint32(13)))
    h = np.uint32(h * m)
    h = np.uint32(h ^ (h >> np.uint32(15)))
    return np.int64(h & np.uint32(0x7FFFFFFF))


@njit(types.void(INTS_IN, BYTES_IN, BYTES_IN, INTS), cache=True, nogil=True)
def hash_keys(ends, keys, valid, hashes):
    """Set the hash of each key whose row has -1 in `hashes`; rows without a key keep -1."""
    data = pointer_to(keys)
    for row in range(hashes.shape[0]):
        if hashes[row] < 0 and ends.shape[0] > 0 and (valid.shape[0] == 0 or valid[row] != 0):
            hashes[row] = murmur2(data, np.int64(ends[row]), np.int64(ends[row + 1]))


ENDS = types.CPointer(types.int32)


@njit(types.int64(ENDS, types.boolean, POINTER, types.boolean, types.int64), cache=True)
def length_of(ends, is_there, valid, has_nulls, row):
    """Bytes of a value; -1 if it is null or the column is missing."""
    if not is_there or (has_nulls and valid[row] == 0):
        return np.int64(-1)
    return np.int64(ends[row + 1]) - np.int64(ends[row])


@njit(types.int64(POINTER, types.int64, ENDS, POINTER, types.int64, types.int64), cache=True)
def write_bytes(out, position, ends, data, row, length):
    """Write a value after its length; returns the position after it."""
    position = write_varint(out, position, length)
    if length > 0:
        copy_bytes(out, position, data, np.int64(ends[row]), length)
        position += length
    return position


ARGUMENTS = types.void(
    INTS_IN, BYTES_IN, BYTES_IN, INTS_IN, BYTES_IN, BYTES_IN,  # key and value: ends, data, validity
    INTS_IN, BYTES_IN,  # lists of headers: ends, validity
    INTS_IN, BYTES_IN, INTS_IN, BYTES_IN, BYTES_IN,  # header key: ends, data; header value: ends, data, validity
    LONGS_IN, LONGS_IN, BYTES, types.int64, LONGS,  # times of all rows or none, rows, out, room, state
)  # fmt: skip


def _encoder(*, has_times: bool) -> Any:
    """The kernel for rows with times, or for those without: a branch for each row costs 7 %."""

    @njit(ARGUMENTS, cache=True, nogil=True)
    def encode_records(
        key_ends, keys, key_valid, value_ends, values, value_valid,
        list_ends, list_valid, name_ends, names, item_ends, items, item_valid, times, rows, out, room, state,
    ):  # fmt: skip
        """Append the records of `rows`, in order, until all are written or the next one does not fit into out[:room]."""
        key_at, key_data, key_marks = pointer_to(key_ends), pointer_to(keys), pointer_to(key_valid)
        value_at, value_data, value_marks = pointer_to(value_ends), pointer_to(values), pointer_to(value_valid)
        name_at, name_data = pointer_to(name_ends), pointer_to(names)
        item_at, item_data, item_marks = pointer_to(item_ends), pointer_to(items), pointer_to(item_valid)
        has_keys, has_values, has_items = key_ends.shape[0] > 0, value_ends.shape[0] > 0, item_ends.shape[0] > 0
        null_keys, null_values, null_items = key_valid.shape[0] > 0, value_valid.shape[0] > 0, item_valid.shape[0] > 0
        to = pointer_to(out)
        position, delta = state[POSITION], state[DELTA]
        base_time, time_delta, time_size = state[BASE_TIME], np.int64(0), np.int64(1)
        taken = 0
        state[NEEDED] = 0
        for i in range(rows.shape[0]):
            row = rows[i]
            key_length = length_of(key_at, has_keys, key_marks, null_keys, row)
            value_length = length_of(value_at, has_values, value_marks, null_values, row)
            if has_times:
                time_delta = np.int64(0) if delta == 0 else times[row] - base_time
                time_size = varint_size(time_delta)
            size = ATTRIBUTE_BYTES + time_size + varint_size(delta) + varint_size(key_length) + varint_size(value_length)
            size += max(key_length, 0) + max(value_length, 0)
            first, last = np.int64(0), np.int64(0)
            if list_ends.shape[0] > 0 and (list_valid.shape[0] == 0 or list_valid[row] != 0):
                first, last = np.int64(list_ends[row]), np.int64(list_ends[row + 1])
            size += varint_size(last - first)
            for h in range(first, last):
                name_length = np.int64(name_at[h + 1]) - np.int64(name_at[h])
                item_length = length_of(item_at, has_items, item_marks, null_items, h)
                size += varint_size(name_length) + name_length + varint_size(item_length) + max(item_length, 0)
            if position + varint_size(size) + size > room:
                state[NEEDED] = varint_size(size) + size
                break
            position = write_varint(to, position, size)
            to[position] = np.uint8(0)
            if has_times:
                if delta == 0:
                    base_time = state[BASE_TIME] = state[MAX_TIME] = times[row]
                elif times[row] > state[MAX_TIME]:
                    state[MAX_TIME] = times[row]
                position = write_varint(to, position + ATTRIBUTE_BYTES, time_delta)
            else:
                to[position + 1] = np.uint8(0)
                position += 2
            position = write_varint(to, position, delta)
            position = write_bytes(to, position, key_at, key_data, row, key_length)
            position = write_bytes(to, position, value_at, value_data, row, value_length)
            position = write_varint(to, position, last - first)
            for h in range(first, last):
                position = write_bytes(to, position, name_at, name_data, h, np.int64(name_at[h + 1]) - np.int64(name_at[h]))
                item_length = length_of(item_at, has_items, item_marks, null_items, h)
                position = write_bytes(to, position, item_at, item_data, h, item_length)
            delta += 1
            taken += 1
        state[POSITION] = position
        state[DELTA] = delta
        state[TAKEN] = taken

    return encode_records


encode_records = _encoder(has_times=False)  # numba takes it as a constant
encode_timed_records = _encoder(has_times=True)
