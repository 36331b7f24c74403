"""The loops of compaction over records, compiled by numba: enter keys into a table, look up records in it, copy records that stay.

Rules
  1. Explicit signatures and `cache=True`, as in `protocol.records.kernels`. Lengths are checked against the remaining bytes before use,
     and a bad length ends the kernel with a row and a code.
  2. The arena has the keys in the order in which they came, each after its last offset (8 bytes) and its length (4): a probe finds all
     it needs in one place. The table has open addressing. A slot has the key's position in the arena, with a tag in the bits above it;
     it is 0 if it is empty. The tag, 23 bits of the hash, avoids most comparisons with other keys.
  3. Integers of the hash are uint64 everywhere: numba makes floats of a uint64 and an int64. Indexes in the inner loops are uint64 too,
     so that numba need not check for negative indexes.

Ugly: the hash has a random seed from the caller; otherwise a producer could choose keys that collide.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES, BYTES_IN, LONGS, TABLE, read_varint, varint_size, write_varint
from barnabas.protocol.records.pointers import POINTER, copy_bytes, pointer_to

# Columns of `rows`, the table of the batches to read.
WHERE, BEGIN, END, COUNT, BASE_OFFSET, BASE_TIME, KEEPS_TOMBSTONES = range(7)
ROW_COLUMNS = 7
# Values of WHERE: the buffer that holds the records; KEEP_ALL means the chunk too.
NOT_THERE, IN_CHUNK, UNPACKED, KEEP_ALL = 0, 1, 2, 3

# Columns of `state`: `add_keys` stores its counts there, and both kernels store errors there.
KEYS, MOST_KEYS, ARENA_USED, ARENA_LIMIT, ERROR, ERROR_ROW, TOMBSTONES_SEEN = range(7)
STATE_SIZE = 7
OK, BAD_RECORD, BAD_COUNT = range(3)
REASONS = {BAD_RECORD: "a record that is none", BAD_COUNT: "more bytes than its records take"}

# Columns of the `answers` of `filter_records`.
KEPT, TOMBSTONES, MAX_DELTA = range(3)
ANSWER_COLUMNS = 3

TAG_SHIFT = 40
PLACE_MASK = (1 << TAG_SHIFT) - 1
FOUR, EIGHT, HEAD = np.uint64(4), np.uint64(8), np.uint64(12)

SLOTS = types.CPointer(types.int64)
_record = types.UniTuple(types.int64, 7)


@njit(_record(POINTER, types.int64, types.int64), cache=True)
def _read_record(data, start, limit):
    """End (-1: invalid record), time delta, offset delta, its position, the key's position and size, the value's size."""
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


@njit(types.uint64(POINTER, types.uint64, types.uint64), cache=True)
def _word(data, position, size):
    """The number in `size` bytes (little-endian, at most eight)."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[position + i]) << (EIGHT * i)
    return word


@njit(types.uint64(POINTER, types.uint64, types.uint64, types.uint64), cache=True)
def _hash(data, position, size, seed):
    value = seed ^ (size * np.uint64(0x9E3779B97F4A7C15))
    end = position + size
    while end - position >= EIGHT:
        value = (value ^ _word(data, position, EIGHT)) * np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(32)
        position += EIGHT
    value = (value ^ _word(data, position, end - position)) * np.uint64(0xC4CEB9FE1A85EC53)
    value ^= value >> np.uint64(29)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    return value ^ (value >> np.uint64(32))


@njit(types.int64(types.int64, types.uint64), cache=True)
def _first_slot(count, hashed):
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))


@njit(types.int64(types.uint64), cache=True)
def _tag(hashed):
    return np.int64(hashed & np.uint64(0x7FFFFF)) << TAG_SHIFT


@njit(types.int64(POINTER, types.uint64, types.uint64, SLOTS, types.int64, POINTER, types.uint64), cache=True)
def _find(data, position, size, slots, count, arena, hashed):
    """The slot with the key, or the empty slot where it belongs."""
    slot, tag = _first_slot(count, hashed), _tag(hashed)
    while slots[slot] != 0:
        if slots[slot] & ~PLACE_MASK == tag:
            place = np.uint64(slots[slot] & PLACE_MASK)
            if _word(arena, place - FOUR, FOUR) == size:
                same = True
                for i in range(size):
                    if arena[place + i] != data[position + i]:
                        same = False
                        break
                if same:
                    return slot
        slot += 1
        if slot == count:
            slot = np.int64(0)
    return slot


@njit(types.int64(SLOTS, POINTER, types.int64), cache=True)
def _last_offset(slots, arena, slot):
    """The last offset of the key in `slot`; -1 if the slot is empty."""
    if slots[slot] == 0:
        return np.int64(-1)
    return np.int64(_word(arena, np.uint64(slots[slot] & PLACE_MASK) - HEAD, EIGHT))


@njit(types.void(POINTER, types.uint64, types.uint64, types.uint64), cache=True)
def _put(arena, position, value, size):
    for i in range(size):
        arena[position + i] = np.uint8((value >> (EIGHT * i)) & np.uint64(0xFF))


@njit(types.int64(BYTES_IN, BYTES_IN, TABLE, types.int64, types.int64, LONGS, BYTES, LONGS, types.uint64), cache=True, nogil=True)
def add_keys(chunk, unpacked, rows, first_row, from_offset, slots, arena, state, seed):
    """Record the last offset of each key; returns the first row that is not complete, because the table or the arena is full."""
    in_chunk, in_unpacked = pointer_to(chunk), pointer_to(unpacked)
    table, count, keys = pointer_to(slots), slots.shape[0], pointer_to(arena)
    for row in range(first_row, rows.shape[0]):
        where = rows[row, WHERE]
        if where == NOT_THERE:
            continue
        data = in_unpacked if where == UNPACKED else in_chunk
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
            start, size = np.uint64(key_at), np.uint64(key_size)
            hashed = _hash(data, start, size, seed)
            slot = _find(data, start, size, table, count, keys, hashed)
            if slots[slot] == 0:
                place = np.uint64(state[ARENA_USED]) + HEAD
                if state[KEYS] >= state[MOST_KEYS] or np.int64(place + size) > state[ARENA_LIMIT]:
                    return row
                _put(keys, place - FOUR, size, FOUR)
                copy_bytes(keys, np.int64(place), data, key_at, key_size)
                slots[slot] = _tag(hashed) | np.int64(place)
                state[ARENA_USED] = np.int64(place + size)
                state[KEYS] += 1
            _put(keys, np.uint64(slots[slot] & PLACE_MASK) - HEAD, np.uint64(offset), EIGHT)
        if position != limit:
            state[ERROR], state[ERROR_ROW] = BAD_COUNT, row
            return row
    return rows.shape[0]


@njit(types.void(LONGS, BYTES, types.int64, types.uint64), cache=True, nogil=True)
def fill_slots(slots, arena, arena_used, seed):
    """Enter the keys of the arena into an empty table."""
    keys = pointer_to(arena)
    at = np.uint64(0)
    while at < np.uint64(arena_used):
        place, size = at + HEAD, _word(keys, at + EIGHT, FOUR)
        hashed = _hash(keys, place, size, seed)
        slot = _first_slot(slots.shape[0], hashed)
        while slots[slot] != 0:
            slot += 1
            if slot == slots.shape[0]:
                slot = np.int64(0)
        slots[slot] = _tag(hashed) | np.int64(place)
        at = place + size


@njit(types.void(BYTES, LONGS), cache=True, nogil=True)
def collect_offsets(arena, out):
    """Write the last offset of each key to `out`, in the order in which the keys came."""
    keys, at = pointer_to(arena), np.uint64(0)
    for index in range(out.shape[0]):
        out[index] = np.int64(_word(keys, at, EIGHT))
        at += HEAD + _word(keys, at + EIGHT, FOUR)


@njit(
    types.void(BYTES_IN, BYTES_IN, TABLE, types.int64, LONGS, BYTES, types.uint64, BYTES, TABLE, LONGS),
    cache=True, nogil=True,
)  # fmt: skip
def filter_records(chunk, unpacked, rows, latest_offset, slots, arena, seed, keep, answers, state):
    """Write to `keep` (uint8) whether each record of the rows stays, in order; write the columns of `answers` for each row."""
    in_chunk, in_unpacked = pointer_to(chunk), pointer_to(unpacked)
    table, count, keys = pointer_to(slots), slots.shape[0], pointer_to(arena)
    at = np.int64(0)
    for row in range(rows.shape[0]):
        where = rows[row, WHERE]
        if where == NOT_THERE:
            continue
        data = in_unpacked if where == UNPACKED else in_chunk
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
                start, size = np.uint64(key_at), np.uint64(key_size)
                slot = _find(data, start, size, table, count, keys, _hash(data, start, size, seed))
                stays = offset >= _last_offset(table, keys, slot)
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


@njit(types.int64(BYTES_IN, types.int64, types.int64, BYTES_IN, types.int64, BYTES), cache=True, nogil=True)
def copy_kept(data, begin, end_of_row, keep, shift, out):
    """Copy the records whose `keep` is set to `out`, with `shift` added to their time deltas; returns their number of bytes there."""
    source, to = pointer_to(data), pointer_to(out)
    position, at = begin, np.int64(0)
    for index in range(keep.shape[0]):
        end, time_delta, _offset_delta, delta_at, _key_at, _key_size, _value_size = _read_record(source, position, end_of_row)
        if keep[index] != 0:
            if shift == 0:
                copy_bytes(to, at, source, position, end - position)
                at += end - position
            else:
                _length, body_at = read_varint(source, position, end_of_row)
                time_delta += shift
                at = write_varint(to, at, 1 + varint_size(time_delta) + end - delta_at)
                to[at] = source[body_at]
                at = write_varint(to, at + 1, time_delta)
                copy_bytes(to, at, source, delta_at, end - delta_at)
                at += end - delta_at
        position = end
    return at
