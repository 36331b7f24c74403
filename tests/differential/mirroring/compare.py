"""Compares the batches of a copy with those of its source.

Rules
  1. A topic without compaction: batch for batch the same bytes, in the offsets that both have.
  2. A compacted topic: each cluster decides itself when it compacts. A batch that both have must be the same batch, and a record that
     both have the same record. A record that only one of them has must be superseded by a later one of its key, be a tombstone, or be
     of an aborted transaction. The last committed value of each key must be the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.protocol.records.batch import BatchHeader, iterate_records
from barnabas.storage.markers import parse_marker
from tests.differential.mirroring.stored import PartitionLog, Stored, Unequal

MOST_TOLD = 5
KEPT_BITS = 0x30  # of the attributes: transactional, control. Compaction may change the codec and set the delete horizon


class RecordBytes(NamedTuple):
    """All that a record says."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Records(NamedTuple):
    """The records of a log by offset, and the offsets of those in aborted transactions."""

    by_offset: dict[int, RecordBytes]
    aborted: set[int]
    open: set[int]


def demand_equal(source: PartitionLog, copy: PartitionLog, *, compacted: bool = False, is_whole: bool = True) -> int:
    """Compare the offsets that both logs should have; returns the number of compared batches.

    Args:
        is_whole: the copy must have everything; otherwise it may end before the source.

    Raises:
        Unequal: with the first differences.
    """
    if is_whole and (source.start, source.end) != (copy.start, copy.end):
        raise Unequal(f"{copy.where} is [{copy.start}, {copy.end}), and {source.where} is [{source.start}, {source.end})")
    if copy.end > source.end:
        raise Unequal(f"{copy.where} ends at {copy.end}, and {source.where} at {source.end}")
    start, end = max(source.start, copy.start), copy.end
    theirs, ours = _between(source, start, end), _between(copy, start, end)
    if compacted:
        later = {at: batch for at, batch in source.batches.items() if at >= end}  # compaction in the source knows them
        found = _compare_compacted(theirs, ours, later, start)
    else:
        found = _compare_bytes(theirs, ours)
    if found:
        more = f" (and {len(found) - MOST_TOLD} more)" if len(found) > MOST_TOLD else ""
        raise Unequal(f"{copy.where} differs from {source.where} in [{start}, {end}): {'; '.join(found[:MOST_TOLD])}{more}")
    return len(theirs.keys() & ours.keys())


def _between(log: PartitionLog, start: int, end: int) -> dict[int, Stored]:
    if start >= end:  # a copy that begins within a batch of the source, and has not fetched it yet
        return {}
    return {at: batch for at, batch in log.batches.items() if batch.header.last_offset >= start and at < end}


def _compare_bytes(theirs: dict[int, Stored], ours: dict[int, Stored]) -> list[str]:
    found = [f"the batch at {at} is missing" for at in sorted(theirs.keys() - ours.keys())]
    found += [f"the batch at {at} is not in the source" for at in sorted(ours.keys() - theirs.keys())]
    both = sorted(theirs.keys() & ours.keys())
    return found + [
        f"the batch at {at}: {_told(theirs[at].header, ours[at].header)}" for at in both if theirs[at].data != ours[at].data
    ]


def _told(theirs: BatchHeader, ours: BatchHeader) -> str:
    """The fields that differ."""
    pairs = zip(BatchHeader._fields, theirs, ours, strict=True)
    fields = [f"{name} {their} became {our}" for name, their, our in pairs if their != our and name != "partition_leader_epoch"]
    return ", ".join(fields) or "its records differ"


def _compare_compacted(theirs: dict[int, Stored], ours: dict[int, Stored], later: dict[int, Stored], start: int) -> list[str]:
    found = []
    for at in sorted(theirs.keys() & ours.keys()):
        their, our = _identity(theirs[at].header), _identity(ours[at].header)
        if their != our:
            found.append(f"the batch at {at}: {their} became {our}")
    one, other = records_of(theirs.values()), records_of(ours.values())
    both = sorted(one.by_offset.keys() & other.by_offset.keys())
    pairs = ((at, one.by_offset[at], other.by_offset[at]) for at in both)
    found += [f"the record at {at}: {their!r} became {our!r}" for at, their, our in pairs if their != our]
    all_theirs = records_of([*theirs.values(), *later.values()])
    aborted = all_theirs.aborted | other.aborted
    last: dict[bytes | None, int] = {}
    for offset, record in sorted({**all_theirs.by_offset, **other.by_offset}.items()):
        if offset not in aborted | all_theirs.open:
            last[record.key] = offset
    for here, there, told in ((one, other, "is missing"), (other, one, "is not in the source")):
        for offset in sorted(here.by_offset.keys() - there.by_offset.keys()):
            record = here.by_offset[offset]
            may_go = offset < start or offset in aborted or record.value is None or last.get(record.key, offset) > offset
            if not may_go:
                found.append(f"the record at {offset} with the last value of {record.key!r} {told}")
    if not later:
        differing = sorted(_last_values(one).items() ^ _last_values(other).items(), key=repr)
        found += [f"the last value of {key!r} is {value!r} in one only" for key, value in differing]
    return found


def _identity(header: BatchHeader) -> tuple[int, ...]:
    """The fields of a batch that compaction keeps."""
    return header.last_offset, header.producer_id, header.producer_epoch, header.base_sequence, header.attributes & KEPT_BITS


def _last_values(records: Records) -> dict[bytes | None, bytes]:
    hidden = records.aborted | records.open
    last = {each.key: each.value for offset, each in sorted(records.by_offset.items()) if offset not in hidden}
    return {key: value for key, value in last.items() if value is not None}


def records_of(batches: Iterable[Stored]) -> Records:
    """The records of consecutive batches, except for control records."""
    found: dict[int, RecordBytes] = {}
    aborted: set[int] = set()
    undecided: dict[int, set[int]] = defaultdict(set)  # producer id -> offsets of its open transaction
    for batch in batches:
        for record in iterate_records(batch.data):
            if batch.header.is_control:
                decision = parse_marker(record)
                ended = undecided.pop(batch.header.producer_id, set())
                if decision is not None and decision[0]:
                    aborted |= ended
                continue
            headers = tuple((name, None if value is None else bytes(value)) for name, value in record.headers)
            found[record.offset] = RecordBytes(record.timestamp, _bytes(record.key), _bytes(record.value), headers)
            if batch.header.is_transactional:
                undecided[batch.header.producer_id].add(record.offset)
    return Records(found, aborted, {offset for offsets in undecided.values() for offset in offsets})


def _bytes(data: bytes | memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)
