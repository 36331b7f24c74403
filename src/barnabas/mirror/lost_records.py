"""The records that a failback cuts off, as they are saved in the topic TOPIC.lost-TIME. Pure.

Rules
  1. Records of aborted transactions are left out: nobody could read them as committed records. They are counted.
  2. Records of a transaction without an end are kept, and marked. Their producer can end it nowhere, so its owner must decide.
  3. A transaction that was committed after the common point may have begun before it. The other cluster has aborted it at its promotion, so
     all its records are lost, and the earlier ones are saved too (`Outcomes.early`).
  4. A record keeps key, value, headers and time. Headers are added that tell where it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches
from barnabas.protocol.records.batch_header import BatchHeader, Buffer
from barnabas.storage.markers import ending_in

TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER = "mirror.origin.topic", "mirror.origin.partition", "mirror.origin.offset"
OPEN_HEADER = "mirror.origin.transaction"  # its value is "open"
NEVER_MS = 2**63 - 1
BATCH_BYTES = 256 * 1024  # of the records of a saved batch, about


class LostRecord(NamedTuple):
    """One record, with the codec of its batch."""

    record: Record
    is_open: bool
    compression: int


class Outcomes:
    """How the transactions of one partition ended, from the markers that `note` was given."""

    def __init__(self) -> None:
        self._markers: dict[int, list[tuple[int, bool]]] = defaultdict(list)  # by producer id: (offset, whether it commits)
        self._early: set[int] = set()
        self.first_commit_ms = NEVER_MS  # the time of the first commit of `early`
        self.aborted = 0  # records that `records` has left out

    def note(self, batches: Buffer) -> int | None:
        """Take batches in their order; returns the offset after the last whole one, None if there is none."""
        end = None
        for position, header in split_batches(batches, allow_partial=True):
            end = header.next_offset
            if header.is_control:
                ending = ending_in(memoryview(batches)[position : position + header.size], header)
                if ending is not None:
                    if not ending.aborted and not self._markers[header.producer_id]:
                        self._early.add(header.producer_id)
                        self.first_commit_ms = min(self.first_commit_ms, ending.timestamp)
                    self._markers[header.producer_id].append((header.base_offset, not ending.aborted))
        return end

    @property
    def early(self) -> frozenset[int]:
        """The producers whose first transaction may have begun before the noted batches, and was committed."""
        return frozenset(self._early)

    def outcome(self, header: BatchHeader) -> bool | None:
        """Whether the batch is committed; None if its transaction has no end."""
        if not header.is_transactional:
            return True
        markers = self._markers.get(header.producer_id, [])
        at = bisect_left(markers, (header.base_offset, False))
        return markers[at][1] if at < len(markers) else None

    def records(self, batches: Buffer, first: int) -> Iterator[LostRecord]:
        """The records to save, from the offset `first` on."""
        for position, header in split_batches(batches, allow_partial=True):
            if header.is_control or header.last_offset < first:
                continue
            outcome = self.outcome(header)
            for record in iterate_records(batches, position):
                if record.offset < first:
                    continue
                if outcome is False:
                    self.aborted += 1
                else:
                    yield LostRecord(record, outcome is None, header.compression)


def early_records(pieces: Iterable[Buffer], producers: frozenset[int], end: int) -> list[LostRecord]:
    """The records below `end` of the transactions of `producers` that are open at `end`.

    Args:
        pieces: the batches from the start of the log, or from an offset before which none of these transactions began.
    """
    found: dict[int, list[LostRecord]] = {producer: [] for producer in producers}
    for batches in pieces:
        for position, header in split_batches(batches, allow_partial=True):
            if header.base_offset >= end or header.producer_id not in producers:
                continue
            if header.is_control:
                found[header.producer_id] = []
            elif header.is_transactional:
                found[header.producer_id] += [
                    LostRecord(record, False, header.compression) for record in iterate_records(batches, position)
                ]
    return sorted((each for records in found.values() for each in records), key=lambda each: each.record.offset)


def batches_of(lost: Iterable[LostRecord], topic: str, partition: int) -> Iterator[tuple[bytes, int]]:
    """The batches that save records, each with its number of records."""
    some: list[Record] = []
    size, compression = 0, -1
    for record, is_open, codec in lost:
        made = _with_origin(record, topic, partition, is_open=is_open)
        length = len(made.key or b"") + len(made.value or b"")
        if some and (size + length > BATCH_BYTES or codec != compression):
            yield build_batch(some, compression=compression), len(some)
            some, size = [], 0
        some.append(made)
        size, compression = size + length, codec
    if some:
        yield build_batch(some, compression=compression), len(some)


def _with_origin(record: Record, topic: str, partition: int, *, is_open: bool) -> Record:
    added = [(TOPIC_HEADER, topic), (PARTITION_HEADER, str(partition)), (OFFSET_HEADER, str(record.offset))]
    added += [(OPEN_HEADER, "open")] if is_open else []
    return record._replace(headers=(*record.headers, *((name, value.encode()) for name, value in added)))


def origin_of(record: Record) -> int | None:
    """The offset that a saved record had; None if it does not tell."""
    value = next((value for name, value in reversed(record.headers) if name == OFFSET_HEADER), None)
    return int(value) if value is not None and value.isdigit() else None
