"""The input and the results of a cleaning as plain data: the broker creates the task, and another process executes it.

Owns the types that the two exchange, and their text (one JSON object each).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from barnabas.storage.producer_state import LastWrite

NEVER_MS = -1  # earlier than every delete horizon


class SegmentRef(NamedTuple):
    """A sealed segment: offsets [base_offset, next_offset), and the bytes of its log."""

    base_offset: int
    next_offset: int
    size: int


class CleaningTask(Struct, frozen=True):
    """One log to clean.

    Fields:
        segments: all sealed segments that may be cleaned, in order.
        later: base offsets of the segments after them, whose aborted transactions may begin in `segments`.
        first_dirty_offset: records below it were cleaned before.
        producers: the producers that the broker knows.
        now_ms: start time of the cleaning, for delete horizons.
        dedupe_bytes: memory for the keys; if they need more, this cleaning ends earlier and a later one continues.
        load_factor: the maximum fill of the table of keys.
        buffer_bytes: size of one read.
        keeps_expired: keep tombstones and markers after their delete horizon, for a replica that has not seen them.
    """

    directory: Path
    segments: tuple[SegmentRef, ...]
    later: tuple[int, ...]
    first_dirty_offset: int
    producers: Mapping[int, LastWrite]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_bytes: int
    load_factor: float
    buffer_bytes: int
    keeps_expired: bool = False

    @property
    def expired_ms(self) -> int:
        """Delete horizons up to this time have passed."""
        return NEVER_MS if self.keeps_expired else self.now_ms

    @property
    def end_offset(self) -> int:
        """Records at or after this offset are not read."""
        return self.segments[-1].next_offset

    def to_json(self) -> str:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        fields["directory"] = str(self.directory)
        fields["producers"] = [[producer, *last] for producer, last in self.producers.items()]
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> CleaningTask:
        fields = json.loads(text)
        fields["directory"] = Path(fields["directory"])
        fields["segments"] = tuple(SegmentRef(*each) for each in fields["segments"])
        fields["later"] = tuple(fields["later"])
        fields["producers"] = {producer: LastWrite(*last) for producer, *last in fields["producers"]}
        return cls(**fields)


class CleanedGroup(NamedTuple):
    """A cleaned segment that is ready to replace the segments that begin at `replaced`; it gets the name of the first one."""

    base_offset: int
    replaced: tuple[int, ...]
    bytes_before: int
    bytes_after: int


class CleaningResult(NamedTuple):
    """A completed cleaning: records before `cleaned_offset` are clean."""

    cleaned_offset: int
    keys: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_written: int
