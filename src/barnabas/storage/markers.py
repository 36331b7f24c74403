"""The control records that end transactions: how they are read and written.

key      version (16 bit), kind (16 bit): 0 aborts, 1 commits; others are not about transactions
value    version (16 bit), epoch of the transaction coordinator (32 bit)
"""

from __future__ import annotations

import struct
from functools import lru_cache

from barnabas.protocol.records.record import Record, build_batch

CONTROL_KEY = struct.Struct(">hh")
CONTROL_VALUE = struct.Struct(">hi")
ABORT, COMMIT = 0, 1
VERSION = 0


def parse_marker(record: Record) -> tuple[bool, int] | None:
    """Whether a control record aborts, and its coordinator's epoch; None if it ends no transaction."""
    if record.key is None or len(record.key) < CONTROL_KEY.size or record.value is None or len(record.value) < CONTROL_VALUE.size:
        return None
    _, kind = CONTROL_KEY.unpack_from(record.key)
    if kind not in (ABORT, COMMIT):
        return None
    _, coordinator_epoch = CONTROL_VALUE.unpack_from(record.value)
    return kind == ABORT, coordinator_epoch


@lru_cache(maxsize=1)  # the partitions of a transaction get the same one
def marker_batch(producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, now_ms: int) -> bytes:
    """The control batch that ends a producer's transaction in a partition."""
    key, value = CONTROL_KEY.pack(VERSION, COMMIT if commit else ABORT), CONTROL_VALUE.pack(VERSION, coordinator_epoch)
    return build_batch(
        [(key, value)],
        timestamp_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
