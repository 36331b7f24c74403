"""The loops of compaction over records, compiled by numba: keys into a table, records held against it, those that stay copied.

Rules
  1. Explicit signatures and `cache=True`, as in `protocol.records.kernels`; lengths are held against the bytes left before they
     are used, and a bad one ends the kernel with a row and a code.
  2. The table has open addressing: a slot is (offset + 1, tag and place), 0 for an empty one; the place is that of the key in
     the arena, where four bytes of length stand before it. The tag, 23 bits of the hash, spares most looks at keys that differ.
  3. Integers of the hash are uint64 throughout: numba makes floats of a uint64 and an int64.

Ugly: the hash has a seed that the caller draws at random, for whoever can choose keys could otherwise choose ones that meet.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, LONGS, TABLE, read_varint

# Columns of the table of rows to look at.
WHERE, BEGIN, END, COUNT, BASE_OFFSET, BASE_TIME, KEEPS_TOMBSTONES = range(7)
ROW_COLUMNS = 7
NOT_THERE, IN_CHUNK, UNPACKED, KEEP_ALL = 0, 1, 2, 3  # WHERE: which buffer a row's records lie in; KEEP_ALL lies in the chunk

# What `add_keys` keeps in `state`, and both leave errors in.
KEYS, ARENA_USED, MOST_KEYS, ERROR, ERROR_ROW, TOMBSTONES_SEEN = range(6)
STATE_SIZE = 6
OK, BAD_RECORD, BAD_COUNT = range(3)
REASONS = {BAD_RECORD: "a record that is none", BAD_COUNT: "more bytes than its records take"}

# Columns of what `judge` answers for each row.
KEPT, TOMBSTONES, MAX_DELTA = range(3)
ANSWER_COLUMNS = 3

TAG_SHIFT = 40
PLACE_MASK = (1 << TAG_SHIFT) - 1
LENGTH_BYTES = 4

_record = types.UniTuple(types.int64, 7)  # type: ignore[no-untyped-call]


@njit(_record(BYTES_IN, types.int64, types.int64), cache=True)
def _read_record(data, start, limit):  # type: ignore[no-untyped-def]
    """End (-1: none), time delta, offset delta, where that stands, key's place and size, value's size."""
    bad = np.int64(-1)
    nothing = np.int64(0)
    length, position = read_varint(data, start, limit)
    if position < 0 or length < 1 or length > limit - position:
        return bad, nothing, nothing, nothing, nothing, nothing, nothing
    end = position + length
    time_delta, delta_at = read_varint(data, position + 1, end)
    if delta_at < 0:
        return bad, nothing, nothing, nothing, nothing, nothing, nothing
    offset_delta, position = read_varint(data, delta_at, end)
    if position < 0:
        return bad, nothing, nothing, nothing, nothing, nothing, nothing
    key_size, key_at = read_varint(data, position, end)
    if key_at < 0 or key_size > end - key_at:
        return bad, nothing, nothing, nothing, nothing, nothing, nothing
    value_size, value_at = read_varint(data, key_at + max(key_size, nothing), end)
    if value_at < 0 or value_size >= end - value_at or value_at >= end:
        return bad, nothing, nothing, nothing, nothing, nothing, nothing
    return end, time_delta, offset_delta, delta_at, key_at, key_size, value_size


@njit(types.uint64(BYTES_IN, types.int64, types.int64, types.uint64), cache=True)
def _hash(data, position, size, seed):  # type: ignore[no-untyped-def]
    value = seed ^ (np.uint64(size) * np.uint64(0x9E3779B97F4A7C15))
    end = position + size
    while end - position >= 8:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[position + i]) << np.uint64(8 * i)
        value = (value ^ word) * np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(32)
        position += 8
    word = np.uint64(0)
    for i in range(end - position):
        word |= np.uint64(data[position + i]) << np.uint64(8 * i)
    value = (value ^ word) * np.uint64(0xC4CEB9FE1A85EC53)
    value ^= value >> np.uint64(29)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    return value ^ (value >> np.uint64(32))


@njit(types.int64(BYTES_IN, types.int64, types.int64, TABLE, BYTES, types.uint64), cache=True)
def _find(data, position, size, slots, arena, hashed):  # type: ignore[no-untyped-def]
    """The slot that has the key, or the empty one where it belongs."""
    room = np.uint64(slots.shape[0])
    slot = np.int64(((hashed >> np.uint64(32)) * room) >> np.uint64(32))
    tag = np.int64(hashed & np.uint64(0x7FFFFF))
    while slots[slot, 0] != 0:
        if slots[slot, 1] >> TAG_SHIFT == tag:
            place = slots[slot, 1] & PLACE_MASK
            known = np.int64(0)
            for i in range(LENGTH_BYTES):
                known |= np.int64(arena[place + i]) << (8 * i)
            if known == size:
                place += LENGTH_BYTES
                same = True
                for i in range(size):
                    if arena[place + i] != data[position + i]:
                        same = False
                        break
                if same:
                    return slot
        slot += 1
        if slot == slots.shape[0]:
            slot = np.int64(0)
    return slot


@njit(types.int64(BYTES_IN, BYTES_IN, TABLE, types.int64, TABLE, BYTES, LONGS, types.uint64), cache=True, nogil=True)
def add_keys(chunk, unpacked, rows, from_offset, slots, arena, state, seed):  # type: ignore[no-untyped-def]
    """Note the last offset of each key; how many rows were noted as a whole before the table or the arena was full."""
    for row in range(rows.shape[0]):
        where = rows[row, WHERE]
        if where == NOT_THERE:
            continue
        data = unpacked if where == UNPACKED else chunk
        position, limit = rows[row, BEGIN], rows[row, END]
        for _ in range(rows[row, COUNT]):
            end, _time, offset_delta, _at, key_at, key_size, value_size = _read_record(data, position, limit)
            if end < 0:
                state[ERROR], state[ERROR_ROW] = BAD_RECORD, row
                return row
            position = end
            state[TOMBSTONES_SEEN] += value_size < 0
            offset = rows[row, BASE_OFFSET] + offset_delta
            if key_size < 0 or offset < from_offset:
                continue
            hashed = _hash(data, key_at, key_size, seed)
            slot = _find(data, key_at, key_size, slots, arena, hashed)
            if slots[slot, 0] == 0:
                used = state[ARENA_USED]
                if state[KEYS] >= state[MOST_KEYS] or used + LENGTH_BYTES + key_size > arena.shape[0]:
                    return row
                for i in range(LENGTH_BYTES):
                    arena[used + i] = np.uint8((key_size >> (8 * i)) & 0xFF)
                for i in range(key_size):
                    arena[used + LENGTH_BYTES + i] = data[key_at + i]
                slots[slot, 1] = (np.int64(hashed & np.uint64(0x7FFFFF)) << TAG_SHIFT) | used
                state[ARENA_USED] = used + LENGTH_BYTES + key_size
                state[KEYS] += 1
            slots[slot, 0] = offset + 1
        if position != limit:
            state[ERROR], state[ERROR_ROW] = BAD_COUNT, row
            return row
    return rows.shape[0]


@njit(
    types.void(BYTES_IN, BYTES_IN, TABLE, types.int64, TABLE, BYTES, types.uint64, BYTES, TABLE, LONGS),
    cache=True, nogil=True,
)  # fmt: skip
def judge(  # type: ignore[no-untyped-def]
    chunk, unpacked, rows, latest_offset, slots, arena, seed, keep, answers, state
):
    """For each record of the rows, in order, whether it stays (`keep`, uint8); for each row the columns of `answers`."""
    at = np.int64(0)
    for row in range(rows.shape[0]):
        where = rows[row, WHERE]
        if where == NOT_THERE:
            continue
        data = unpacked if where == UNPACKED else chunk
        position, limit = rows[row, BEGIN], rows[row, END]
        kept, tombstones, max_delta = np.int64(0), np.int64(0), np.int64(-(2**62))
        for _ in range(rows[row, COUNT]):
            end, time_delta, offset_delta, _at, key_at, key_size, value_size = _read_record(data, position, limit)
            if end < 0:
                state[ERROR], state[ERROR_ROW] = BAD_RECORD, row
                return
            position = end
            offset = rows[row, BASE_OFFSET] + offset_delta
            stays = where == KEEP_ALL or offset > latest_offset
            if not stays and key_size >= 0 and (value_size >= 0 or rows[row, KEEPS_TOMBSTONES] == 1):
                slot = _find(data, key_at, key_size, slots, arena, _hash(data, key_at, key_size, seed))
                stays = offset >= slots[slot, 0] - 1
            if stays:
                kept += 1
                tombstones += value_size < 0
                max_delta = max(max_delta, time_delta)
            keep[at] = stays
            at += 1
        if position != limit:
            state[ERROR], state[ERROR_ROW] = BAD_COUNT, row
            return
        answers[row, KEPT] = kept
        answers[row, TOMBSTONES] = tombstones
        answers[row, MAX_DELTA] = max_delta


@njit(types.int64(BYTES, types.int64, types.int64), cache=True)
def _write_varint(out, position, value):  # type: ignore[no-untyped-def]
    raw = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> 63)
    while raw >= np.uint64(0x80):
        out[position] = np.uint8(raw & np.uint64(0x7F)) | np.uint8(0x80)
        raw >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(raw)
    return position + 1


@njit(types.int64(types.int64), cache=True)
def _varint_size(value):  # type: ignore[no-untyped-def]
    raw = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> 63)
    size = 1
    while raw >= np.uint64(0x80):
        raw >>= np.uint64(7)
        size += 1
    return size


@njit(types.int64(BYTES_IN, types.int64, types.int64, BYTES_IN, types.int64, BYTES), cache=True, nogil=True)
def copy_kept(data, begin, end_of_row, keep, shift, out):  # type: ignore[no-untyped-def]
    """Copy the records whose `keep` is set to `out`, `shift` added to their time deltas; how many bytes they take there."""
    position, at = begin, np.int64(0)
    for index in range(keep.shape[0]):
        end, time_delta, _offset_delta, delta_at, _key_at, _key_size, _value_size = _read_record(data, position, end_of_row)
        if keep[index] != 0:
            if shift == 0:
                out[at : at + end - position] = data[position:end]
                at += end - position
            else:
                _length, body_at = read_varint(data, position, end_of_row)
                time_delta += shift
                at = _write_varint(out, at, 1 + _varint_size(time_delta) + end - delta_at)
                out[at] = data[body_at]
                at = _write_varint(out, at + 1, time_delta)
                out[at : at + end - delta_at] = data[delta_at:end]
                at += end - delta_at
        position = end
    return at
