"""Few records without Arrow and kernels, whose calls cost more than some records in plain Python. No I/O.

Anything unusual gives None, and `columnar.decode` reads the bytes: compression, aborted transactions, times that the broker sets, a wrong
checksum or length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow.types as pt

from barnabas.client.results import Fetched
from barnabas.errors import BarnabasError
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.record import iterate_records
from barnabas.tables.column_types import mark_of
from barnabas.tables.formats import ColumnFormat, Raw
from barnabas.tables.scalar_format import ScalarFormat

MOST_BYTES, MOST_RECORDS = 8_192, 24
_NUMBER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
MOST_TIME_MS = 2**53  # as microseconds it fits 64 bits
MILLISECOND = 1_000


class Few(NamedTuple):
    """Some records, as `LivePartition.take` has them, and the offset behind them."""

    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    times: list[int]
    end: int


def few_records(answer: Fetched, start: int) -> Few | None:
    """The records of a Fetch's answer from an offset on; None if the general way must read them."""
    data = memoryview(answer.records)
    if len(data) > MOST_BYTES or answer.aborted:
        return None
    found = Few([], [], [], [], start)
    end, at = start, 0
    while len(data) - at >= HEADER_SIZE:
        base, length, _, magic, checksum, attributes, last, *_, count = HEADER.unpack_from(data, at)
        size = length + LENGTH_OVERHEAD
        if magic != MAGIC or length < HEADER_SIZE - LENGTH_OVERHEAD or attributes & (COMPRESSION_MASK | LOG_APPEND_TIME_BIT):
            return None
        if size > len(data) - at:
            break
        if count > MOST_RECORDS or crc32c(data[at + CRC_START : at + size]) != checksum & 0xFFFFFFFF:
            return None
        if not attributes & CONTROL_BIT and not _add(found, data, at, start):
            return None
        at += size
        end = base + last + 1
    return found._replace(end=max(start, end)) if len(found.keys) <= MOST_RECORDS else None


def _add(found: Few, data: memoryview, at: int, start: int) -> bool:
    """Add the records of a batch; whether all are usual."""
    try:
        for record in iterate_records(data, at):
            if record.offset < start:
                continue
            if not 0 <= record.timestamp < MOST_TIME_MS:
                return False
            found.keys.append(record.key)
            found.values.append(record.value)
            found.offsets.append(record.offset)
            found.times.append(record.timestamp * MILLISECOND)
    except (BarnabasError, ValueError):
        return False
    return True


def are_canonical(layout: ColumnFormat, keys: Sequence[bytes | None]) -> bool | None:
    """Whether the format writes these keys with the same bytes; None if the general way must tell."""
    if not isinstance(layout, (ScalarFormat, Raw)):
        return None
    (field,) = layout.fields
    kind = field.type
    if mark_of(field):
        return None
    if pt.is_integer(kind):
        signed = not pt.is_unsigned_integer(kind)
        bits = kind.bit_width - signed
        low, high = -(1 << bits) if signed else 0, (1 << bits) - 1
        return all(key is None or (_NUMBER.fullmatch(key) is not None and low <= int(key) <= high) for key in keys) or None
    if pt.is_binary(kind):
        return True
    return (all(key is None or _is_text(key) for key in keys) or None) if pt.is_string(kind) else None


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
