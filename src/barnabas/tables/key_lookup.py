"""Keys in a scan: the ranges in which they may be, and the index that grows while a scan reads.

Owns the builders of one scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from barnabas.tables.key_index import KeyIndex, StoredStripe, StripeBuilder, hashes_of
from barnabas.tables.source import Bounds


class KeyLookup:
    """Uses and extends the index of one topic.

    Args:
        epochs: the leader epoch of each partition.
        end_of_epoch: the offset at which the records of a leader epoch end, by partition and epoch. A stripe of an earlier epoch that
            ends behind it is removed: an unclean election has replaced its last records.
    """

    def __init__(self, index: KeyIndex, epochs: Mapping[int, int], end_of_epoch: Callable[[int, int], int]) -> None:
        self._index, self._epochs, self._end_of_epoch = index, epochs, end_of_epoch
        self._builders: dict[int, tuple[int, StripeBuilder]] = {}  # with the offset from which on a builder takes records
        self.indexed_offsets = 0  # looked up in the index instead of read

    def ranges(self, partition: int, bounds: Bounds, payloads: Iterable[bytes]) -> list[Bounds]:
        """The ranges of `bounds` in which one of the keys may be, in order; neighbours are not merged."""
        wanted = hashes_of(pa.array(list(payloads), pa.binary())).tolist()
        found: list[Bounds] = []
        position = bounds.start
        stripes = self._stripes(partition)
        for stripe in stripes:
            covered = _meet(stripe.bounds, bounds)
            if covered is None:
                continue
            if position < covered.start:
                found.append(Bounds(position, covered.start))
            found += [part for block in stripe.holding(wanted) if (part := _meet(block, bounds)) is not None]
            self.indexed_offsets += covered.end - covered.start
            position = covered.end
        if position < bounds.end:
            found.append(Bounds(position, bounds.end))
        self._prepare(partition, bounds, stripes)
        return found

    def _stripes(self, partition: int) -> list[StoredStripe]:
        kept = []
        for stripe in self._index.stripes(partition):
            if stripe.epoch == self._epochs[partition] or stripe.bounds.end <= self._end_of_epoch(partition, stripe.epoch):
                kept.append(stripe)
            else:
                stripe.path.unlink(missing_ok=True)
        return kept

    def _prepare(self, partition: int, bounds: Bounds, stripes: Sequence[StoredStripe]) -> None:
        """A builder from the end of the last stripe on, if the scan reads from there."""
        start = max(bounds.start, stripes[-1].bounds.end) if stripes else bounds.start
        if start < bounds.end and (not stripes or start == stripes[-1].bounds.end):
            self._builders[partition] = start, StripeBuilder(start, self._epochs[partition])

    def observe(self, partition: int, records: pa.RecordBatch) -> None:
        """Take records of a scan, in the order of offsets. Raises OSError if a full stripe cannot be written."""
        entry = self._builders.get(partition)
        if entry is None:
            return
        start, builder = entry
        offsets = np.asarray(records.column("offset"))
        first = int(np.searchsorted(offsets, start))
        if first < len(offsets):
            for stripe in builder.add(records.column("key").slice(first), offsets[first:]):
                self._index.write(partition, stripe)


def _meet(one: Bounds, other: Bounds) -> Bounds | None:
    both = Bounds(max(one.start, other.start), min(one.end, other.end))
    return both if both.start < both.end else None
