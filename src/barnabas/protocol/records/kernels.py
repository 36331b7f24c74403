"""The loops over bytes, compiled by numba: batch headers into a table, records into the buffers of Arrow columns.

Importing this module imports numpy and numba, which are extras. Only the pipelines and compaction import it, and compaction also works
without it.

Rules
  1. Explicit signatures and `cache=True`: a task with the cache compiles nothing (0.25 s to load, 1.5 s without a cache).
  2. Kernels read and write only within a section or an output. They check lengths against the remaining bytes before use, and a bad
     length ends the kernel with a code and a position. The caller allocates outputs that a section cannot overflow: a record takes at
     least `MIN_RECORD_BYTES`, and its key and value are never longer than itself.
  3. Values are copied by `copy_bytes`; a slice is several times slower.

Ugly: a helper reads the varints of `decode_records`, and returns the value and the next position together; numba inlines it. A position
of -1 stands for "beyond the end", since exceptions across compiled calls cost more than the record.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.pointers import POINTER, copy_bytes, pointer_to

HEADER_BYTES = 61
MIN_RECORD_BYTES = 7  # length, attributes, two deltas, key length, value length, number of headers: one byte each

# Columns of the batch table.
(POSITION, SIZE, BASE_OFFSET, LEADER_EPOCH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, BASE_TIME, MAX_TIME, PRODUCER_ID, PRODUCER_EPOCH,
 BASE_SEQUENCE, COUNT) = range(14)  # fmt: skip
BATCH_COLUMNS = 14

# Columns of the section table; a section is the decompressed records of one batch.
BEGIN, END, RECORDS, FIRST_OFFSET, FIRST_TIME, APPEND_TIME, IS_APPEND_TIME = range(7)
SECTION_COLUMNS = 7

# Slots of `state`, the output of `decode_records`.
(ROWS, KEY_BYTES, VALUE_BYTES, NULL_KEYS, NULL_VALUES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES, ERROR, ERROR_SECTION,
 ERROR_OFFSET, ERROR_TIME) = range(12)  # fmt: skip
STATE_SIZE = 12
OK, BAD_VARINT, BAD_LENGTH, BAD_KEY, BAD_VALUE, BAD_HEADER, TOO_MANY, BAD_TIME = range(8)
MOST_MILLISECONDS = (2**63 - 1) // 1000  # the column stores microseconds in 64 bits
REASONS = {
    BAD_VARINT: "a number that does not end",
    BAD_LENGTH: "a record longer than its batch",
    BAD_KEY: "a key longer than its record",
    BAD_VALUE: "a value longer than its record",
    BAD_HEADER: "a header longer than its record",
    TOO_MANY: "more records or headers than its bytes can hold",
}

BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
BYTES = types.Array(types.uint8, 1, "C")
INTS = types.Array(types.int32, 1, "C")
LONGS = types.Array(types.int64, 1, "C")
TABLE = types.Array(types.int64, 2, "C")


@njit(types.int64(BYTES_IN, types.int64, types.int64), cache=True, inline="always")
def big_endian(data, position, width):
    value = np.int64(0)
    for i in range(width):
        value = (value << 8) | np.int64(data[position + i])
    return value


@njit(types.int64(BYTES_IN), cache=True)
def count_batches(data):
    """The number of whole batches in `data`."""
    position, count = np.int64(0), 0
    end = data.shape[0]
    while end - position >= HEADER_BYTES:
        length = np.int64(np.int32(big_endian(data, position + 8, 4)))
        if length < HEADER_BYTES - 12 or length + 12 > end - position:
            break
        position += length + 12
        count += 1
    return count


@njit(types.void(BYTES_IN, TABLE), cache=True)
def scan_batches(data, table):
    """Fill `table` (int64[count_batches(data), BATCH_COLUMNS]) with the headers."""
    position = np.int64(0)
    for row in range(table.shape[0]):
        size = np.int64(np.int32(big_endian(data, position + 8, 4))) + 12
        table[row, POSITION] = position
        table[row, SIZE] = size
        table[row, BASE_OFFSET] = big_endian(data, position, 8)
        table[row, LEADER_EPOCH] = np.int32(big_endian(data, position + 12, 4))
        table[row, MAGIC] = np.int8(data[position + 16])
        table[row, CRC] = big_endian(data, position + 17, 4)
        table[row, ATTRIBUTES] = big_endian(data, position + 21, 2)
        table[row, LAST_DELTA] = np.int32(big_endian(data, position + 23, 4))
        table[row, BASE_TIME] = big_endian(data, position + 27, 8)
        table[row, MAX_TIME] = big_endian(data, position + 35, 8)
        table[row, PRODUCER_ID] = big_endian(data, position + 43, 8)
        table[row, PRODUCER_EPOCH] = np.int16(big_endian(data, position + 51, 2))
        table[row, BASE_SEQUENCE] = np.int32(big_endian(data, position + 53, 4))
        table[row, COUNT] = np.int32(big_endian(data, position + 57, 4))
        position += size


PAIR = types.UniTuple(types.int64, 2)


@njit(PAIR(POINTER, types.int64, types.int64), cache=True)
def read_varint(data, position, end):
    """A zigzag varint of up to 64 bits, and the position after it; the position is -1 if the varint runs over `end` or is too long."""
    if position >= end:
        return np.int64(0), np.int64(-1)
    byte = np.uint64(data[position])
    position += 1
    raw = byte & np.uint64(0x7F)
    shift = np.uint64(7)
    while byte >= np.uint64(0x80):
        if position >= end or shift > np.uint64(63):
            return np.int64(0), np.int64(-1)
        byte = np.uint64(data[position])
        position += 1
        raw |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), np.int64(position)


@njit(types.int64(types.int64), cache=True, inline="always")
def varint_size(value):
    """Number of bytes of a number as a zigzag varint."""
    raw = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while raw >= np.uint64(0x80):
        raw >>= np.uint64(7)
        size += 1
    return size


@njit(types.int64(POINTER, types.int64, types.int64), cache=True)
def write_varint(out, position, value):
    """Write a zigzag varint; returns the position after it."""
    raw = np.uint64((value << 1) ^ (value >> 63))
    while raw >= np.uint64(0x80):
        out[position] = np.uint8((raw & np.uint64(0x7F)) | np.uint64(0x80))
        raw >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(raw)
    return position + 1


@njit(
    types.void(
        BYTES_IN, TABLE, types.int64, types.int64,  # data, sections, first and end offset
        INTS, BYTES, BYTES, INTS, BYTES, BYTES,  # key and value: ends, data, validity
        LONGS, LONGS, INTS, LONGS,  # offset, time, kind of time, state
    ),
    cache=True, nogil=True,
)  # fmt: skip
def decode_records(  # noqa: C901 - one loop over bytes; a call for each step costs more than the step
    data, sections, start, end_offset, key_ends, keys, key_valid, value_ends, values, value_valid, offsets, times, kinds, state
):
    """Write records of `sections` with start <= offset < end_offset into columns; skips their headers."""
    source, keys_to, values_to = pointer_to(data), pointer_to(keys), pointer_to(values)
    rows, key_at, value_at = np.int64(0), np.int64(0), np.int64(0)
    null_keys, null_values = np.int64(0), np.int64(0)
    key_ends[0] = 0
    value_ends[0] = 0
    for s in range(sections.shape[0]):
        position = sections[s, BEGIN]
        section_end = sections[s, END]
        for _ in range(sections[s, RECORDS]):
            length, position = read_varint(source, position, section_end)
            if position < 0 or length < 0 or length > section_end - position:
                state[ERROR] = BAD_LENGTH
                state[ERROR_SECTION] = s
                return
            record_end = position + length
            time_delta, position = read_varint(source, position + 1, record_end)
            if position < 0:
                state[ERROR] = BAD_VARINT
                state[ERROR_SECTION] = s
                return
            offset_delta, position = read_varint(source, position, record_end)
            if position < 0:
                state[ERROR] = BAD_VARINT
                state[ERROR_SECTION] = s
                return
            offset = sections[s, FIRST_OFFSET] + offset_delta
            if offset < start:
                position = record_end
                continue
            if offset >= end_offset:
                break
            size, position = read_varint(source, position, record_end)
            if position < 0 or size > record_end - position:
                state[ERROR] = BAD_KEY
                state[ERROR_SECTION] = s
                return
            if size >= 0:
                copy_bytes(keys_to, key_at, source, position, size)
                key_at += size
                position += size
                key_valid[rows >> 3] |= np.uint8(1 << (rows & 7))
            else:
                null_keys += 1
            size, position = read_varint(source, position, record_end)
            if position < 0 or size > record_end - position:
                state[ERROR] = BAD_VALUE
                state[ERROR_SECTION] = s
                return
            if size >= 0:
                copy_bytes(values_to, value_at, source, position, size)
                value_at += size
                value_valid[rows >> 3] |= np.uint8(1 << (rows & 7))
            else:
                null_values += 1
            key_ends[rows + 1] = key_at
            value_ends[rows + 1] = value_at
            offsets[rows] = offset
            if sections[s, IS_APPEND_TIME] == 1:
                time = sections[s, APPEND_TIME]
                kinds[rows] = 1
            else:
                time = sections[s, FIRST_TIME] + time_delta
                kinds[rows] = 0
            if time > MOST_MILLISECONDS or time < -MOST_MILLISECONDS:
                state[ERROR] = BAD_TIME
                state[ERROR_SECTION] = s
                state[ERROR_OFFSET] = offset
                state[ERROR_TIME] = time
                return
            times[rows] = time * 1000
            rows += 1
            position = record_end
    state[ROWS] = rows
    state[KEY_BYTES] = key_at
    state[VALUE_BYTES] = value_at
    state[NULL_KEYS] = null_keys
    state[NULL_VALUES] = null_values


@njit(
    types.void(
        BYTES_IN, TABLE, types.int64, types.int64,  # data, sections, first and end offset
        INTS, BYTES, INTS, BYTES, INTS, BYTES, BYTES,  # ends of lists; validity; keys; values with validity
        LONGS,
    ),
    cache=True, nogil=True,
)  # fmt: skip
def decode_headers(
    data, sections, start, end_offset, list_ends, list_valid, key_ends, keys, value_ends, values, value_valid, state
):
    """Write the headers of the same records into the buffers of a list of (key, value). Call it after `decode_records` found no error."""
    source, keys_to, values_to = pointer_to(data), pointer_to(keys), pointer_to(values)
    rows, headers, key_at, value_at = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    list_ends[0] = 0
    key_ends[0] = 0
    value_ends[0] = 0
    room = key_ends.shape[0] - 1
    for s in range(sections.shape[0]):
        position = sections[s, BEGIN]
        section_end = sections[s, END]
        for _ in range(sections[s, RECORDS]):
            length, position = read_varint(source, position, section_end)
            record_end = position + length
            _time, position = read_varint(source, position + 1, record_end)
            delta, position = read_varint(source, position, record_end)
            offset = sections[s, FIRST_OFFSET] + delta
            if offset < start:
                position = record_end
                continue
            if offset >= end_offset:
                break
            for _part in range(2):
                size, position = read_varint(source, position, record_end)
                position += max(size, 0)
            count, position = read_varint(source, position, record_end)
            if position < 0 or count < 0 or count > (record_end - position) // 2 or headers + count > room:
                state[ERROR] = BAD_HEADER if position < 0 else TOO_MANY
                state[ERROR_SECTION] = s
                return
            for _header in range(count):
                size, position = read_varint(source, position, record_end)
                if position < 0 or size < 0 or size > record_end - position:
                    state[ERROR] = BAD_HEADER
                    state[ERROR_SECTION] = s
                    return
                copy_bytes(keys_to, key_at, source, position, size)
                key_at += size
                size, position = read_varint(source, position + size, record_end)
                if position < 0 or size > record_end - position:
                    state[ERROR] = BAD_HEADER
                    state[ERROR_SECTION] = s
                    return
                if size >= 0:
                    copy_bytes(values_to, value_at, source, position, size)
                    value_at += size
                    position += size
                    value_valid[headers >> 3] |= np.uint8(1 << (headers & 7))
                headers += 1
                key_ends[headers] = key_at
                value_ends[headers] = value_at
            if count > 0:
                list_valid[rows >> 3] |= np.uint8(1 << (rows & 7))
            rows += 1
            list_ends[rows] = headers
            position = record_end
    state[HEADERS] = headers
    state[HEADER_KEY_BYTES] = key_at
    state[HEADER_VALUE_BYTES] = value_at
