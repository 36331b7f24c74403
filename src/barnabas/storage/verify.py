"""Verifies the batches of a stretch of a segment before they are served.

Owns the CRC check of a region and the measuring of its damage. It blocks, and runs in a thread.
"""

from __future__ import annotations

import errno
from struct import Struct
from typing import NamedTuple

from barnabas.protocol.records.batch_header import CRC_START, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.batch_search import next_batch
from barnabas.storage.files import Files
from barnabas.storage.integrity import NOTHING_FOLLOWS, Damage

STEP_BYTES = 256 * 1024  # per read; fits into the cache of a core
SECTOR_BYTES = 4096
WRONG_CRC = "the CRC does not match"
_LENGTH = Struct(">8xi")
_OFFSETS = Struct(">q15xi")  # base offset, last offset delta


class Verified(NamedTuple):
    """The bytes up to `end` are whole batches, whose offsets end before `next_offset`; `damage` follows them, or None.

    `has_records`: one of the batches is more than a header. `size`: bytes of the file.
    """

    end: int
    damage: Damage | None
    size: int
    next_offset: int
    has_records: bool


def verify(
    files: Files, fileno: int, start: int, end: int, least_offset: int, end_offset: int, reach: int = 0, *, tail: int = 0
) -> Verified:
    """Check the batches that fill the bytes [start, end).

    Args:
        least_offset: lower bound of the first batch's base offset.
        end_offset: end offset of the segment; no batch reaches past it.
        reach: as in `FileRegion`: if not 0, the last batch may go past `end`, and then does not count, unless it is the first.
        tail: start of the bytes that this process wrote, read before `end_offset` was: a batch there may be newer than `end_offset`.

    Raises:
        OSError: the disk fails, except that it cannot read certain bytes.
    """
    position, expected, gap, has_records = start, least_offset, False, False
    before = start, least_offset
    data, data_start = memoryview(b""), start
    while position < end:
        at = position - data_start
        size = _size_at(data, at)
        if not size or (size <= end - position and at + size > len(data)):
            data, data_start, at = _read_batch(files, fileno, size, position, end), position, 0
            size = _size_at(data, 0)
        if reach and (size > end - position or end - position < HEADER_SIZE):
            if position == start and end < start + size <= reach:
                end = start + size
                continue
            if position > start or reach == end:
                break
        reason = fault_of(data[at : at + size], size, end - position)
        if reason is None:
            base_offset, delta = _OFFSETS.unpack_from(data, at)
            reason, may_be_before = _contradiction(base_offset, delta, expected, end_offset)
            if may_be_before and gap and position > start:
                position, expected = before
        if reason is not None:
            damage = measure(files, fileno, position, expected, reason)
            return Verified(position, damage, files.size(fileno), expected, has_records)
        gap = position == start or base_offset > expected
        before = position, expected
        expected = base_offset + delta + 1
        has_records = has_records or size > HEADER_SIZE
        position += size
    if gap and _contradicts(files, fileno, position, expected, end_offset, tail):
        position, expected = before
        damage = measure(files, fileno, position, expected, "the base offset does not lead to the next batch")
        return Verified(position, damage, files.size(fileno), expected, has_records)
    return Verified(position, None, files.size(fileno), expected, has_records)


def _contradiction(base_offset: int, delta: int, expected: int, end_offset: int) -> tuple[str | None, bool]:
    """The fault in the offsets of a batch, which follows batches that end before `expected`, or None.

    Also whether the batch before may be the wrong one, because it claims too high offsets: this batch begins at one of them, or has no
    space after them.
    """
    if base_offset < expected:
        return "the base offset goes back", True
    if base_offset + delta >= end_offset:
        return "the offsets lead past the segment", expected + delta >= end_offset
    return None, False


def _contradicts(files: Files, fileno: int, position: int, expected: int, end_offset: int, tail: int) -> bool:
    """Whether the batch at `position`, after the verified ones, shows that the last of these claims too much."""
    size = files.size(fileno)
    head = _read(files, fileno, HEADER_SIZE, position, size)
    if len(head) < HEADER_SIZE or head[16] != MAGIC:
        return False
    base_offset, delta = _OFFSETS.unpack_from(head)
    if base_offset < expected:
        return True
    if position >= tail or not _contradiction(base_offset, delta, expected, end_offset)[1]:
        return False
    batch = _read_batch(files, fileno, 0, position, size)
    claimed = _size_at(batch, 0)
    # A valid CRC covers the offset count of this batch, so the batch before is wrong.
    return fault_of(batch[:claimed], claimed, size - position) is None


def _read_batch(files: Files, fileno: int, size: int, position: int, end: int) -> memoryview:
    """The batch at `position` and the bytes after it within a step; all of the batch that is before `end`."""
    data = memoryview(_read(files, fileno, max(STEP_BYTES, size), position, end))
    size = _size_at(data, 0)
    if len(data) < size <= end - position:
        data = memoryview(_read(files, fileno, size, position, end))
    return data


def _size_at(data: memoryview, at: int) -> int:
    """Bytes of the batch that begins at `at`; 0 if its header is not complete."""
    if at + HEADER_SIZE > len(data):
        return 0
    (length,) = _LENGTH.unpack_from(data, at)
    return int(max(length, 0)) + LENGTH_OVERHEAD


def fault_of(batch: memoryview, size: int, left: int) -> str | None:
    """The error in a batch that claims `size` bytes, of which `batch` could be read; `left` bytes are available."""
    if len(batch) < min(size, left) or len(batch) < HEADER_SIZE:
        return "the disk cannot read it"
    if batch[16] != MAGIC or size < HEADER_SIZE or size > left or batch[23] >= 0x80:
        return "it is no batch"
    if crc32c(batch[CRC_START:]) != int.from_bytes(batch[17:21], "big"):
        return WRONG_CRC
    return None


def _read(files: Files, fileno: int, size: int, position: int, end: int) -> bytes:
    """The bytes from `position` on, up to the first unreadable sector."""
    size = min(size, end - position)
    try:
        return files.pread(fileno, size, position)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    parts: list[bytes] = []
    while size > 0:
        step = min(SECTOR_BYTES - position % SECTOR_BYTES, size)
        try:
            part = files.pread(fileno, step, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            break
        parts.append(part)
        position, size = position + step, size - step
    return b"".join(parts)


def measure(files: Files, fileno: int, position: int, first_offset: int, reason: str, within: int | None = None) -> Damage:
    """The extent of the damage that begins at `position`: up to the next whole batch, or to the end of the file.

    Args:
        within: the byte where the search ends; None for the file's end. If no batch is found before, it is the `end` of the result.
    """
    size = files.size(fileno) if within is None else within
    start = position + 1
    while start < size:
        try:
            found = next_batch(files, fileno, start, size, first_offset)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            start += SECTOR_BYTES - start % SECTOR_BYTES
            continue
        if found is None:
            break
        return Damage(position, found.position, first_offset, found.header.base_offset, reason)
    return Damage(position, size, first_offset, NOTHING_FOLLOWS, reason)
