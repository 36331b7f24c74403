"""Batches as a source sends them: where to divide them, and what of a header stays the same."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)

PIECE_BYTES = 512 * 1024  # appended before the loop gets a turn


def kept_by_compaction(header: BatchHeader) -> tuple[int, ...]:
    """The fields of a batch that compaction does not change."""
    kind = header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)
    return header.base_offset, header.last_offset, header.producer_id, header.producer_epoch, header.base_sequence, kind


def last_leader_epoch(records: memoryview) -> int:
    """The leader epoch of the last batch; `records` are whole batches. One answer may have batches of several epochs."""
    position = 0
    while (following := position + _size(records, position)) < len(records):
        position = following
    return read_header(records, position).partition_leader_epoch


def pieces(records: memoryview) -> Iterator[memoryview]:
    """Whole batches in pieces of about PIECE_BYTES, without a cut last batch.

    Raises:
        KafkaError: CORRUPT_MESSAGE, a batch is shorter than its header.
    """
    start = position = 0
    while len(records) - position >= HEADER_SIZE:
        size = _size(records, position)
        if size < HEADER_SIZE:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The source sent a batch of {size} bytes.")
        if position + size > len(records):
            break
        position += size
        if position - start >= PIECE_BYTES:
            yield records[start:position]
            start = position
    if position > start:
        yield records[start:position]


def _size(records: memoryview, position: int) -> int:
    return int.from_bytes(records[position + 8 : position + 12], "big") + LENGTH_OVERHEAD
