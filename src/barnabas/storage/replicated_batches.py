"""Checks the batches from a leader before they are written, and groups them for single writes.

Pure functions of bytes and numbers, for `LogAppender.append_as_follower`.

Rules
  1. Every batch's CRC is checked, so that followers and readers get exactly the bytes that the leader stored.
  2. Valid batches before an invalid one are kept; the error is raised after them.
  3. A stretch has one leader epoch and fits into one segment.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    PLACE,
    BatchHeader,
    check_magic,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.tuples import new_tuple

LEAST_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD


def good_batches(view: memoryview, next_offset: int) -> tuple[list[BatchHeader], KafkaError | None]:
    """The headers of the batches that follow each other from the start of `view`, without a cut last one; and the error after them.

    Args:
        next_offset: the log's end; the first batch begins there or, in a compacted log, past it.
    """
    headers: list[BatchHeader] = []
    position, end = 0, len(view)
    while end - position >= HEADER_SIZE:
        if view[position + MAGIC_POSITION] != MAGIC:
            try:
                check_magic(view, position)
            except KafkaError as error:
                return headers, error
        header: BatchHeader = new_tuple(BatchHeader, HEADER.unpack_from(view, position))
        length = header.batch_length
        if length < LEAST_LENGTH:
            return headers, _corrupt(f"Record batch length {length} is less than its header.")
        after = position + length + LENGTH_OVERHEAD
        if after > end:
            break
        if crc32c(view[position + CRC_START : after]) != header.crc:
            return headers, _corrupt(f"The leader's batch at offset {header.base_offset} fails its CRC.")
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            text = f"The leader's batch at offset {header.base_offset} does not follow {next_offset}."
            return headers, KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        headers.append(header)
        next_offset = header.base_offset + header.last_offset_delta + 1
        position = after
    return headers, None


def set_leader_epoch(view: memoryview, leader_epoch: int) -> None:
    """Set the leader epoch of the batches that follow each other from the start of `view`; it is not under their CRCs."""
    position, end = 0, len(view)
    while end - position >= HEADER_SIZE and view[position + MAGIC_POSITION] == MAGIC:
        base_offset, length, _ = PLACE.unpack_from(view, position)
        if length < LEAST_LENGTH:
            return
        PLACE.pack_into(view, position, base_offset, length, leader_epoch)
        position += length + LENGTH_OVERHEAD


def stretch_from(headers: Sequence[BatchHeader], first: int, *, room: int, time: int, offset: int) -> tuple[int, int]:
    """The batches from `first` on that can be written together, at least one: the index after the last of them, and their bytes.

    Args:
        room: bytes that the segment may take.
        time: the largest timestamp that the segment may take.
        offset: the last offset that the segment may take.
    """
    epoch = headers[first].partition_leader_epoch
    size, at, count = headers[first].size, first + 1, len(headers)
    while at < count:
        header = headers[at]
        after = size + header.batch_length + LENGTH_OVERHEAD
        if (
            header.partition_leader_epoch != epoch
            or after > room
            or header.max_timestamp > time
            or header.base_offset + header.last_offset_delta > offset
        ):
            break
        size, at = after, at + 1
    return at, size


def _corrupt(text: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
