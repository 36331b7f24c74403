"""Checks the records of a batch with a matching CRC against its header."""

from __future__ import annotations

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch_header import COMPRESSION_MASK, HEADER_SIZE, LOG_APPEND_TIME_BIT, BatchHeader
from barnabas.protocol.records.compression import decompress
from barnabas.protocol.records.record import read_record
from barnabas.protocol.records.scan import scan_records


def fault_in_records(batch: memoryview, header: BatchHeader) -> str | None:
    """The error in the records of a batch, None if there is none."""
    if not 0 <= header.records_count <= header.last_offset_delta + 1:
        return f"the header counts {header.records_count} records for {header.last_offset_delta + 1} offsets"
    try:
        data = decompress(header.attributes & COMPRESSION_MASK, batch[HEADER_SIZE:])
    except KafkaError as error:
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:  # may be correct, but is too large to decompress here
            return None
        return (error.message or error.code.name).rstrip(".")
    scan = scan_records(data, header.records_count)
    if scan is not None and (
        header.attributes & LOG_APPEND_TIME_BIT or header.base_timestamp + scan.max_timestamp_delta == header.max_timestamp
    ):
        return None
    return _fault_in_each(data, header)


def _fault_in_each(data: bytes | bytearray, header: BatchHeader) -> str | None:
    """Checks record by record: for compacted batches and all unusual ones."""
    position, expected, newest = 0, header.base_offset, -1
    try:
        for index in range(header.records_count):
            record, position = read_record(data, position, header, index)
            if not expected <= record.offset <= header.last_offset:
                return f"record {index} has offset {record.offset}, where {expected} to {header.last_offset} may follow"
            expected, newest = record.offset + 1, max(newest, record.timestamp)
    except KafkaError as error:
        return (error.message or error.code.name).rstrip(".")
    if position != len(data):
        return f"{len(data) - position} bytes follow the last record"
    if header.records_count and newest > header.max_timestamp:
        return f"a record has timestamp {newest}, past the {header.max_timestamp} of the header"
    return None
