"""Keys in a scan: the ranges in which they may be, and the index that grows while a scan reads.

Owns the builders of one scan.

Rules
  1. The index is an aid: if it cannot be written, as on a full disk, the scan goes on without it, and one line of the log tells why.
  2. Every part without an index that the scan reads is indexed. Only a rest of fewer than WRITTEN_RECORDS records behind the last stripe
     stays without an index, so that a file is not written for each scan of a partition that grows: these records are always read.
  3. Blocks with up to MAX_GAP offsets between them are read in one go: asking for another range would take longer. So a key that is
     everywhere costs no more than a reading of everything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.tables.key_index import BLOCK_RECORDS, KeyIndex, StoredStripe, Stripe, StripeBuilder, hashes_of
from barnabas.tables.source import Bounds, Snapshot, merged

WRITTEN_RECORDS = BLOCK_RECORDS * 16
MAX_GAP = BLOCK_RECORDS * 8
logger = logging.getLogger(__name__)


class _Part(NamedTuple):
    """Offsets without an index that the scan reads.

    Args:
        is_closed: whether a stripe begins at their end.
    """

    bounds: Bounds
    is_closed: bool
    builder: StripeBuilder


class KeyLookup:
    """Uses and extends the index of one topic.

    Args:
        snapshot: with epochs. Stripes below its start are removed.
        end_of_epoch: the offset at which the records of a leader epoch end, by partition and epoch. A stripe of an earlier epoch that
            ends behind it is removed: an unclean election has replaced its last records.
    """

    def __init__(self, index: KeyIndex, snapshot: Snapshot, end_of_epoch: Callable[[int, int], int]) -> None:
        self._index, self._snapshot, self._end_of_epoch = index, snapshot, end_of_epoch
        self._stripes: dict[int, list[StoredStripe]] = {}  # of the partitions whose keys were looked up
        self._parts: dict[int, list[_Part]] = {}
        self.indexed_offsets = 0  # looked up in the index instead of read

    def ranges(self, partition: int, bounds: Bounds, payloads: Iterable[bytes]) -> list[Bounds]:
        """The ranges of `bounds` in which one of the keys may be, in order."""
        wanted = hashes_of(pa.array(list(payloads), pa.binary()))
        stripes = self._stripes.get(partition)
        if stripes is None:
            stripes = self._stripes[partition] = self._valid_stripes(partition)
        found = list(_uncovered(bounds, stripes))
        for stripe in stripes:
            covered = _meet(stripe.bounds, bounds)
            if covered is not None:
                found += [part for block in stripe.holding(wanted) if (part := _meet(block, bounds)) is not None]
                self.indexed_offsets += covered.end - covered.start
        return merged(found, MAX_GAP)

    def _valid_stripes(self, partition: int) -> list[StoredStripe]:
        kept = []
        ends: dict[int, int] = {}  # by epoch
        for stripe in self._index.stripes(partition):
            is_valid = stripe.bounds.end > self._snapshot.partitions[partition].start
            if is_valid and stripe.epoch != self._snapshot.epochs[partition]:
                if stripe.epoch not in ends:
                    ends[stripe.epoch] = self._end_of_epoch(partition, stripe.epoch)
                is_valid = stripe.bounds.end <= ends[stripe.epoch]
            if is_valid:
                kept.append(stripe)
            else:
                stripe.remove()
        return kept

    def prepare(self, planned: Mapping[int, Sequence[Bounds]]) -> None:
        """Make builders for the parts without an index that the scan reads.

        Args:
            planned: for each partition the ranges of offsets that are read, in order and apart.
        """
        for partition, stripes in self._stripes.items():
            starts = {each.bounds.start for each in stripes}
            by_end = {each.bounds.end: each for each in stripes}
            self._parts[partition] = [
                _Part(part, part.end in starts, self._builder(partition, part.start, by_end.get(part.start)))
                for gap in _uncovered(self._snapshot.partitions[partition], stripes)
                for each in planned.get(partition, ())
                if (part := _meet(gap, each)) is not None
            ]

    def _builder(self, partition: int, start: int, stored: StoredStripe | None) -> StripeBuilder:
        """Collects keys from `start` on, and goes on with the stripe that ends there if it is not full."""
        before = None if stored is None else stored.read()
        return StripeBuilder(start, self._snapshot.epochs[partition], None if before is None or before.is_full else before)

    def observe(self, partition: int, records: pa.RecordBatch) -> None:
        """Take records of a scan, in the order of offsets."""
        offsets = np.asarray(records.column("offset"))
        for part in self._parts.get(partition, ()):
            first, last = np.searchsorted(offsets, part.bounds).tolist()
            if first < last:
                self._write(partition, part.builder.add(records.column("key").slice(first, last - first), offsets[first:last]))

    def finish(self, partition: int) -> None:
        """Take the end of a partition's records."""
        done = [each for each in self._parts.get(partition, ()) if each.is_closed or each.builder.waiting >= WRITTEN_RECORDS]
        self._write(partition, (each.builder.finish(each.bounds.end) for each in done))

    def _write(self, partition: int, stripes: Iterator[Stripe]) -> None:
        try:
            for stripe in stripes:
                self._index.write(partition, stripe)
        except OSError as error:
            self._parts = {}
            logger.warning("event=key-index-not-extended topic=%s error=%r", self._snapshot.topic, error)


def _uncovered(bounds: Bounds, stripes: Sequence[StoredStripe]) -> Iterator[Bounds]:
    """The parts of the bounds that no stripe covers, in order."""
    position = bounds.start
    for stripe in stripes:
        if position < min(stripe.bounds.start, bounds.end):
            yield Bounds(position, min(stripe.bounds.start, bounds.end))
        position = max(position, stripe.bounds.end)
    if position < bounds.end:
        yield Bounds(position, bounds.end)


def _meet(one: Bounds, other: Bounds) -> Bounds | None:
    both = Bounds(max(one.start, other.start), min(one.end, other.end))
    return both if both.start < both.end else None
