"""Walking over records and over the requests that bring them, in a form that mypyc turns into machine code.

The package's build compiles a copy of this file where a C compiler is at hand (`tools/build_hook.py`); `scan` and the server use the
compiled copy if it is there and of this very text. Then a record costs 10 ns, whatever it looks like, and a request that is
like the one before it 0.4 us; interpreted it would be 2 us and 30 us, so without it they have other ways and never come here.

Rules
  1. As all of `scan`: says yes only to what is well-formed, and nothing to what is wrong or rare (varints longer than any sane batch
     needs).
  2. Nothing but integers and bytes in the loops, annotated, so that no Python object is made on the way.

Ugly: every varint is read in place, since a function that returns two integers is a slow one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.records.crc import crc32c

if TYPE_CHECKING:
    from mypy_extensions import i64

NO_PRODUCER_ID: Final = -1
MAX_INT32: Final = 2**31 - 1
SIZE_BYTES: Final = 4  # that the size of a record takes at most; a record has more
PIECE_BYTES: Final = 32 * 1024  # stays in the cache


def walk_records(data: bytes, position: i64, stop: i64, count: i64) -> tuple[i64, i64, bool] | None:
    """Smallest and largest timestamp delta (or 0) and whether a key is null, if `count` records fill the bytes [position, stop) of
    `data`; None says nothing.

    Raises:
        IndexError: the records do not end with the data.
    """
    end, index, min_delta, max_delta, has_null_key = _walk(data, position, stop, 0, count)
    return (min_delta, max_delta, has_null_key) if end == stop and index == count else None


def walk_in_pieces(view: memoryview, count: i64) -> tuple[i64, i64, bool] | None:
    """As `walk_records` for all bytes of `view`, copied a piece at a time: a copy of a megabyte takes as long as checking its CRC."""
    position: i64 = 0
    index: i64 = 0
    min_delta: i64 = 0
    max_delta: i64 = 0
    has_null_key = False
    size: i64 = len(view)
    piece: i64 = PIECE_BYTES
    while index < count:
        data = bytes(view[position : position + piece])
        end, index, oldest, newest, keyless = _walk(data, 0, len(data), index, count)
        if end < 0 or (end == 0 and position + len(data) == size):
            return None
        if end == 0:
            piece *= 2  # not even one record
        position += end
        min_delta = min(min_delta, oldest)
        max_delta = max(max_delta, newest)
        has_null_key = has_null_key or keyless
    return (min_delta, max_delta, has_null_key) if position == size else None


def _walk(data: bytes, position: i64, stop: i64, index: i64, count: i64) -> tuple[i64, i64, i64, i64, bool]:  # noqa: C901 - one loop for speed
    """Over the records from number `index` to `count` that end at or before `stop`.

    Returns:
        Where they end, -1 if one is not well-formed; the number of the next one; and what `walk_records` says.
    """
    min_delta: i64 = 0
    max_delta: i64 = 0
    has_null_key = False
    while index < count and stop - position >= SIZE_BYTES:
        start: i64 = position
        byte: i64 = data[position]
        value: i64 = byte & 0x7F
        position += 1
        shift: i64 = 7
        while byte >= 0x80:
            if shift > 21:
                return -1, index, 0, 0, False
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value & 1:
            return -1, index, 0, 0, False
        end: i64 = position + (value >> 1)
        if end > stop:
            position = start
            break

        position += 1  # attributes
        byte = data[position]
        value = byte & 0x7F
        position += 1
        shift = 7
        while byte >= 0x80:
            if shift > 49:
                return -1, index, 0, 0, False
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        timestamp_delta: i64 = (value >> 1) ^ -(value & 1)
        if timestamp_delta < min_delta:
            min_delta = timestamp_delta
        elif timestamp_delta > max_delta:
            max_delta = timestamp_delta

        byte = data[position]
        value = byte & 0x7F
        position += 1
        shift = 7
        while byte >= 0x80:
            if shift > 21:
                return -1, index, 0, 0, False
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value != index << 1:
            return -1, index, 0, 0, False

        # Key and value, then the headers: their number, and for each a key and a value
        lengths_left: i64 = 2
        while lengths_left:
            byte = data[position]
            value = byte & 0x7F
            position += 1
            shift = 7
            while byte >= 0x80:
                if shift > 21:
                    return -1, index, 0, 0, False
                byte = data[position]
                position += 1
                value |= (byte & 0x7F) << shift
                shift += 7
            if value & 1:
                if value != 1:
                    return -1, index, 0, 0, False
                if lengths_left == 2:
                    has_null_key = True
            else:
                position += value >> 1
            lengths_left -= 1

        byte = data[position]
        value = byte & 0x7F
        position += 1
        shift = 7
        while byte >= 0x80:
            if shift > 21:
                return -1, index, 0, 0, False
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value & 1:
            return -1, index, 0, 0, False
        lengths_left = value  # zigzag has doubled it: a key and a value for each header
        while lengths_left:
            byte = data[position]
            value = byte & 0x7F
            position += 1
            shift = 7
            while byte >= 0x80:
                if shift > 21:
                    return -1, index, 0, 0, False
                byte = data[position]
                position += 1
                value |= (byte & 0x7F) << shift
                shift += 7
            if value & 1:
                if value != 1 or not lengths_left & 1:  # a header's key cannot be null
                    return -1, index, 0, 0, False
            else:
                position += value >> 1
            lengths_left -= 1

        if position != end:
            return -1, index, 0, 0, False
        index += 1
    return position, index, min_delta, max_delta, has_null_key


def walk_requests(  # noqa: C901 - one loop for speed
    data: bytes,
    view: memoryview,
    position: i64,
    known: bytes,
    is_flexible: bool,
    limits: tuple[i64, i64, i64, i64, i64, i64, i64, bool],
) -> tuple[list[tuple[i64, i64, i64, i64, i64]], i64, i64, i64, bool]:
    """The Produce requests from `position` on that are like `known`, carry one good batch and are whole, up to the first that does not.

    Args:
        data: what was received.
        view: the same bytes, of which no copy is made.
        known: such a request behind its size, as far as the length of its records, with any correlation id.
        limits: the largest request and the largest batch, the oldest and the newest time of a record, the bytes, the records and
            the requests there is room for, and whether every record must have a key.

    Returns:
        For each the correlation id, where the batch begins and ends, its number of records and its largest timestamp; the number of
        records and bytes of all batches, where the next request begins, and whether they are an idempotent producer's. A good batch is
        one that a leader stores as it came: without codec or transaction, and, if it has a producer, of the one before it and in its
        sequence. Whether the producer may append the first one is not looked at.
    """
    max_request, max_batch, oldest, newest, room, offsets, requests, needs_keys = limits
    found: list[tuple[i64, i64, i64, i64, i64]] = []
    total_records: i64 = 0
    total_bytes: i64 = 0
    producer: i64 = NO_PRODUCER_ID
    epoch: i64 = 0
    sequence: i64 = 0
    end: i64 = len(data)
    known_size: i64 = len(known)
    api = known[:4]
    rest = known[8:]
    tags: i64 = 3 if is_flexible else 0  # the empty tagged fields of partition, topic and request
    while len(found) < requests and end - position >= known_size + 4:
        size = _unsigned32(data, position)
        stop: i64 = position + 4 + size
        if size > max_request or stop > end or size < known_size:
            break
        at: i64 = position + 4
        if data[at : at + 4] != api or data[at + 8 : at + known_size] != rest:
            break
        correlation_id: i64 = _unsigned32(data, at + 4)
        if correlation_id > MAX_INT32:  # clients count on below zero
            correlation_id -= 0x1_0000_0000
        at += known_size
        length: i64 = 0
        if is_flexible:
            shift: i64 = 0
            while shift <= 28 and at < stop:
                byte: i64 = data[at]
                at += 1
                length |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            length -= 1
        elif at + 4 <= stop:
            length = _unsigned32(data, at)
            at += 4
        batch_end: i64 = at + length
        if length < 61 or length > max_batch or batch_end + tags != stop:
            break
        if is_flexible and (data[batch_end] or data[batch_end + 1] or data[batch_end + 2]):
            break

        # The header of the batch: base offset 0, its length, magic 2, no codec or transaction
        count: i64 = _unsigned32(data, at + 57)
        base: i64 = _unsigned32(data, at + 27) << 32 | _unsigned32(data, at + 31)
        largest: i64 = _unsigned32(data, at + 35) << 32 | _unsigned32(data, at + 39)
        if (
            _unsigned32(data, at)
            or _unsigned32(data, at + 4)
            or _unsigned32(data, at + 8) + 12 != length
            or data[at + 16] != 2
            or data[at + 21]
            or data[at + 22]
            or not 0 < count <= MAX_INT32
            or _unsigned32(data, at + 23) != count - 1
            or not 0 <= base < 1 << 61
        ):
            break
        producer_high: i64 = _unsigned32(data, at + 43)
        producer_low: i64 = _unsigned32(data, at + 47)
        if producer_high == 0xFFFF_FFFF and producer_low == 0xFFFF_FFFF:
            if producer != NO_PRODUCER_ID:
                break
        else:
            found_producer: i64 = producer_high << 32 | producer_low
            found_epoch: i64 = _unsigned32(data, at + 49) & 0xFFFF
            found_sequence: i64 = _unsigned32(data, at + 53)
            if producer_high > MAX_INT32 or found_sequence > MAX_INT32:
                break
            if found and (producer != found_producer or epoch != found_epoch or sequence != found_sequence):
                break
            producer, epoch = found_producer, found_epoch
            sequence = (found_sequence + count) & MAX_INT32
        try:
            records = walk_records(data, at + 61, batch_end, count)
        except IndexError:
            break
        if records is None:
            break
        min_delta, max_delta, has_null_key = records
        if base + max_delta != largest or base + min_delta < oldest or largest > newest or (needs_keys and has_null_key):
            break
        if (
            total_bytes + length > room
            or total_records + count > offsets
            or crc32c(view[at + 21 : batch_end]) != _unsigned32(data, at + 17)
        ):
            break
        found.append((correlation_id, at, batch_end, count, largest))
        total_records += count
        total_bytes += length
        position = stop
    return found, total_records, total_bytes, position, producer != NO_PRODUCER_ID


def _unsigned32(data: bytes, at: i64) -> i64:
    first: i64 = data[at]
    second: i64 = data[at + 1]
    third: i64 = data[at + 2]
    fourth: i64 = data[at + 3]
    return first << 24 | second << 16 | third << 8 | fourth
