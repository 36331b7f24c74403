"""The file `<offset>.snapshot`: the producers of a partition as they were when the log ended at that offset.

Owns its bytes, which are Kafka's version 1, big-endian:

    version int16 = 1 | CRC-32C of what follows uint32 | count int32
    each: producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
          coordinator epoch int32, first offset of the open transaction int64 (-1 without one)

Only the last batch of each producer is kept: after a restart a retry of an older one is out of order, as in Kafka.
"""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c

from barnabas.errors import CorruptLog
from barnabas.protocol.records.header import MAX_SEQUENCE, NO_SEQUENCE
from barnabas.storage.producer_state import NO_OFFSET, AppendedBatch, ProducerEntry, ProducerStates

VERSION = 1
HEAD = struct.Struct(">hIi")
CRC_START = 6
ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(producers: ProducerStates) -> bytes:
    body = b"".join([_COUNT.pack(len(producers)), *map(_encode_entry, producers)])
    return _VERSION_AND_CRC.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: Path) -> list[ProducerEntry]:
    """The entries of a snapshot.

    Raises:
        CorruptLog: it is not one; the caller falls back on an older snapshot, or the log itself.
    """
    if len(data) < HEAD.size:
        raise CorruptLog(str(path), 0, "a snapshot shorter than its header")
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptLog(str(path), 0, f"snapshot version {version}")
    if crc32c(data[CRC_START:]) != crc:
        raise CorruptLog(str(path), 2, "the snapshot's CRC does not match")
    if len(data) != HEAD.size + count * ENTRY.size:
        raise CorruptLog(str(path), CRC_START, f"{count} producers do not fill {len(data)} bytes")
    return [_decode_entry(*fields) for fields in ENTRY.iter_unpack(data[HEAD.size :])]


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else NO_BATCH
    return ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, transaction_first_offset)
    if last_offset != NO_OFFSET:
        first_sequence = (last_sequence - offset_delta) & MAX_SEQUENCE
        entry.batches.append(AppendedBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp))
    return entry


_VERSION_AND_CRC = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
NO_BATCH = AppendedBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, 0, -1)
