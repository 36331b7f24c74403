"""Compares one structural byte of many records at once, in C instead of record by record, for `scan`.

A column is the byte at one position of every record of a stretch, taken from the data by a slice with a stride. Every function
checks a prefix: it returns how many records from the first on are correct.
"""

from __future__ import annotations

from itertools import count as numbers

WIDTH_2 = 64  # offset deltas from here on take two bytes
WIDTH_3 = 8192  # three bytes from here on
WIDTH_4 = 1 << 20  # four bytes from here on; these functions do not support that
NULL_LENGTH = 1  # -1 as a varint
EVEN_BYTES = bytes(range(0, 128, 2))  # one-byte varints of non-negative numbers
ODD_BYTES = bytes(range(1, 128, 2))
LOW_BYTES = bytes(range(128))  # a varint ends with one of these
HIGH_BYTES = bytes(range(128, 256))  # all other bytes of a varint
EVEN_HIGH_BYTES = bytes(range(0x80, 0x100, 2))  # non-final bytes of a non-negative number, if they come first
DELTA_1 = EVEN_BYTES  # offset deltas 0 to 63
DELTA_LOW = EVEN_HIGH_BYTES * (WIDTH_3 // WIDTH_2)  # first byte of offset deltas from 64 on; DELTA_HIGH has the second
DELTA_HIGH = b"".join(bytes((high,)) * WIDTH_2 for high in LOW_BYTES)
DELTA_MIDDLE = b"".join(bytes((high,)) * WIDTH_2 for high in HIGH_BYTES)  # second byte of three-byte offset deltas
MANY = 1024

Data = bytes | bytearray


def offset_delta_width(index: int) -> int:
    """Number of bytes of the offset delta `index`."""
    return 1 if index < WIDTH_2 else 2 if index < WIDTH_3 else 3


def stretch_end(index: int) -> int:
    """The index up to which offset deltas from `index` on differ in few enough bytes for `offset_deltas`."""
    return WIDTH_2 if index < WIDTH_2 else index - index % WIDTH_3 + WIDTH_3


def offset_deltas(data: Data, at: int, stride: int, index: int, run: int) -> int:
    """How many of `run` offset deltas count up from `index`; the last one must be before `stretch_end(index)`."""
    if index < WIDTH_2:
        return prefix(column_of(data, at, stride, run), DELTA_1[index : index + run])
    slot = index % WIDTH_3
    run = prefix(column_of(data, at, stride, run), DELTA_LOW[slot : slot + run])
    if index < WIDTH_3:
        return prefix(column_of(data, at + 1, stride, run), DELTA_HIGH[slot : slot + run])
    run = prefix(column_of(data, at + 1, stride, run), DELTA_MIDDLE[slot : slot + run])
    return prefix(column_of(data, at + 2, stride, run), bytes((index >> 13,)) * run)


def timestamp_deltas(data: Data, at: int, stride: int, run: int, width: int) -> tuple[int, int, int]:
    """How many of `run` timestamp deltas take `width` bytes, and the smallest and the largest of these (or 0)."""
    last = column_of(data, at + width - 1, stride, run)
    run = starts_with(last, LOW_BYTES)
    columns = [column_of(data, at + i, stride, run) for i in range(width - 1)]
    for column in columns:
        run = min(run, starts_with(column, HIGH_BYTES))
    last = last[:run]
    if width == 1:
        evens, odds = last.translate(None, ODD_BYTES), last.translate(None, EVEN_BYTES)
        return run, ~(_largest(odds) >> 1) if odds else 0, _largest(evens) >> 1
    if width == 2 and starts_with(columns[0], EVEN_HIGH_BYTES) >= run:
        return run, 0, _largest_of_two(columns[0][:run], last)
    deltas = list(last)
    for column in reversed(columns):
        deltas = [above << 7 | below & 0x7F for above, below in zip(deltas, column, strict=False)]
    plain = [delta >> 1 ^ -(delta & 1) for delta in deltas]
    return run, min(plain, default=0), max(plain, default=0)


def column_of(data: Data, at: int, stride: int, run: int) -> Data:
    return data[at : at + stride * (run - 1) + 1 : stride] if run > 0 else b""


def prefix(column: Data, wanted: Data) -> int:
    """How many bytes, from the first on, are equal in both."""
    if column == wanted:
        return len(column)
    return next(i for i in numbers() if column[i : i + 1] != wanted[i : i + 1] or i >= len(wanted))


def starts_with(column: Data, allowed: bytes) -> int:
    """How many bytes, from the first on, are in `allowed`."""
    if not column.translate(None, allowed):
        return len(column)
    return len(column) - len(column.lstrip(allowed))


def _largest_of_two(low: Data, high: Data) -> int:
    """The largest of two-byte varints that are not negative."""
    largest_high = _largest(high)
    if high == high[:1] * len(high):
        largest_low = _largest(low)
    else:
        largest_low = max(below for above, below in zip(high, low, strict=True) if above == largest_high)
    return (largest_high << 7 | largest_low & 0x7F) >> 1


def _largest(column: Data) -> int:
    """The largest byte; 0 if there is none. If there are many, a search for each value in turn is cheaper (10 us) than a look
    at each byte (10 ns each)."""
    if len(column) < MANY:
        return max(column, default=0)
    return next(value for value in range(255, -1, -1) if value in column)
