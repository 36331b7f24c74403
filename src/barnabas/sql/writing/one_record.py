"""One record as a batch, without Arrow: its partition, and the bytes of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from barnabas.columnar.encode import NO_BYTES
from barnabas.lazy_module import LazyModule
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.protocol.records.varint import varint

if TYPE_CHECKING:
    from barnabas.protocol.records import encode_kernels
else:
    encode_kernels = LazyModule("barnabas.protocol.records.encode_kernels")

_NO_DELTAS, _NULL, _NO_HEADERS = b"\0\0\0", varint(-1), varint(0)


def partition_of(key: bytes | None, partitions: int) -> int:
    """The partition of a record, as `columnar.encode` chooses it for the only row of a statement."""
    if key is None or partitions == 1:
        return 0
    hashes = np.full(1, -1, np.int32)
    encode_kernels.hash_keys(np.array([0, len(key)], np.int32), np.frombuffer(key, np.uint8), NO_BYTES, hashes)
    return int(hashes[0]) % partitions


def room_of(key: bytes | None, value: bytes) -> bytearray:
    """A batch of one record, whose header `seal_batch` fills in."""
    named = _NULL if key is None else varint(len(key)) + key
    body = b"".join((_NO_DELTAS, named, varint(len(value)), value, _NO_HEADERS))
    return bytearray(HEADER_SIZE) + varint(len(body)) + body
