"""The checks of a leader before it appends a batch, and its rewriting of batches.

Owns the checks of Kafka's LogValidator for magic 2, in Kafka's order, so that a batch with two errors gets the same answer:

    base offset not 0, size over max.message.bytes, CRC, offset range against count, control batch, sequence
    then record by record: structure, offset delta, key on a compacted topic, timestamp

Rules
  1. The given buffer is not changed.
  2. A batch that passes unchanged is not copied. The header is rewritten if the timestamp type or the largest timestamp differ
     (LogAppendTime, or a wrong value from the producer), and the records if `compression.type` names another codec.
  3. This broker itself has just built a coordinator's batch. It is checked only if the topic's settings could change or refuse
     it, and without the checks for mistakes of clients.

Three checks are stricter than Kafka's. Offset deltas of uncompressed batches are checked too (Kafka checks only those of
compressed batches, and serves the others to consumers unchanged). Codecs 5 to 7 get their own error instead of
UNKNOWN_SERVER_ERROR. The number of records in a batch is limited (`limits.MAX_BATCH_RECORDS`), because a small batch may
decompress to millions of tiny records; for a faulty batch with more than `limits.MAX_RECORDS_ONE_BY_ONE` the error does not
name the record.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas import limits
from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import InvalidRecordError, KafkaError
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
)
from barnabas.protocol.records.compression import NAMES, Compression, compress, unfold
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.record import assemble, invalid, read_record
from barnabas.protocol.records.scan import scan_records
from barnabas.tuples import new_tuple

MAX_INT64 = 2**63 - 1
SHOWN_ERRORS = 3  # record errors that the message names; the response lists all


class AppendOrigin(Enum):
    """The origin of an append at a leader: a producer, or a coordinator of this broker."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class ValidatedBatch(NamedTuple):
    """A batch that may be appended.

    Fields:
        header: the header to store, apart from base offset and leader epoch.
        rewritten: None if the batch is stored as it came; otherwise the whole new batch, with its CRC.
    """

    header: BatchHeader
    rewritten: bytes | None


CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR
STORED_AS_THEY_COME = ("producer", "uncompressed")  # with these compression types, batches without a codec are stored unchanged


def validate_batch(
    buffer: Buffer,
    header: BatchHeader,
    *,
    config: TopicConfig,
    now_ms: int,
    origin: AppendOrigin,
    position: int = 0,
) -> ValidatedBatch:
    """Check the batch at `position` of `buffer`; `header` was read from there.

    Raises:
        KafkaError: INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE.
        InvalidRecordError: INVALID_RECORD or INVALID_TIMESTAMP, with the invalid records.
    """
    size = header.batch_length + LENGTH_OVERHEAD
    if origin is COORDINATOR and size <= config.max_message_bytes and is_stored_as_it_comes(config):
        return new_tuple(ValidatedBatch, (header, None))
    end = position + size
    if origin is CLIENT and header.base_offset != 0:
        raise invalid(f"The baseOffset of the record batch should be 0, but it is {header.base_offset}")
    if size > config.max_message_bytes:
        raise too_large(size, config)
    if size < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record batch length {header.batch_length} is less than a header.")
    if end > len(buffer):
        raise invalid(f"Record batch length {header.batch_length} is more than the bytes that came.")
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    if crc32c(view[position + CRC_START : end]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record is corrupt (stored crc does not match).")
    attributes = header.attributes
    if origin is CLIENT and (
        header.records_count <= 0
        or header.last_offset_delta != header.records_count - 1
        or attributes & CONTROL_BIT
        or (header.base_sequence < 0 and header.producer_id != NO_PRODUCER_ID)
    ):
        raise _client_error(header)

    codec = attributes & COMPRESSION_MASK
    data = _unfolded(buffer, position, header) if codec else view[position + HEADER_SIZE : end]
    max_timestamp = _check_records(data, header, config, now_ms)
    if config.message_timestamp_type != "CreateTime":
        if attributes & LOG_APPEND_TIME_BIT and origin is CLIENT:
            raise _claims_append_time(header)
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = now_ms
    else:
        attributes &= ~LOG_APPEND_TIME_BIT  # producers cannot set this bit
    target = codec if config.compression_type == "producer" or attributes & CONTROL_BIT else NAMES[config.compression_type]
    if target == codec and max_timestamp == header.max_timestamp and attributes == header.attributes:
        return new_tuple(ValidatedBatch, (header, None))
    return _rewrite(
        header._replace(attributes=attributes & ~COMPRESSION_MASK | target, max_timestamp=max_timestamp),
        view[position + HEADER_SIZE : end] if target == codec else compress(target, data, codec_level(target, config)),
        config,
    )


def is_stored_as_it_comes(config: TopicConfig) -> bool:
    """Whether the topic's settings let the leader store a good batch without codec unchanged."""
    return config.message_timestamp_type == "CreateTime" and config.compression_type in STORED_AS_THEY_COME


def _unfolded(buffer: Buffer, position: int, header: BatchHeader) -> Buffer:
    if header.records_count > limits.MAX_BATCH_RECORDS:
        told = f"The record batch has {header.records_count} records, and may have {limits.MAX_BATCH_RECORDS}."
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, told)
    return unfold(header.attributes & COMPRESSION_MASK, memoryview(buffer)[position + HEADER_SIZE : position + header.size])


def _check_records(data: Buffer, header: BatchHeader, config: TopicConfig, now_ms: int) -> int:
    """Check the records; returns their largest timestamp."""
    scan = scan_records(data, header.records_count)
    if scan is None:
        return _check_one_by_one(data, header, config, now_ms)
    oldest = header.base_timestamp + scan.min_timestamp_delta
    newest = header.base_timestamp + scan.max_timestamp_delta
    if oldest != NO_TIMESTAMP or newest != NO_TIMESTAMP:
        if oldest < 0 or newest > MAX_INT64:
            return _check_one_by_one(data, header, config, now_ms)
        is_out_of_time = (
            now_ms - oldest > config.message_timestamp_before_max_ms or newest - now_ms > config.message_timestamp_after_max_ms
        )
        if is_out_of_time and config.message_timestamp_type == "CreateTime":
            return _check_one_by_one(data, header, config, now_ms)
    if scan.has_null_key and "compact" in config.cleanup_policy:
        return _check_one_by_one(data, header, config, now_ms)
    return newest


def _check_one_by_one(data: Buffer, header: BatchHeader, config: TopicConfig, now_ms: int) -> int:
    """Like `_check_records`, but slow and exact, for unusual batches."""
    if header.records_count > limits.MAX_RECORDS_ONE_BY_ONE:
        raise invalid(f"Found an invalid record in a batch of {header.records_count}.")
    data = bytes(data) if type(data) is memoryview else data
    compacted = "compact" in config.cleanup_policy and not header.attributes & CONTROL_BIT
    check_time = config.message_timestamp_type == "CreateTime"
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    position, newest = 0, NO_TIMESTAMP
    from_client = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME_BIT)
    for index in range(header.records_count):
        record, position = read_record(data, position, from_client, index)
        newest = max(newest, record.timestamp)
        if record.offset != header.base_offset + index:
            errors.append((index, f"Record {index} does not have incremental offsets, its offset delta is not {index}."))
        elif compacted and record.key is None:
            errors.append((index, "Compacted topic cannot accept message without key."))
        elif check_time and not _is_in_time(record.timestamp, config, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, _time_error(record.timestamp, record.offset, config, now_ms)))
    if position != len(data):
        raise invalid("Incorrect declared batch size, records still remaining in file.")
    if errors:
        raise InvalidRecordError(code, _summary(code, errors), errors)
    return newest


def _is_in_time(timestamp: int, config: TopicConfig, now_ms: int) -> bool:
    if timestamp == NO_TIMESTAMP:
        return True
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    return abs(timestamp) <= MAX_INT64 and now_ms - timestamp <= before and timestamp - now_ms <= after


def _time_error(timestamp: int, offset: int, config: TopicConfig, now_ms: int) -> str:
    earliest, latest = now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def _claims_append_time(header: BatchHeader) -> InvalidRecordError:
    told = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
    at_fault = range(min(header.records_count, limits.MAX_RECORDS_ONE_BY_ONE))
    code = ErrorCode.INVALID_TIMESTAMP
    return InvalidRecordError(code, _summary(code, []), [(index, told) for index in at_fault])


def _summary(code: ErrorCode, errors: list[tuple[int, str]]) -> str:
    if code == ErrorCode.INVALID_TIMESTAMP:
        return "One or more records have been rejected due to invalid timestamp"
    shown = "; ".join(f"{index}: {text}" for index, text in errors[:SHOWN_ERRORS])
    return f"One or more records have been rejected due to {len(errors)} record errors in total, the first of them: {shown}"


def _client_error(header: BatchHeader) -> KafkaError:
    first, last, count = header.base_offset, header.last_offset, header.records_count
    if last < first:
        return invalid(f"Batch has an invalid offset range: [{first}, {last}]")
    if count <= 0:
        return invalid(f"Invalid reported count for record batch: {count}")
    if last - first + 1 != count:
        return invalid(f"Inconsistent batch offset range [{first}, {last}] and count of records {count}")
    if header.is_control:
        return invalid("Clients are not allowed to write control records")
    return invalid(f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}")


def _rewrite(header: BatchHeader, body: Buffer, config: TopicConfig) -> ValidatedBatch:
    batch = assemble(header, body)
    if len(batch) > config.max_message_bytes:
        raise too_large(len(batch), config)
    return ValidatedBatch(header._replace(batch_length=len(batch) - LENGTH_OVERHEAD), batch)


def codec_level(codec: int, config: TopicConfig) -> int | None:
    """The level that a topic sets for a codec; None for the codec's default."""
    if codec == Compression.GZIP:
        return config.compression_gzip_level
    if codec == Compression.LZ4:
        return config.compression_lz4_level
    return config.compression_zstd_level if codec == Compression.ZSTD else None


def too_large(size: int, config: TopicConfig) -> KafkaError:
    limit = config.max_message_bytes
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size is {size} bytes which exceeds the maximum configured value of {limit}.",
    )
