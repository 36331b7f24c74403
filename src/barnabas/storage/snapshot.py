"""The file `<offset>.snapshot`: the producers of a partition as they were when the log ended at that offset.

Owns its bytes, which are Kafka's version 1, big-endian:

    version int16 = 1 | CRC-32C of what follows uint32 | count int32
    each: producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
          coordinator epoch int32, first offset of the open transaction int64 (-1 without one)
    "older" | count int32, and for each, oldest first:
          producer id int64, last sequence int32, last offset int64, offset delta int32, timestamp int64

Kafka's entry has only the last batch of its producer. But a client may wait for the answers to five batches when the broker ends, and
sends all of them again. So the earlier batches come after the entries, where Kafka does not read: it reads `count` entries and a CRC
over all the rest. Without such batches, and in snapshots that Kafka wrote, nothing follows the entries.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import MAX_SEQUENCE, NO_SEQUENCE
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.producer_state import KEPT_BATCHES, NO_OFFSET, AppendedBatch, ProducerEntry

VERSION = 1
HEAD = struct.Struct(">hIi")
CRC_START = 6
ENTRY = struct.Struct(">qhiqiqiq")
OLDER_MARK = b"older"
OLDER = struct.Struct(">qiqiq")


def encode_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    entries = list(producers)
    body = b"".join([_COUNT.pack(len(entries)), *map(_encode_entry, entries), _encode_older(entries)])
    return _VERSION_AND_CRC.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: Path) -> list[ProducerEntry]:
    """The entries of a snapshot.

    Raises:
        CorruptLog: it is no snapshot; the caller uses an older snapshot, or the log itself.
    """
    if len(data) < HEAD.size:
        raise CorruptLog(str(path), 0, "a snapshot shorter than its header")
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptLog(str(path), 0, f"snapshot version {version}")
    if crc32c(data[CRC_START:]) != crc:
        raise CorruptLog(str(path), 2, "the snapshot's CRC does not match")
    end = HEAD.size + count * ENTRY.size
    if not HEAD.size <= end <= len(data):
        raise CorruptLog(str(path), CRC_START, f"{count} producers do not fill {len(data)} bytes")
    entries = [_decode_entry(*fields) for fields in ENTRY.iter_unpack(data[HEAD.size : end])]
    if end == len(data):
        return entries
    by_id = {entry.producer_id: entry for entry in entries}
    _decode_older(data, end, by_id, path)
    return list(by_id.values())


def _encode_older(producers: Iterable[ProducerEntry]) -> bytes:
    older = [
        OLDER.pack(entry.producer_id, batch.last_sequence, batch.last_offset, batch.offset_delta, batch.timestamp)
        for entry in producers
        for batch in entry.batches[:-1]
    ]
    return b"".join([OLDER_MARK, _COUNT.pack(len(older)), *older]) if older else b""


def _decode_older(data: bytes, start: int, entries: dict[int, ProducerEntry], path: Path) -> None:
    """Insert the batches from `start` of `data` on before the last ones of their producers."""
    begin = start + len(OLDER_MARK) + _COUNT.size
    count = _COUNT.unpack_from(data, begin - _COUNT.size)[0] if len(data) >= begin else -1
    if data[start : start + len(OLDER_MARK)] != OLDER_MARK or begin + count * OLDER.size != len(data):
        raise CorruptLog(str(path), start, f"{len(data) - start} bytes behind {len(entries)} producers are no batches of theirs")
    found: dict[int, list[AppendedBatch]] = defaultdict(list)
    for producer_id, last_sequence, last_offset, offset_delta, timestamp in OLDER.iter_unpack(data[begin:]):
        first_sequence = (last_sequence - offset_delta) & MAX_SEQUENCE
        found[producer_id].append(AppendedBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp))
    for producer_id, batches in found.items():
        if producer_id not in entries:
            raise CorruptLog(str(path), start, f"it has batches of producer {producer_id}, but not the producer")
        entry = entries[producer_id]
        entries[producer_id] = entry._replace(batches=(*batches, *entry.batches)[-KEPT_BATCHES:])


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
    batches: tuple[AppendedBatch, ...] = ()
    if last_offset != NO_OFFSET:
        first_sequence = (last_sequence - offset_delta) & MAX_SEQUENCE
        batches = (AppendedBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp),)
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, transaction_first_offset, batches=batches)


_VERSION_AND_CRC = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
NO_BATCH = AppendedBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, 0, -1)
