"""Few records without Arrow and kernels, whose calls cost more than some records in plain Python. No I/O.

Anything unusual gives None, and `columnar.decode` reads the bytes: compression, times that the broker sets, a wrong
checksum or length.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.errors import BarnabasError
from barnabas.protocol.base_message import Buffer
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

MOST_BYTES, MOST_RECORDS = 8_192, 24
MOST_TIME_MS = 2**53  # as microseconds it fits 64 bits
MILLISECOND = 1_000


class Few(NamedTuple):
    """Some records, their times in microseconds since 1970, and the offset behind them."""

    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    times: list[int]
    end: int


def few_records(records: Buffer, start: int, *, most_bytes: int = MOST_BYTES, most_records: int = MOST_RECORDS) -> Few | None:
    """The records of whole batches from an offset on, none of them aborted; None if the general way must read them."""
    data = memoryview(records)
    if len(data) > most_bytes:
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
        if count > most_records or crc32c(data[at + CRC_START : at + size]) != checksum & 0xFFFFFFFF:
            return None
        if not attributes & CONTROL_BIT and not _add(found, data, at, start):
            return None
        at += size
        end = base + last + 1
    return found._replace(end=max(start, end)) if len(found.keys) <= most_records else None


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
