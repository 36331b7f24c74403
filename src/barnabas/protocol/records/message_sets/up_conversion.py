"""Converts a message set of Produce 0 to 2 to the batch that is stored instead.

One set becomes one batch, with the codec of the topic's settings. This module makes the checks that Kafka 3.9 makes of the old formats,
in Kafka's order. Afterwards `validate` makes the checks that every batch must pass (keys, times, sizes).

Rules
  1. All messages have one format. Either the whole set is compressed, as one wrapper without a wrapper inside, or no message is.
  2. The offsets of producers are ignored, because old clients count them in several ways. Only the order of the messages
     counts.
  3. A message of magic 0 has no time and gets -1, or the time of the append if the topic's settings say so.
"""

from __future__ import annotations

from barnabas import limits
from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import InvalidRecordError, KafkaError
from barnabas.protocol.records.batch_header import MAGIC, MAGIC_POSITION, MAX_LEGACY_MAGIC, NO_TIMESTAMP, Buffer, framed_size
from barnabas.protocol.records.compression import NAMES, Compression, decompress
from barnabas.protocol.records.message_sets.lz4_frames import with_right_checksum
from barnabas.protocol.records.message_sets.message_codec import Message, read_messages
from barnabas.protocol.records.record import Record, build_batch, invalid
from barnabas.protocol.records.validate import codec_level

MAX_INT64 = 2**63 - 1


def batch_of(records: Buffer, config: TopicConfig) -> Buffer | None:
    """The batch to append for a partition's records in a Produce request below version 3; None if there is no whole message.

    Batches (magic 2) in such a request are returned unchanged; the code that appends them checks them.

    Args:
        config: settings of the topic.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE.
        InvalidRecordError: INVALID_TIMESTAMP.
    """
    if framed_size(records, 0) is None:
        return None
    if records[MAGIC_POSITION] == MAGIC:
        _refuse_mixture(records)
        return records
    messages, codec = _unwrapped(read_messages(records, limits.MAX_BATCH_RECORDS, config.max_message_bytes))
    checked = [_checked(index, message, config) for index, message in enumerate(messages)]
    times = [record.timestamp for record in checked]
    if max(times) - checked[0].timestamp > MAX_INT64:
        raise _invalid_time(times.index(max(times)), "is too far from that of the first message")
    target = codec if config.compression_type == "producer" else NAMES[config.compression_type]
    return build_batch(checked, compression=target, level=codec_level(target, config))


def _refuse_mixture(records: Buffer) -> None:
    """Refuse batches that messages of an old format follow."""
    position = 0
    while (size := framed_size(records, position)) is not None:
        if records[position + MAGIC_POSITION] <= MAX_LEGACY_MAGIC:
            raise invalid("A message set is behind a batch.")
        position += size


def _unwrapped(messages: list[Message]) -> tuple[list[Message], int]:
    """The messages that the producer wrote, and the codec of their wrapper."""
    first = messages[0]
    if any(message.magic != first.magic for message in messages):
        raise invalid("The messages of a set are of different formats.")
    wrapper = next((message for message in messages if message.compression), None)
    if wrapper is None:
        return messages, Compression.NONE
    if len(messages) > 1:
        raise invalid("A compressed message set must be the only one of its partition.")
    if wrapper.value is None:
        raise invalid("Found invalid compressed record set with null value.")
    codec, data = wrapper.compression, wrapper.value
    if codec == Compression.ZSTD:
        raise invalid("Messages of magic 0 and 1 cannot be compressed with zstd.")
    if codec == Compression.LZ4 and wrapper.magic == 0:
        data = with_right_checksum(data)
    inner = read_messages(decompress(codec, data), limits.MAX_BATCH_RECORDS)
    if not inner:
        raise invalid("Found invalid compressed record set with no inner records.")
    for message in inner:
        if message.magic != wrapper.magic or message.compression:
            raise invalid("A compressed message set has a message of another format, or a compressed one.")
    if wrapper.has_log_append_time:
        inner = [each._replace(timestamp=wrapper.timestamp, attributes=wrapper.attributes) for each in inner]
    return inner, codec


def _checked(index: int, message: Message, config: TopicConfig) -> Record:
    timestamp = message.timestamp
    if timestamp < NO_TIMESTAMP:
        raise _invalid_time(index, "is negative")
    if message.has_log_append_time and (timestamp == NO_TIMESTAMP or config.message_timestamp_type != "CreateTime"):
        raise _invalid_time(index, "is said to be that of the append, which a producer cannot know")
    return Record(0, timestamp, message.key, message.value)


def _invalid_time(index: int, reason: str) -> KafkaError:
    return InvalidRecordError(
        ErrorCode.INVALID_TIMESTAMP,
        "One or more records have been rejected due to invalid timestamp",
        [(index, f"The timestamp of the message {reason}.")],
    )
