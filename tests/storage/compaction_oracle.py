"""The content of a log after compaction, in the simplest code; written from Kafka's rules and not from our cleaner.

Rules
  1. Looked at is what lies below `end_offset` only. All else stays.
  2. Of each key the last record stays. A record without a key goes. Records of aborted transactions go, and count for no key.
  3. The last record of a key that has no value (a tombstone) stays for `delete_retention_ms`, counted from the first compaction that finds
     it: that one notes the time in the batch (KIP-534), and a later one lets go of what is past it.
  4. The marker of a transaction stays as long as records of the transaction do, and then for the same time. A cleaner may keep it longer:
     it sees only later that nothing is left. So markers are answered in two sets.
  5. Offsets, order, keys, values and times do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Ending(Enum):
    """The decision of a marker."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Logged:
    """A record as it lies in a log.

    Fields:
        batch: the offset by which its batch is known; the delete horizon is the batch's.
        transaction: a number for each transaction, None outside of one.
        ending: of a marker, which is a record alone in its batch.
        horizon_ms: from when on a tombstone or marker may go; None before a compaction has found it.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    batch: int
    transaction: int | None = None
    ending: Ending | None = None
    horizon_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """`records` are those that stay, with the horizons they have then; of the markers in it, those in `may_go` need not be there."""

    records: list[Logged]
    may_go: frozenset[int]


def expected_after_compaction(
    records: Sequence[Logged], *, end_offset: int, now_ms: int, delete_retention_ms: int, start_offset: int = 0
) -> Expected:
    """The rest of `records` after a compaction up to `end_offset` at `now_ms`.

    Args:
        records: all records of a log in order.
        start_offset: the log start offset. Records below it may or may not be there, so they are left out.
    """
    present = [record for record in records if record.offset >= start_offset]
    aborted = {record.transaction for record in present if record.ending is Ending.ABORT}
    looked_at = [record for record in present if record.offset < end_offset]
    data = [record for record in looked_at if record.ending is None and record.transaction not in aborted]
    last_of_key = {record.key: record.offset for record in data if record.key is not None}
    kept = {
        record.offset
        for record in data
        if record.key is not None and last_of_key[record.key] == record.offset and not _is_past(record, now_ms)
    }
    with_records = {record.transaction for record in present if record.ending is None and _stays(record, kept, end_offset)}
    found, may_go = [], set()
    for record in present:
        if record.offset >= end_offset:
            found.append(record)
        elif record.ending is not None:
            if record.transaction not in with_records:
                may_go.add(record.offset)
            found.append(record)
        elif record.offset in kept:
            found.append(record)
    return Expected(_with_horizons(found, kept, end_offset, now_ms + delete_retention_ms), frozenset(may_go))


def _stays(record: Logged, kept: set[int], end_offset: int) -> bool:
    return record.offset >= end_offset or record.offset in kept


def _is_past(record: Logged, now_ms: int) -> bool:
    return record.value is None and record.horizon_ms is not None and now_ms >= record.horizon_ms


def _with_horizons(records: list[Logged], kept: set[int], end_offset: int, horizon_ms: int) -> list[Logged]:
    """A batch that was looked at and holds a tombstone that stays has a horizon from now on, and all its records with it."""
    batches = {record.batch for record in records if record.offset in kept and record.value is None}
    return [
        replace(record, horizon_ms=horizon_ms)
        if record.batch in batches and record.horizon_ms is None and record.offset < end_offset
        else record
        for record in records
    ]
