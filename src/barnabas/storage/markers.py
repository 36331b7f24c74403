"""Reads and writes the control records that end transactions.

key      version (16 bit), kind (16 bit): 0 aborts, 1 commits; others are not about transactions
value    version (16 bit), epoch of the transaction coordinator (32 bit)
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from barnabas.protocol.records.batch_header import CONTROL_BIT, HEADER_SIZE, TRANSACTIONAL_BIT, BatchHeader, Buffer
from barnabas.protocol.records.record import OwnBatch, Record, build_pairs, iterate_records

CONTROL_KEY = struct.Struct(">hh")
CONTROL_VALUE = struct.Struct(">hi")
ABORT, COMMIT = 0, 1
VERSION = 0
# Record layout of a batch that `marker_batch` or Kafka creates: sizes as zigzag varints, no deltas, no headers
_RECORD = struct.Struct(">5shhBhiB")
_BEFORE_KEY, _BEFORE_VALUE, _HEADERS = b"\x20\0\0\0\x08", 0x0C, 0


class Ending(NamedTuple):
    """The content of a marker: whether the transaction is aborted, the epoch of its coordinator, and when it ended (ms)."""

    aborted: bool
    coordinator_epoch: int
    timestamp: int


def parse_marker(record: Record) -> tuple[bool, int] | None:
    """Whether a control record aborts, and its coordinator's epoch; None if it ends no transaction."""
    if record.key is None or len(record.key) < CONTROL_KEY.size or record.value is None or len(record.value) < CONTROL_VALUE.size:
        return None
    _, kind = CONTROL_KEY.unpack_from(record.key)
    if kind not in (ABORT, COMMIT):
        return None
    _, coordinator_epoch = CONTROL_VALUE.unpack_from(record.value)
    return kind == ABORT, coordinator_epoch


def ending_of(record: Record | None) -> Ending | None:
    """The end of a transaction in a control record; None if the record does not end one."""
    decision = None if record is None else parse_marker(record)
    return None if record is None or decision is None else Ending(*decision, record.timestamp)


def ending_in(data: Buffer, header: BatchHeader) -> Ending | None:
    """The content of a control batch, from its first record."""
    if len(data) == HEADER_SIZE + _RECORD.size and not header.attributes & ~(TRANSACTIONAL_BIT | CONTROL_BIT):
        before_key, _, kind, before_value, _, coordinator_epoch, headers = _RECORD.unpack_from(data, HEADER_SIZE)
        if before_key == _BEFORE_KEY and before_value == _BEFORE_VALUE and headers == _HEADERS and kind in (ABORT, COMMIT):
            return Ending(kind == ABORT, coordinator_epoch, header.base_timestamp)
    return ending_of(next(iterate_records(data), None))


class MarkerBatch(NamedTuple):
    """A marker to append, and its content."""

    batch: OwnBatch
    ending: Ending


@lru_cache(maxsize=1)  # all partitions of a transaction get the same marker
def marker_batch(producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, now_ms: int) -> MarkerBatch:
    """The control batch that ends a producer's transaction in a partition."""
    key, value = CONTROL_KEY.pack(VERSION, COMMIT if commit else ABORT), CONTROL_VALUE.pack(VERSION, coordinator_epoch)
    batch = build_pairs([(key, value)], now_ms, producer_id, producer_epoch, transactional=True, control=True)
    return MarkerBatch(batch, Ending(not commit, coordinator_epoch, now_ms))
