"""Record batches by their headers: a table of a buffer's batches, their check, and the batches that a reader of committed records sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from barnabas.errors import BarnabasError
from barnabas.lazy_module import LazyModule
from barnabas.protocol.base_message import Buffer
from barnabas.protocol.records.batch_header import CRC_START, MAGIC
from barnabas.protocol.records.crc import crc32c

if TYPE_CHECKING:
    from barnabas.protocol.records import kernels as k
else:
    k = LazyModule("barnabas.protocol.records.kernels")

CODEC_MASK, APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
ABORT_MARKER = 0

Longs = npt.NDArray[np.int64]


class CorruptBatch(BarnabasError):
    """A damaged record batch."""

    def __init__(self, topic: str, partition: int, base_offset: int, reason: str) -> None:
        super().__init__(topic, partition, base_offset, reason)
        self.topic = topic
        self.partition = partition
        self.base_offset = base_offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: the batch at offset {self.base_offset} is corrupt: {self.reason}"


def batch_table(data: Buffer) -> Longs:
    """The headers of the whole batches in `data`, int64[batches, BATCH_COLUMNS]; columns are named in `kernels`."""
    view = np.frombuffer(data, np.uint8)
    table = np.empty((k.count_batches(view), k.BATCH_COLUMNS), np.int64)
    k.scan_batches(view, table)
    return table


def check_batches(topic: str, partition: int, records: Buffer, table: Longs, *, check_crc: bool = True) -> None:
    """Raise CorruptBatch for the first batch of the table with another format than v2, or with a wrong CRC."""
    old = np.flatnonzero(table[:, k.MAGIC] != MAGIC)
    if len(old):
        row = table[old[0]]
        reason = f"format {row[k.MAGIC]}, only version {MAGIC} is supported"
        raise CorruptBatch(topic, partition, int(row[k.BASE_OFFSET]), reason)
    if not check_crc:
        return
    view = memoryview(records)
    columns = table[:, [k.POSITION, k.SIZE, k.CRC]].tolist()
    for row, (position, size, expected) in enumerate(columns):
        if crc32c(view[position + CRC_START : position + size]) != expected:
            raise CorruptBatch(topic, partition, int(table[row, k.BASE_OFFSET]), "its checksum is wrong")


def visible_batches(records: Buffer, table: Longs, aborted: Sequence[tuple[int, int]] = ()) -> Longs:
    """The batches that are neither control batches nor part of an aborted transaction.

    A transaction of `aborted` (producer id, first offset) begins at its first offset and ends at the abort marker of its producer.
    """
    is_visible: npt.NDArray[np.bool_] = table[:, k.ATTRIBUTES] & CONTROL == 0
    if not len(aborted):
        return np.compress(is_visible, table, axis=0)
    waiting = sorted(aborted, key=lambda item: item[1], reverse=True)
    now_aborted: set[int] = set()
    has_state = (table[:, k.ATTRIBUTES] & (CONTROL | TRANSACTIONAL)) != 0
    of_producers = np.isin(table[:, k.PRODUCER_ID], [producer for producer, _ in aborted])
    for i in np.flatnonzero(has_state & of_producers).tolist():
        row = table[i]
        last = int(row[k.BASE_OFFSET] + row[k.LAST_DELTA])
        while waiting and waiting[-1][1] <= last:
            now_aborted.add(waiting.pop()[0])
        attributes, producer = int(row[k.ATTRIBUTES]), int(row[k.PRODUCER_ID])
        if attributes & CONTROL:
            if producer in now_aborted and marker_kind(records, row) == ABORT_MARKER:
                now_aborted.discard(producer)
        elif attributes & TRANSACTIONAL and producer in now_aborted:
            is_visible[i] = False
    return np.compress(is_visible, table, axis=0)


def marker_kind(records: Buffer, row: Longs) -> int:
    """The kind of the record in a control batch (0 aborts, 1 commits): the second half of its four-byte key.

    The record's length, attributes, two deltas and the key's length take a byte each, since a marker is a single small record.
    """
    key = int(row[k.POSITION]) + k.HEADER_BYTES + 5
    return int.from_bytes(memoryview(records)[key + 2 : key + 4], "big")
