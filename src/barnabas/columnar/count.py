"""Counts the records of batches by their headers; only a batch that the bounds cut is decoded.

Rules
  1. The count is the number of rows that `RecordDecoder` gives for the same arguments. Control batches and aborted transactions
     are not counted.
  2. The CRC of each batch is checked as for a decoding. A count that the batch cannot hold is a damaged batch; whether the records
     of a compressed batch are as many as its header says, only a decoding tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from barnabas.columnar.batches import CODEC_MASK, Longs, batch_table, check_batches, visible_batches
from barnabas.columnar.decode import RecordDecoder
from barnabas.lazy_module import LazyModule
from barnabas.limits import MAX_BATCH_RECORDS
from barnabas.protocol.base_message import Buffer

if TYPE_CHECKING:
    from barnabas.protocol.records import kernels as k
else:
    k = LazyModule("barnabas.protocol.records.kernels")


class RecordCounter:
    """Counts records of one partition.

    Args:
        topic, partition: for errors.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self._decoder = RecordDecoder(topic, partition, check_crc=False)

    def count(self, records: Buffer, start: int = 0, end: int = 2**63 - 1, aborted: Sequence[tuple[int, int]] = ()) -> int:
        """The number of records of whole batches with start <= offset < end; the arguments and errors of `RecordDecoder.decode`."""
        table = batch_table(records)
        last = table[:, k.BASE_OFFSET] + table[:, k.LAST_DELTA]
        table = table[(last >= start) & (table[:, k.BASE_OFFSET] < end)]
        check_batches(self.topic, self.partition, records, table)
        table = visible_batches(records, table, aborted)
        is_whole = (table[:, k.BASE_OFFSET] >= start) & (table[:, k.BASE_OFFSET] + table[:, k.LAST_DELTA] < end)
        is_whole &= _can_hold(table)
        total = int(table[is_whole, k.COUNT].sum())
        view = memoryview(records)
        for position, size in table[~is_whole][:, [k.POSITION, k.SIZE]].tolist():
            total += sum(each.num_rows for each in self._decoder.decode(view[position : position + size], start, end))
        return total


def _can_hold(table: Longs) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the batches can have as many records as their headers say; the decoder tells what is wrong with others."""
    counts = table[:, k.COUNT]
    most = np.where(
        table[:, k.ATTRIBUTES] & CODEC_MASK, MAX_BATCH_RECORDS, (table[:, k.SIZE] - k.HEADER_BYTES) // k.MIN_RECORD_BYTES
    )
    return (counts >= 0) & (counts <= most) & (counts <= table[:, k.LAST_DELTA] + 1)
