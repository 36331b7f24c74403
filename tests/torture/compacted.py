"""Compares a compacted partition with the oracle of the property tests.

Below the offset that the cleaner has written down, exactly the records of the oracle must be there. Above it, all records must be there. A
tombstone below may be gone, because its time is up soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.storage.compaction_oracle import Logged, expected_after_compaction
from tests.torture.ledger import Lane
from tests.torture.values import Origin, is_tombstone, key_of

NEVER_MS = 2**62  # the oracle keeps tombstones; `fault` allows their removal


@dataclass(slots=True)
class Expectation:
    """The expected records of a partition. It grows with the lanes, and forgets records whose compaction was seen."""

    cleaned: int = 0
    records: list[Logged] = field(default_factory=list)  # sorted by offset
    _taken: dict[str, int] = field(default_factory=dict)  # producer -> next sequence to take

    def take(self, lanes: Mapping[str, Lane]) -> None:
        """Take what was acknowledged since the last time, at offsets that the clients were told."""
        fresh = []
        for producer, lane in lanes.items():
            for sequence in range(self._taken.get(producer, 0), lane.sent):
                origin = Origin(producer, 0, sequence)
                value = None if is_tombstone(origin) else b""
                fresh.append(Logged(lane.acknowledged[sequence], 0, key_of(origin), value, batch=0))
            self._taken[producer] = lane.sent
        self.records += sorted(fresh, key=lambda record: record.offset)

    def fault(self, offsets: Iterable[int], cleaned: int) -> str:
        """The fault of a partition with records at `offsets` that is cleaned below `cleaned`; empty if there is none.

        Without a fault, later checks build on this state.
        """
        if cleaned < self.cleaned:  # after a crash between a compaction and its checkpoint, the cleaner compacts again
            return f"cleaned up to {cleaned}, it was {self.cleaned} before"
        left = expected_after_compaction(self.records, end_offset=cleaned, now_ms=0, delete_retention_ms=NEVER_MS).records
        found = set(offsets)
        too_many = found - {record.offset for record in left}
        if too_many:
            return f"cleaned up to {cleaned}, and yet {_some(too_many)} are there"
        missing = {r.offset for r in left if r.offset not in found and (r.value is not None or r.offset >= cleaned)}
        if missing:
            return f"cleaned up to {cleaned}, and {_some(missing)} are gone"
        self.cleaned, self.records = cleaned, [record for record in left if record.offset in found]
        return ""


def _some(offsets: Iterable[int]) -> Sequence[int]:
    return sorted(offsets)[:5]
