"""Converts batches to the message sets of Fetch 0 to 3: magic 0 for versions 0 and 1, magic 1 for 2 and 3.

Fields that the old formats lack are left out: headers, producer and transaction of a batch, control batches, and in magic 0
timestamps. Offsets stay unchanged, with the gaps of markers and compaction. A compressed batch becomes a wrapper with the same
codec.

Rules
  1. A reader gets whole batches, because a wrapper cannot be cut; only in an uncompressed batch, messages before the reader's offset are
     left out.
  2. zstd is newer than these formats: the set ends before a batch with zstd. If this batch is the first, it is refused, as in Kafka.
  3. The decompressed bytes of a batch count against an allowance; the set ends when the allowance is used up, but the first batch is
     always converted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    split_batches,
)
from barnabas.protocol.records.compression import Compression, compress, decompress
from barnabas.protocol.records.message_sets.lz4_frames import with_old_checksum
from barnabas.protocol.records.message_sets.message_codec import write_message
from barnabas.protocol.records.record import Record, read_records


class Converted(NamedTuple):
    """A message set.

    Fields:
        unfolded: number of bytes of records that were decompressed for it.
        next_offset: the offset after the last batch; if `is_empty`, the reader can continue there without missing a message.
        is_empty: there is no message at or after the reader's offset, because compaction removed them.
    """

    data: bytearray
    unfolded: int
    next_offset: int
    is_empty: bool


def message_set_of(batches: Buffer, magic: int, offset: int, allowance: int = limits.MAX_CONVERTED_BYTES) -> Converted:
    """The message set for a reader at `offset`, from `batches`; the last batch may be cut off.

    Raises:
        KafkaError: UNSUPPORTED_COMPRESSION_TYPE if the first batch with records uses zstd; others as `split_batches` and `read_record`.
    """
    out = bytearray()
    view = memoryview(batches)
    unfolded, next_offset, last = 0, offset, -1
    for position, header in split_batches(view, allow_partial=True):
        if header.is_control or header.last_offset < offset or not header.records_count:
            next_offset = max(next_offset, header.next_offset)
            continue
        if header.compression == Compression.ZSTD:
            if out:
                break
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Message sets cannot be compressed with zstd.")
        data = _unfolded(
            view[position + HEADER_SIZE : position + header.size], header.compression, allowance - unfolded, may_wait=unfolded > 0
        )
        if data is None:
            break
        unfolded += len(data)
        last = max(last, _convert(read_records(data, header), header, magic, offset, out))
        next_offset = header.next_offset
    return Converted(out, unfolded, next_offset, is_empty=last < offset)


def _unfolded(data: memoryview, codec: int, allowance: int, *, may_wait: bool) -> bytes | bytearray | None:
    """The records of a batch; None if the batch must wait for the next answer."""
    if not may_wait:
        return decompress(codec, data)
    if len(data) > allowance:
        return None
    try:
        return decompress(codec, data, allowance)
    except KafkaError as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return None
        raise


def _convert(records: Iterable[Record], header: BatchHeader, magic: int, offset: int, out: bytearray) -> int:
    """Append the messages of one batch; returns the offset of the last one."""
    attributes = header.attributes & LOG_APPEND_TIME_BIT if magic else 0
    codec, last = header.compression, -1
    if codec == Compression.NONE:
        for record in records:
            last = record.offset
            if last >= offset:
                write_message(last, magic, attributes, record.timestamp, record.key, record.value, out)
        return last
    inner = bytearray()
    newest, start = NO_TIMESTAMP, -1
    for record in records:
        last, newest = record.offset, max(newest, record.timestamp)
        if magic and start < 0:
            start = last  # inner offsets are relative to the first message
        write_message(last - max(start, 0), magic, attributes, record.timestamp, record.key, record.value, inner)
    data = compress(codec, inner)
    if codec == Compression.LZ4 and magic == 0:
        data = with_old_checksum(data)
    write_message(last, magic, attributes | codec, newest, None, data, out)
    return last
