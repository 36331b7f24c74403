"""Finds the next whole batch after damaged bytes.

Owns the search for the place where a log continues. A header with a wrong length does not give the end of its batch. So the
bytes after it are searched for a batch: the high bytes of a possible offset, the magic, plausible lengths, and a matching CRC.

Rules
  1. The result is a batch with a checked CRC. A skipped stretch may still contain a batch with damaged bytes.
  2. Nothing is changed, and reading stops at the found batch.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.protocol.records.batch_header import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.files import Files

SEARCH_BYTES = 4 * 1024 * 1024
KNOWN_ATTRIBUTES = 0x7F  # the bits that have a meaning
MAX_OFFSET_STEP = 2**31  # no segment spans more offsets
HIGH_HALF = 32  # bits; the low half of an offset differs in every batch


class FoundBatch(NamedTuple):
    """A whole batch and its position."""

    position: int
    header: BatchHeader


def is_plausible(header: BatchHeader, position: int, end: int, least_offset: int) -> bool:
    """Whether a header can be that of a batch in a file of `end` bytes whose next offset is at least `least_offset`."""
    return (
        header.magic == MAGIC
        and header.batch_length >= HEADER_SIZE - LENGTH_OVERHEAD
        and position + header.size <= end
        and least_offset <= header.base_offset < least_offset + MAX_OFFSET_STEP
        and header.last_offset_delta >= 0
        and 0 <= header.attributes <= KNOWN_ATTRIBUTES
    )


def batch_at(files: Files, fileno: int, position: int, end: int, least_offset: int) -> FoundBatch | None:
    """The batch that begins at `position`, if there is one with a matching CRC."""
    head = files.pread(fileno, HEADER_SIZE, position)
    if len(head) < HEADER_SIZE:
        return None
    header = BatchHeader._make(HEADER.unpack(head))
    if not is_plausible(header, position, end, least_offset):
        return None
    data = files.pread(fileno, header.size, position)
    if len(data) < header.size or crc32c(memoryview(data)[CRC_START:]) != header.crc:
        return None
    return FoundBatch(position, header)


def next_batch(files: Files, fileno: int, start: int, end: int, least_offset: int) -> FoundBatch | None:
    """The first whole batch that begins at or past byte `start` and whose offsets are at or past `least_offset`.

    Raises:
        OSError: the disk cannot read there; unreadable stretches are not skipped.
    """
    high = least_offset >> HIGH_HALF
    halves = b"|".join(re.escape(value.to_bytes(4, "big")) for value in (high, high + 1))
    pattern = re.compile(b"(?=(?:" + halves + b").{%d}\\x02)" % (MAGIC_POSITION - 4), re.DOTALL)
    position = start
    while position + HEADER_SIZE <= end:
        data = files.pread(fileno, SEARCH_BYTES, position)
        for match in pattern.finditer(data):
            found = batch_at(files, fileno, position + match.start(), end, least_offset)
            if found is not None:
                return found
        if len(data) <= HEADER_SIZE:
            return None
        position += len(data) - HEADER_SIZE  # a header may begin just before the end of the searched bytes
    return None
