"""Checks the records of a batch without creating objects.

Owns the fast check that bytes hold `count` well-formed records at offset deltas 0, 1, 2, .... It accepts them, with values
that the caller must still check (timestamps, missing keys), or it declines: it leaves unusual, wrong or rare records to
`record.read_record`. That check is slow and exact, and writes the error messages. So a shortcut here may decline good records,
but must be right when it accepts.

How it works: if the compiled version of `request_scan` exists, it does everything: 2 to 4 ns a record. Otherwise
`scan_interpreted` goes record by record with single-byte fast paths. When two neighbours have the same size, it tries a run.
Records of the same layout have their structural bytes at one stride. So a strided slice of the bytes compares one of these
bytes for all records of the run in C. Records of one size (metrics, fixed keys, benchmarks) cost about 20 ns each that way
instead of 1,000. If sizes vary, `bulk_check` covers a stretch at less than half the cost of single records; records that it
does not cover (headers, null values) are read singly, and stretches begin small again.

Ugly: `scan_interpreted` is one long function, as a call for each field would double its cost.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.protocol.records.batch_header import Buffer
from barnabas.protocol.records.bulk_check import bulk_check
from barnabas.protocol.records.columns import (
    NULL_LENGTH,
    WIDTH_2,
    WIDTH_4,
    column_of,
    offset_delta_width,
    offset_deltas,
    stretch_end,
    timestamp_deltas,
)
from barnabas.protocol.records.varint import MAX_VARLONG_BITS
from barnabas.tuples import new_tuple

__all__ = ["Scan", "compiled", "compiled_scan", "multi_partition_walker", "scan_interpreted", "scan_records", "walker"]

SHORTEST_RUN = 12  # records; a try for a run costs about as much as reading this many
UNEQUAL = 3  # records to read before their sizes count as varied: a wider offset delta alone changes one size
FIRST_GATHER, MOST_GATHERED = 32, 1024  # records per bulk check; doubled while a check covers more than half


class Scan(NamedTuple):
    """The result for well-formed records; deltas in ms from the base timestamp."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    has_null_key: bool


def compiled_scan() -> Any | None:
    """The compiled module of `_request_scan.c`, if it exists and matches the current source; has the functions of `request_scan`.

    None if the environment variable BARNABAS_WITHOUT_C is set, so that the tests also run without it.
    """
    if os.environ.get("BARNABAS_WITHOUT_C"):
        return None
    try:
        compiled: Any = import_module("barnabas.protocol.records._request_scan")
    except ImportError:
        return None
    source = Path(__file__).with_name("_request_scan.c").read_bytes()
    return compiled if zlib.crc32(source) == compiled.SOURCE_CHECKSUM else None


compiled = compiled_scan()
_walk_records: Callable[[Buffer, int], tuple[int, int, bool] | None] | None = compiled and compiled.walk_records
if TYPE_CHECKING:
    from barnabas.protocol.records import multi_partition_scan as multi_partition_walker
    from barnabas.protocol.records import request_scan as walker
else:
    walker = compiled or import_module("barnabas.protocol.records.request_scan")
    multi_partition_walker = compiled or import_module("barnabas.protocol.records.multi_partition_scan")


def scan_records(data: Buffer, count: int) -> Scan | None:
    """The result if `count` records fill `data`; None if they do not, or if only the slow check can tell."""
    if _walk_records is None:
        return scan_interpreted(bytes(data) if isinstance(data, memoryview) else data, count)
    found = _walk_records(data, count)
    return None if found is None else new_tuple(Scan, found)


class _Layout(NamedTuple):
    """The positions of a record's structural bytes, from its first byte on."""

    stride: int
    attributes: int
    offset_delta: int
    key_length: int
    value_length: int
    value: int


def scan_interpreted(data: bytes | bytearray, count: int) -> Scan | None:  # noqa: C901 - one loop for speed, see the module
    """Like `scan_records`, without the compiled module."""
    position = index = min_delta = max_delta = last_stride = retry_at = 0
    stretch, gather_at = FIRST_GATHER, UNEQUAL
    has_null_key = False
    try:
        while index < count:
            start = position
            size = data[position]
            position += 1
            if size >= 0x80:
                high = data[position]
                position += 1
                if high < 0x80:
                    size = size & 0x7F | high << 7
                else:
                    size, position = _unsigned(data, start)
            attributes = position
            end = position + (size >> 1)

            timestamp = data[position + 1]
            position += 2
            if timestamp >= 0x80:
                timestamp, position = _unsigned(data, position - 1)
            if timestamp & 1:
                min_delta = min(min_delta, ~(timestamp >> 1))
            elif timestamp >> 1 > max_delta:
                max_delta = timestamp >> 1

            offset_delta = position
            if index < WIDTH_2:
                if data[position] != index << 1:
                    return None
                position += 1
            else:
                delta, position = _unsigned(data, position)
                if delta != index << 1:
                    return None

            key_length = position
            length = data[position]
            position += 1
            if length >= 0x80:
                length, position = _unsigned(data, position - 1)
            if length & 1:
                if length != NULL_LENGTH:
                    return None
                has_null_key = True
            else:
                position += length >> 1

            value_length = position
            length = data[position]
            position += 1
            if length >= 0x80:
                high = data[position]
                position += 1
                if high < 0x80:
                    length = length & 0x7F | high << 7
                else:
                    length, position = _unsigned(data, value_length)
            value = position
            if length & 1:
                if length != NULL_LENGTH:
                    return None
            else:
                position += length >> 1

            plain = data[position] == 0  # no headers
            position = position + 1 if plain else _skip_headers(data, position)
            if position != end or size & 1:
                return None
            index += 1
            stride = end - start
            if count - index < SHORTEST_RUN or not plain:
                last_stride = stride
                continue
            if stride == last_stride and index >= retry_at:
                layout = _Layout(
                    stride, attributes - start, offset_delta - start, key_length - start, value_length - start, value - start
                )
                covered, oldest, newest = _run(data, start, index, count, layout)
                position += covered * stride
                index += covered
                min_delta, max_delta = min(min_delta, oldest), max(max_delta, newest)
                retry_at = index if covered else index + 4 * SHORTEST_RUN
                gather_at = index + UNEQUAL if covered else gather_at
            elif index >= gather_at:
                covered, end, oldest, newest, keyless = bulk_check(data, position, index, min(count, index + stretch))
                if covered:
                    position, index = end, index + covered
                    min_delta, max_delta = min(min_delta, oldest), max(max_delta, newest)
                    has_null_key = has_null_key or keyless
                stretch = min(2 * stretch, MOST_GATHERED) if covered > stretch // 2 else FIRST_GATHER
                gather_at = index if covered > FIRST_GATHER // 2 else index + FIRST_GATHER // 2
            last_stride = stride
    except (IndexError, ValueError):
        return None
    return new_tuple(Scan, (min_delta, max_delta, has_null_key)) if position == len(data) else None


def _run(data: bytes | bytearray, start: int, index: int, count: int, layout: _Layout) -> tuple[int, int, int]:
    """How many records from `index` on have the layout of the one at `start`, and their smallest and largest timestamp deltas.

    Size, key length and value length are the same for all of them, and timestamp deltas take equally many bytes.
    """
    stride = layout.stride
    first = start + stride
    if layout.key_length - layout.offset_delta != offset_delta_width(index) or index >= WIDTH_4:
        return 0, 0, 0
    run = min(count, stretch_end(index), index + (len(data) - first) // stride) - index
    if data[start + layout.key_length] >= 0x80:
        return 0, 0, 0
    for offset in (*range(layout.attributes), layout.key_length, *range(layout.value_length, layout.value), stride - 1):
        at = start + offset
        column = column_of(data, at + stride, stride, run)
        model = data[at : at + 1]
        if column != model * run:
            run -= len(column.lstrip(model))
        if run <= 0:
            return 0, 0, 0
    run = offset_deltas(data, first + layout.offset_delta, stride, index, run)
    timestamp = layout.attributes + 1
    return timestamp_deltas(data, first + timestamp, stride, run, layout.offset_delta - timestamp)


def _unsigned(data: bytes | bytearray, position: int) -> tuple[int, int]:
    """The varint at `position` without zigzag decoding, and the position after it; ValueError if it is too long."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift >= MAX_VARLONG_BITS:
            raise ValueError


def _skip_headers(data: bytes | bytearray, position: int) -> int:
    """The position after the headers, which begin with their count at `position`; ValueError if they are not well-formed."""
    count, position = _unsigned(data, position)
    if count & 1 or count >> 1 > len(data) - position:
        raise ValueError
    for _ in range(count >> 1):
        length, position = _unsigned(data, position)
        if length & 1:
            raise ValueError
        length, position = _unsigned(data, position + (length >> 1))
        if not length & 1:
            position += length >> 1
        elif length != NULL_LENGTH:
            raise ValueError
    return position
