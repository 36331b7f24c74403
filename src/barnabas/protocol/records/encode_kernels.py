"""The loops that turn Arrow columns into records, compiled by numba: where a key belongs, and the bytes of a batch's records.

Importing this module imports numpy and numba, which are extras; the pipelines do.

Rules
  1. Explicit signatures and `cache=True`, as in `kernels`.
  2. Nothing is written past the room that the caller names: a record is measured before it is written.
  3. A column is (ends, data, valid): `ends` has a number more than there are rows and begins where the first value does; `valid` is a
     byte for each row, or empty where no row is null. A column that is not there has an empty `ends`.

Ugly: optional columns are empty arrays, since a kernel with an explicit signature knows no None.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, INTS, LONGS

INTS_IN = types.Array(types.int32, 1, "C", readonly=True)
LONGS_IN = types.Array(types.int64, 1, "C", readonly=True)

# What `encode_records` is told and leaves in `state`.
POSITION, DELTA, TAKEN, NEEDED = range(4)  # next byte, next offset delta, rows taken by this call, bytes the next record needs
STATE_SIZE = 4
OPTIONAL_BYTES = 2  # of a record: attributes, timestamp delta of 0


@njit(types.int64(BYTES_IN, types.int64, types.int64), cache=True)
def murmur2(data, begin, end):
    """MurmurHash 2 of data[begin:end] with the seed of Kafka's default partitioner, made positive as there."""
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
    """The hash of each key whose row has -1 in `hashes`; rows without a key keep it."""
    for row in range(hashes.shape[0]):
        if hashes[row] < 0 and ends.shape[0] > 0 and (valid.shape[0] == 0 or valid[row] != 0):
            hashes[row] = murmur2(keys, ends[row], ends[row + 1])


@njit(types.int64(types.int64), cache=True, inline="always")
def varint_size(value):
    """Bytes of a number of zero or more, or -1, as a zigzag varint."""
    raw = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while raw >= np.uint64(0x80):
        raw >>= np.uint64(7)
        size += 1
    return size


@njit(types.int64(BYTES, types.int64, types.int64), cache=True, inline="always")
def write_varint(out, position, value):
    """Write a zigzag varint; the position after it."""
    raw = np.uint64((value << 1) ^ (value >> 63))
    while raw >= np.uint64(0x80):
        out[position] = np.uint8((raw & np.uint64(0x7F)) | np.uint64(0x80))
        raw >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(raw)
    return position + 1


@njit(types.int64(INTS_IN, BYTES_IN, types.int64), cache=True, inline="always")
def length_of(ends, valid, row):
    """Bytes of a value, -1 where it is null or the column is not there."""
    if ends.shape[0] == 0 or (valid.shape[0] > 0 and valid[row] == 0):
        return np.int64(-1)
    return np.int64(ends[row + 1]) - np.int64(ends[row])


@njit(types.int64(BYTES, types.int64, INTS_IN, BYTES_IN, types.int64, types.int64), cache=True, inline="always")
def write_bytes(out, position, ends, data, row, length):
    """Write a value behind its length; the position after it."""
    position = write_varint(out, position, length)
    if length > 0:
        begin = np.int64(ends[row])
        out[position : position + length] = data[begin : begin + length]
        position += length
    return position


@njit(
    types.void(
        INTS_IN, BYTES_IN, BYTES_IN, INTS_IN, BYTES_IN, BYTES_IN,  # key and value: ends, data, validity
        INTS_IN, BYTES_IN,  # lists of headers: ends, validity
        INTS_IN, BYTES_IN, INTS_IN, BYTES_IN, BYTES_IN,  # header key: ends, data; header value: ends, data, validity
        LONGS_IN, BYTES, types.int64, LONGS,  # rows, out, room, state
    ),
    cache=True, nogil=True,
)  # fmt: skip
def encode_records(
    key_ends, keys, key_valid, value_ends, values, value_valid,
    list_ends, list_valid, name_ends, names, item_ends, items, item_valid, rows, out, room, state,
):  # fmt: skip
    """Append records of `rows`, in order, until they are all written or the next one does not fit into out[:room]."""
    position, delta = state[POSITION], state[DELTA]
    taken = 0
    state[NEEDED] = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        key_length = length_of(key_ends, key_valid, row)
        value_length = length_of(value_ends, value_valid, row)
        size = OPTIONAL_BYTES + varint_size(delta) + varint_size(key_length) + varint_size(value_length)
        size += max(key_length, 0) + max(value_length, 0)
        first, last = np.int64(0), np.int64(0)
        if list_ends.shape[0] > 0 and (list_valid.shape[0] == 0 or list_valid[row] != 0):
            first, last = np.int64(list_ends[row]), np.int64(list_ends[row + 1])
        size += varint_size(last - first)
        for h in range(first, last):
            name_length = np.int64(name_ends[h + 1]) - np.int64(name_ends[h])
            item_length = length_of(item_ends, item_valid, h)
            size += varint_size(name_length) + name_length + varint_size(item_length) + max(item_length, 0)
        if position + varint_size(size) + size > room:
            state[NEEDED] = varint_size(size) + size
            break
        position = write_varint(out, position, size)
        out[position] = 0
        out[position + 1] = 0
        position = write_varint(out, position + OPTIONAL_BYTES, delta)
        position = write_bytes(out, position, key_ends, keys, row, key_length)
        position = write_bytes(out, position, value_ends, values, row, value_length)
        position = write_varint(out, position, last - first)
        for h in range(first, last):
            position = write_bytes(out, position, name_ends, names, h, np.int64(name_ends[h + 1]) - np.int64(name_ends[h]))
            position = write_bytes(out, position, item_ends, items, h, length_of(item_ends, item_valid, h))
        delta += 1
        taken += 1
    state[POSITION] = position
    state[DELTA] = delta
    state[TAKEN] = taken
