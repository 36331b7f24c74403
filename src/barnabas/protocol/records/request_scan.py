"""Scans records, their requests, and the batches of a run: the work that is repeated thousands of times.

This is the Python version of the functions in `_request_scan.c`. If a C compiler is available, the package's build compiles them
(`tools/build_hook.py`). `scan.walker` is that module or this one. Compiled, a record costs 2 to 4 ns and a request like the previous one
0.1 us. Here it is a hundred times as much; so without the compiled module requests are handled one by one, and records are checked in
other ways (`scan.scan_interpreted`). Both pass the same tests.

Rules
  1. Like all of `scan`: accepts only well-formed input, and declines wrong or rare input (such as unusually long varints).
  2. Its functions only read their input and return results or bytes: they keep no state, change nothing, and write no error messages.
  3. Tables are passed between functions as bytes (`rows`), without an object for each request.
"""

from __future__ import annotations

from array import array
from struct import Struct
from struct import error as StructError  # `struct` calls its error just `error`
from typing import NamedTuple

from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    PLACE,
    Buffer,
)
from barnabas.protocol.records.compression import unfolded
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.rows import DESCRIBED, ROW

NO_PRODUCER_ID = -1
MAX_INT32 = 2**31 - 1
LATEST_TIME = 2**61  # bound of a base timestamp in ms
EMPTY_TAGS = bytes(3)  # no tagged fields of partition, topic and request
CORRELATION_ID_AT = 4  # position in an answer
_I32, _I64 = Struct(">i"), Struct(">q")


class NotSane(ValueError):
    """The input is wrong, or rare."""


class Limits(NamedTuple):
    """The limits for accepted requests and batches.

    Fields:
        max_request, max_batch: the maximum size in bytes.
        oldest, newest: bounds of the records' timestamps, in ms.
        room, offsets, requests: the maximum number of bytes of all batches, of records, and of requests.
        needs_keys: every record must have a key.
        takes_codecs: batches may be compressed.
    """

    max_request: int
    max_batch: int
    oldest: int
    newest: int
    room: int
    offsets: int
    requests: int
    needs_keys: bool
    takes_codecs: bool


def walk_records(data: Buffer, count: int) -> tuple[int, int, bool] | None:
    """Smallest and largest timestamp delta (or 0) and whether a key is null, if `count` records fill `data`. None if they do not, or if
    only a slower check can tell."""
    position = min_delta = max_delta = 0
    has_null_key = False
    try:
        for index in range(count):
            size, position = _size(data, position)
            end = position + size
            if end > len(data):
                return None
            delta, position = read_short(data, position + 1, longest=8)  # skip the attributes
            delta = (delta >> 1) ^ -(delta & 1)
            min_delta, max_delta = min(min_delta, delta), max(max_delta, delta)
            offset_delta, position = read_short(data, position)
            if offset_delta != index << 1:
                return None
            position, is_null = _skip(data, position)
            has_null_key = has_null_key or is_null
            position, _ = _skip(data, position)
            headers, position = _size(data, position)
            for _ in range(headers):
                position, is_null = _skip(data, position)
                if is_null:
                    return None
                position, _ = _skip(data, position)
            if position != end:
                return None
    except (IndexError, NotSane):
        return None
    return (min_delta, max_delta, has_null_key) if position == len(data) else None


def read_short(data: Buffer, position: int, longest: int = 4) -> tuple[int, int]:
    """A varint of at most `longest` bytes, and the position after it."""
    value = 0
    for byte in range(longest):
        value |= (data[position] & 0x7F) << 7 * byte
        position += 1
        if data[position - 1] < 0x80:
            return value, position
    raise NotSane


def _size(data: Buffer, position: int) -> tuple[int, int]:
    """A number that is not negative, and the position after it."""
    value, position = read_short(data, position)
    if value & 1:
        raise NotSane
    return value >> 1, position


def _skip(data: Buffer, position: int) -> tuple[int, bool]:
    """The position after a length and that many bytes, or after a null; and whether it was a null."""
    value, position = read_short(data, position)
    if value & 1:
        if value != 1:
            raise NotSane
        return position, True
    return position + (value >> 1), False


def walk_requests(
    data: Buffer, position: int, known: bytes, is_flexible: bool, limits: Limits
) -> tuple[bytes, int, int, int, int, bool]:
    """The whole Produce requests from `position` on that are like `known` and carry one good batch, up to the first other request.

    A good batch is one that a leader stores unchanged. It is of no transaction; if it has a producer, it has the producer of the batch
    before it and follows in the sequence. The function does not check whether the producer may append the first batch.

    Args:
        data: the received bytes.
        known: the bytes of such a request after its size, up to the length of its records; its correlation id is ignored.
        limits: for the requests and their batches.

    Returns:
        A `ROW` for each request; their number; the number of records and bytes of all batches; the position of the next request; and
        whether the batches are an idempotent producer's.

    Raises:
        ValueError: `position` is not in the data, or `known` is not the start of a request.
    """
    if not 0 <= position <= len(data) or len(known) < 8:
        raise ValueError("no position in the data, or no start of a request")
    batches = Batches(data, limits)
    bounds = batches.bounds
    while len(batches.rows) < bounds.requests and len(data) - position >= 4:
        (request,) = _I32.unpack_from(data, position)
        start, stop = position + 4, position + 4 + request
        if not len(known) <= request <= bounds.max_request or stop > len(data):
            break
        at = _batch_at(data, start, stop, known, is_flexible)
        end = stop - (len(EMPTY_TAGS) if is_flexible else 0)
        if at is None or not batches.take(_I32.unpack_from(data, start + 4)[0], at, end):
            break
        position = stop
    return batches.told(position)


class Batches:
    """Good batches that can be appended one after the other, as far as they were checked.

    Args:
        data: the data with the batches.
        limits: for the batches.
    """

    def __init__(self, data: Buffer, limits: Limits) -> None:
        self.bounds = limits
        self.rows: list[bytes] = []
        self._data = data
        self._records = self._size = 0
        self._producer: tuple[int, int, int] | None = None

    def take(self, label: int, start: int, end: int) -> bool:
        """Take the batch that fills [start, end) if it is good, within the limits, and follows the one before it; returns whether it did.

        Args:
            label: the first number of its row.
        """
        bounds, size = self.bounds, end - start
        found = _good_batch(self._data, start, end, bounds) if HEADER_SIZE <= size <= bounds.max_batch else None
        if found is None or self._size + size > bounds.room or self._records + found[0] > bounds.offsets:
            return False
        count, largest = found
        producer = _following(self._data, start, count, self._producer)
        if producer is None:
            return False
        self._producer = producer
        self.rows.append(ROW.pack(label, start, end, count, largest))
        self._records, self._size = self._records + count, self._size + size
        return True

    def told(self, behind: int) -> tuple[bytes, int, int, int, int, bool]:
        """The fields of a `Run`; `behind` is the position of the next request."""
        has_producer = self._producer is not None and self._producer[0] != NO_PRODUCER_ID
        return b"".join(self.rows), len(self.rows), self._records, self._size, behind, has_producer


def _batch_at(data: Buffer, start: int, stop: int, known: bytes, is_flexible: bool) -> int | None:
    """The position of the batch in the request [start, stop); None if the request is not like `known`."""
    at = start + len(known)
    if data[start : start + 4] != known[:4] or data[start + 8 : at] != known[8:]:
        return None
    try:
        if is_flexible:
            length, at = read_short(data, at, longest=5)
            length, stop = length - 1, stop - len(EMPTY_TAGS)
        else:
            length, at = _I32.unpack_from(data[:stop], at)[0], at + 4
    except (IndexError, NotSane, StructError):
        return None
    if at + length != stop:
        return None
    return at if not is_flexible or data[stop : stop + len(EMPTY_TAGS)] == EMPTY_TAGS else None


def _good_batch(data: Buffer, at: int, end: int, bounds: Limits) -> tuple[int, int] | None:
    """The number of records and the largest timestamp of a batch that can be stored unchanged; None for other batches."""
    offset, length, _, magic, crc, attributes, last, base, largest, *_, count = HEADER.unpack_from(data, at)
    if offset or length + LENGTH_OVERHEAD != end - at or magic != MAGIC or attributes & ~COMPRESSION_MASK:
        return None
    if count < 1 or last != count - 1 or not 0 <= base < LATEST_TIME:
        return None
    if crc32c(data[at + CRC_START : end]) != crc:
        return None
    records: Buffer | None = data[at + HEADER_SIZE : end]
    if attributes:
        records = unfolded(attributes, memoryview(data)[at + HEADER_SIZE : end], count) if bounds.takes_codecs else None
    found = None if records is None else walk_records(records, count)
    if found is None:
        return None
    min_delta, max_delta, has_null_key = found
    if base + max_delta != largest or base + min_delta < bounds.oldest or largest > bounds.newest:
        return None
    if bounds.needs_keys and has_null_key:
        return None
    return count, largest


def _following(data: Buffer, at: int, count: int, before: tuple[int, int, int] | None) -> tuple[int, int, int] | None:
    """The producer, its epoch and its next sequence after the batch at `at`; None if the batch does not follow `before`."""
    producer_id, epoch, sequence = HEADER.unpack_from(data, at)[9:12]
    if producer_id == NO_PRODUCER_ID:
        return (NO_PRODUCER_ID, 0, 0) if before is None or before[0] == NO_PRODUCER_ID else None
    if producer_id < 0 or sequence < 0 or (before is not None and before != (producer_id, epoch, sequence)):
        return None
    return producer_id, epoch, (sequence + count) & MAX_INT32


def place_batches(data: Buffer, rows: bytes, first_offset: int, leader_epoch: int) -> tuple[bytes, bytes]:
    """The batches of `rows`, one after the other as they are stored, and a `DESCRIBED` for each.

    Raises:
        ValueError: `rows` are not whole rows, or a batch is not in the data.
    """
    stored: list[Buffer] = []
    described: list[bytes] = []
    if len(rows) % ROW.size:
        raise ValueError("no whole rows")
    for _, start, end, count, largest in ROW.iter_unpack(rows):
        size = end - start
        if start < 0 or end > len(data) or size < HEADER_SIZE:
            raise ValueError("a batch that is not in the data")
        (length,) = _I32.unpack_from(data, start + 8)
        stored += PLACE.pack(first_offset, length, leader_epoch), data[start + PLACE.size : end]
        first_offset += count
        described.append(DESCRIBED.pack(first_offset - 1, size, largest))
    return b"".join(stored), b"".join(described)


def answer_requests(rows: bytes, shape: bytes, offset_at: int, first_offset: int) -> bytes:
    """The answers to the requests of `rows`, one after the other.

    Each answer is `shape` with the correlation id of its request, and with its base offset at `offset_at`.

    Raises:
        ValueError: `rows` are not whole rows, or `shape` has no space for the offset.
    """
    if len(rows) % ROW.size:
        raise ValueError("no whole rows")
    if not CORRELATION_ID_AT + 4 <= offset_at <= len(shape) - 8:
        raise ValueError("no offset in the answer")
    answers = bytearray()
    for correlation_id, _, _, count, _ in ROW.iter_unpack(rows):
        answer = bytearray(shape)
        _I32.pack_into(answer, CORRELATION_ID_AT, correlation_id)
        _I64.pack_into(answer, offset_at, first_offset)
        answers += answer
        first_offset += count
    return bytes(answers)


def note_batches(
    described: Buffer,
    position: int,
    since: int,
    interval: int,
    base: int,
    last: int,
    newest: int,
    offset_of_newest: int,
    noted: int,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, int, int, int, int, int]:
    """The index entries and the state of a segment after appending batches.

    Args:
        described: a `DESCRIBED` for each batch.
        position, last: the position of the first batch in the file, and the last offset before it.
        since: bytes since the last entry of the offset index; `interval`: bytes between two entries.
        base: the segment's base offset.
        newest, offset_of_newest: the largest timestamp so far, and its offset; `noted`: timestamp of the last entry of the time index.

    Returns:
        Columns of 8-byte numbers: last offsets and positions of all batches; keys and values of the new entries of the offset index,
        then of the time index. Then the values of `position`, `since`, `last`, `newest` and `offset_of_newest` after the batches.
    """
    columns: tuple[list[int], ...] = ([], [], [], [], [], [])
    lasts, positions, keys, values, times, time_values = columns
    if len(described) % DESCRIBED.size:
        raise ValueError("no whole rows")
    for last, size, largest in DESCRIBED.iter_unpack(described):
        if largest > newest:
            newest, offset_of_newest = largest, last
        if since > interval:
            keys.append(last - base)
            values.append(position)
            if newest > noted:
                noted = newest
                times.append(newest)
                time_values.append(offset_of_newest - base)
            since = 0
        lasts.append(last)
        positions.append(position)
        since += size
        position += size
    a, b, c, d, e, f = (array("q", column).tobytes() for column in columns)
    return a, b, c, d, e, f, position, since, last, newest, offset_of_newest
