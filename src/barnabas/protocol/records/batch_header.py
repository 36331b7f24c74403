"""The 61 bytes in front of every record batch, and walking from batch to batch.

Owns the layout of the header (magic 2, the only one since Kafka 4.0). Numbers are big-endian:

    0  base offset          int64     23  last offset delta    int32
    8  batch length         int32     27  base timestamp       int64   (ms)
   12  leader epoch         int32     35  max timestamp        int64   (ms)
   16  magic                int8      43  producer id          int64
   17  CRC-32C of all after uint32    51  producer epoch       int16
   21  attributes           int16     53  base sequence        int32
                                      57  records count        int32

Rules
  1. The CRC does not cover base offset and leader epoch: the leader sets them without changing the rest.
  2. `batch_length` counts the bytes after itself, so a batch fills `batch_length + 12` bytes.
  3. Attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon (in the base timestamp).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError

Buffer = bytes | bytearray | memoryview

HEADER_SIZE = 61
LEAST_LENGTH = 14  # smallest length field of a batch of any format
LENGTH_OVERHEAD = 12  # bytes of base offset and length, which the length field does not count
CRC_START = 21  # the CRC covers the batch from here to its end
CRC_POSITION = 17
MAGIC_POSITION = 16
_ATTRIBUTES_POSITION = 22  # position of the lower byte, which has all attribute bits
MAGIC = 2
MAX_LEGACY_MAGIC = 1
# Index: codec number in the attributes; the names are those of Kafka's tools.
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

HEADER = struct.Struct(">qiibIhiqqqhii")
PLACE = struct.Struct(">qii")  # base offset, length, leader epoch: the fields that a leader may change
_PRODUCER, _PRODUCER_POSITION = struct.Struct(">qhi"), 43

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1  # producers send this value
NO_TIMESTAMP = -1
MAX_SEQUENCE = 2**31 - 1


class BatchHeader(NamedTuple):
    """A parsed header; the fields are in the order of the bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch in bytes."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The codec's number, 0 to 7; 5 to 7 are not in use."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time (ms) from which compaction may drop the batch's tombstones or marker; None before compaction has set it (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap to 0 after 2^31 - 1. NO_SEQUENCE if the batch has no sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked.

    Raises:
        KafkaError: CORRUPT_MESSAGE if fewer than 61 bytes are left.
    """
    try:
        return BatchHeader._make(HEADER.unpack_from(buffer, position))
    except struct.error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record batch is shorter than its header.") from None


def is_transactional(records: Buffer) -> bool:
    """Whether `records` begin with a batch of a transaction."""
    return (
        len(records) >= HEADER_SIZE
        and records[_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT != 0
        and records[MAGIC_POSITION] == MAGIC
    )


def producer_of(records: Buffer) -> tuple[int, int, int]:
    """Producer id, epoch and first sequence of the first batch of `records`, which must have at least a whole header."""
    found: tuple[int, int, int] = _PRODUCER.unpack_from(records, _PRODUCER_POSITION)
    return found


def split_batches(buffer: Buffer, *, allow_partial: bool = False) -> list[tuple[int, BatchHeader]]:
    """Position and header of every batch that fills `buffer`.

    Args:
        allow_partial: leave out a cut last batch, since a fetch may end with one.

    Raises:
        KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT for the formats before Kafka 0.11, CORRUPT_MESSAGE for other errors.
    """
    batches: list[tuple[int, BatchHeader]] = []
    position, end = 0, len(buffer)
    while position < end:
        if end - position < HEADER_SIZE and allow_partial:
            break
        check_magic(buffer, position)
        header = read_header(buffer, position)
        if header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record batch length {header.batch_length} is less than its header.")
        if position + header.size > end:
            if allow_partial:
                break
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record batch is cut off.")
        batches.append((position, header))
        position += header.size
    return batches


def only_batch(buffer: Buffer) -> Buffer:
    """The bytes of the one batch that a producer may send at a time; bytes after it are ignored if they are too few for another one.

    Raises:
        KafkaError: INVALID_RECORD if there is no whole batch, more than one, or an old format; CORRUPT_MESSAGE if the bytes are no batch.
    """
    size = framed_size(buffer, 0)
    if size is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Produce requests must have a whole record batch for each partition.")
    if buffer[MAGIC_POSITION] != MAGIC:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, "Produce requests are only allowed to contain record batches with magic version 2."
        )
    if framed_size(buffer, size) is not None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, "Produce requests are only allowed to contain exactly one record batch per partition."
        )
    if size < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A record batch of {size} bytes is shorter than its header.")
    return buffer[:size]


def framed_size(buffer: Buffer, position: int) -> int | None:
    """The size in bytes of the batch (of any format) at `position`; None if it is not complete."""
    left = len(buffer) - position
    if left < LENGTH_OVERHEAD:
        return None
    (length,) = struct.unpack_from(">i", buffer, position + 8)
    if length < LEAST_LENGTH:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"Record size {length} is less than the minimum record overhead ({LEAST_LENGTH})."
        )
    if left <= MAGIC_POSITION:
        return None
    magic = buffer[position + MAGIC_POSITION]
    if magic > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}.")
    size: int = length + LENGTH_OVERHEAD
    return size if size <= left else None


def check_magic(buffer: Buffer, position: int = 0) -> None:
    """Refuse a batch at `position` whose magic is not 2."""
    if len(buffer) - position <= MAGIC_POSITION:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record batch is shorter than its header.")
    magic = buffer[position + MAGIC_POSITION]
    if magic == MAGIC:
        return
    if magic <= MAX_LEGACY_MAGIC:
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"Message format {magic} is not supported any more.")
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record batch: {magic}.")
