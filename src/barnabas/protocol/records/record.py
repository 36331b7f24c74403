"""Reads the records of a batch one by one, and builds batches from records, in plain Python.

For coordinators, tools and tests; the produce and fetch paths do not use it, because they handle batches as bytes. A record is

    length varint | attributes int8 | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value | header count varint, headers (key, value as above)

Lengths of -1 stand for null. Deltas are from the header's base timestamp and base offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    check_magic,
    read_header,
)
from barnabas.protocol.records.compression import Compression, compress, decompress
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.varint import MalformedVarint, read_varint, read_varlong, varint
from barnabas.tuples import new_tuple

Headers = tuple[tuple[str, bytes | None], ...]
_LENGTH, _LENGTH_AT, _CRC = Struct(">i"), 8, Struct(">I")
_BEFORE, _COVERED = Struct(">qiibI"), Struct(">hiqqqhii")  # header fields up to the CRC, and those that the CRC covers


class Record(NamedTuple):
    """One record. `offset` and `timestamp` (ms) are absolute; a null key or value is None."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class OwnBatch(NamedTuple):
    """A batch that a broker creates itself: its bytes, in which the leader of a partition sets its own fields, and its header."""

    data: bytearray
    header: BatchHeader


def records_of(buffer: Buffer, position: int, header: BatchHeader) -> bytes | bytearray:
    """The uncompressed bytes of the records of the batch at `position`."""
    return decompress(header.attributes & COMPRESSION_MASK, memoryview(buffer)[position + HEADER_SIZE : position + header.size])


def iterate_records(buffer: Buffer, position: int = 0) -> Iterator[Record]:
    """The records of the one batch at `position` (`split_batches` finds the batches).

    Raises:
        KafkaError: INVALID_RECORD if the records do not fill the batch; other errors as `decompress`.
    """
    check_magic(buffer, position)
    header = read_header(buffer, position)
    if header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD or position + header.size > len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record batch is cut off.")
    yield from read_records(records_of(buffer, position, header), header)


def read_records(data: Buffer, header: BatchHeader) -> Iterator[Record]:
    """The records in the uncompressed `data` of a batch; raises KafkaError(INVALID_RECORD) if they do not fill it."""
    at = 0
    for index in range(header.records_count):
        record, at = read_record(data, at, header, index)
        yield record
    if at != len(data):
        raise invalid("Incorrect declared batch size, records still remaining in file.")


def read_record(data: Buffer, position: int, header: BatchHeader, index: int) -> tuple[Record, int]:
    """The record at `position` of uncompressed records, and the position after it.

    Raises:
        KafkaError: INVALID_RECORD if the bytes are no record; `index` is for the message.
    """
    try:
        size, start = read_varint(data, position)
        end = start + size
        if size < 0 or end > len(data):
            raise invalid(f"Invalid record size: {size} bytes at record index {index}, but only {len(data) - start} are left.")
        timestamp_delta, at = read_varlong(data, start + 1)
        offset_delta, at = read_varint(data, at)
        key, at = _read_bytes(data, at, end)
        value, at = _read_bytes(data, at, end)
        headers, at = _read_headers(data, at, end)
    except MalformedVarint:
        raise invalid("Found invalid record structure.") from None
    if at != end:
        raise invalid(f"Invalid record size: expected to read {size} bytes in record payload, but instead read {at - start}.")
    timestamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), end


def _read_bytes(data: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    size, start = read_varint(data, position)
    if size < 0:
        return None, start
    if start + size > end:
        raise invalid("Found invalid record structure.")
    return bytes(data[start : start + size]), start + size


def _read_headers(data: Buffer, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position)
    if count < 0 or count > min(end - position, limits.MAX_ARRAY_LENGTH):
        raise invalid(f"Found invalid number of record headers {count}.")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(data, position, end)
        if key is None:
            raise invalid("Invalid negative header key size.")
        value, position = _read_bytes(data, position, end)
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), position


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def build_batch(
    records: Iterable[Record | tuple[bytes | None, bytes | None]],
    *,
    base_offset: int = 0,
    compression: int = Compression.NONE,
    timestamp_ms: int = NO_TIMESTAMP,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    level: int | None = None,
) -> bytes:
    """One batch of `records`, at consecutive offsets from `base_offset`; the records' own offsets are ignored.

    Args:
        records: records, or pairs of key and value that get `timestamp_ms`.
        timestamp_ms: time of pairs.
    """
    items = [record if isinstance(record, Record) else Record(0, timestamp_ms, *record) for record in records]
    base_timestamp = items[0].timestamp if items else NO_TIMESTAMP
    body = b"".join(_record_bytes(record, delta, base_timestamp) for delta, record in enumerate(items))
    attributes = compression | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(items) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max((record.timestamp for record in items), default=NO_TIMESTAMP),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(items),
    )
    return assemble(header, compress(compression, body, level))


def build_pairs(
    pairs: Sequence[tuple[bytes | None, bytes | None]],
    timestamp_ms: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    *,
    transactional: bool = False,
    control: bool = False,
) -> OwnBatch:
    """The batch that `build_batch` makes of pairs without a codec, in a third of the time; for batches that a broker writes itself."""
    parts: list[bytes] = []
    for delta, (key, value) in enumerate(pairs):
        fields = (
            b"\0\0",
            varint(delta),
            *((NULL,) if key is None else (varint(len(key)), key)),
            *((NULL,) if value is None else (varint(len(value)), value)),
            b"\0",
        )
        record = b"".join(fields)
        parts += (varint(len(record)), record)
    count, attributes = len(pairs), (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    fields_covered = (
        attributes,
        count - 1,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        count,
    )
    covered = b"".join((_COVERED.pack(*fields_covered), *parts))
    fields_before = (0, CRC_START - LENGTH_OVERHEAD + len(covered), NO_LEADER_EPOCH, MAGIC, crc32c(covered))
    data = bytearray(_BEFORE.pack(*fields_before))
    data += covered
    return new_tuple(OwnBatch, (data, new_tuple(BatchHeader, fields_before + fields_covered)))


def assemble(header: BatchHeader, body: Buffer) -> bytes:
    """The batch of `header` and (compressed) records, with length and CRC set."""
    batch = bytearray(HEADER.pack(*header))
    _LENGTH.pack_into(batch, _LENGTH_AT, HEADER_SIZE - LENGTH_OVERHEAD + len(body))
    batch += body
    _CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[CRC_START:]))
    return bytes(batch)


def _record_bytes(record: Record, offset_delta: int, base_timestamp: int) -> bytes:
    parts = [b"\x00", varint(record.timestamp - base_timestamp), varint(offset_delta)]
    for field in (record.key, record.value):
        parts += (NULL,) if field is None else (varint(len(field)), field)
    parts.append(varint(len(record.headers)))
    for name, value in record.headers:
        encoded = name.encode()
        parts += (varint(len(encoded)), encoded)
        parts += (NULL,) if value is None else (varint(len(value)), value)
    body = b"".join(parts)
    return varint(len(body)) + body


NULL = varint(-1)
