"""Finishes a batch of encoded records: compression, header and checksum.

`record.build_batch` makes batches from records one by one; here the records are bytes already (`encode_kernels`).
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.records.batch_header import (
    CRC_POSITION,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
)
from barnabas.protocol.records.compression import Compression, compress
from barnabas.protocol.records.crc import crc32c


class Stamp(NamedTuple):
    """The producer of a batch, and its first sequence number in the partition."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False


def seal_batch(
    room: bytearray | memoryview,
    count: int,
    timestamp_ms: int,
    stamp: Stamp,
    codec: Compression = Compression.NONE,
    max_ms: int | None = None,
) -> bytes:
    """A batch of `count` records.

    Args:
        room: HEADER_SIZE bytes that are overwritten, and after them the records.
        timestamp_ms: the time from which the timestamp deltas of the records count.
        max_ms: the greatest time of the records; None if all have the same time, with timestamp deltas of 0.
    """
    if codec != Compression.NONE:
        room = bytearray(HEADER_SIZE) + compress(codec, memoryview(room)[HEADER_SIZE:])
    attributes = int(codec) | (TRANSACTIONAL_BIT if stamp.is_transactional else 0)
    HEADER.pack_into(
        room, 0, 0, len(room) - LENGTH_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0, attributes, count - 1, timestamp_ms,
        timestamp_ms if max_ms is None else max_ms, stamp.producer_id, stamp.producer_epoch, stamp.base_sequence, count,
    )  # fmt: skip
    checksum = crc32c(memoryview(room)[CRC_START:])
    room[CRC_POSITION : CRC_POSITION + 4] = checksum.to_bytes(4, "big")
    return bytes(room)
