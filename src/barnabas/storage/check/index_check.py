"""Checks the files beside a `.log` file against its batches: both sparse indexes and the index of aborted transactions.

Owns the answer to one question: does a lookup through this file find the same as a search of all batches? The entries may
differ from those that this code writes, because Kafka chooses others; they must lead to the same results.

How it works: the entries are read first. Then each batch is compared with the entries that concern it, so nothing as large as
the log is kept in memory.

Rules of meaning
  1. `.index`: an entry (offset, position) names a position where a batch begins, and no record at or past the offset is before
     that position.
  2. `.timeindex`: an entry (timestamp, offset) has the largest timestamp of the batches up to the offset. The last entry of a
     sealed segment has the largest timestamp of all, because retention and lookups use it.
  3. `.txnindex`: every entry names an abort marker of that producer at its last offset, and every abort that ended a
     transaction of this log has an entry.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from barnabas.protocol.records.batch_header import BatchHeader
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.files import Files
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.producer_state import CompletedTransaction
from barnabas.storage.segment import NO_TIMESTAMP
from barnabas.storage.transaction_index import ENTRY as ABORTED_ENTRY
from barnabas.storage.transaction_index import VERSION as ABORTED_VERSION

COSTS_NOTHING = "nothing is lost, it can be made anew from the batches"
SLOW_OR_WRONG = "lookups through it may miss records; " + COSTS_NOTHING


class SegmentFiles(Struct, frozen=True):
    """The paths of a segment's files; the files of a compacted segment may still have other names."""

    base_offset: int
    log: Path
    index: Path
    time_index: Path
    aborted: Path


class IndexCheck:
    """Both sparse indexes of one segment: created before the pass over the batches, and called for each batch and at the end."""

    def __init__(self, files: Files, segment: SegmentFiles, *, is_active: bool, is_recovered: bool) -> None:
        self.findings: list[Finding] = []
        self._base_offset = segment.base_offset
        self._is_active = is_active
        self._is_recovered = is_recovered
        self._offset_path = segment.index
        self._time_path = segment.time_index
        self._newest = NO_TIMESTAMP
        self._trusts_times = True
        offsets = self._load(files, self._offset_path, OFFSET_ENTRY)
        self._times = self._load(files, self._time_path, TIME_ENTRY)
        # Entries whose batch was not read yet: position -> relative offset.
        self._missing = {position: relative for relative, position in offsets}
        self._time_slot = 0
        self._check_sorted(self._offset_path, offsets)
        self._check_sorted(self._time_path, self._times)

    def _load(self, files: Files, path: Path, entry: struct.Struct) -> list[tuple[int, int]]:
        if not files.exists(path):
            self._say(path, "the file is missing", "lookups must read the batches; " + COSTS_NOTHING, mended=True)
            return []
        data = files.read_file(path)
        if len(data) % entry.size:
            self._say(path, f"{len(data)} bytes are no whole number of entries of {entry.size} bytes", COSTS_NOTHING)
        used = len(data.rstrip(b"\0"))  # Kafka reserves space in the index of a growing segment: zeros after the last entry
        used += -used % entry.size
        if not self._is_active and used < len(data):
            self._say(path, f"{(len(data) - used) // entry.size} empty entries follow the last one", SLOW_OR_WRONG)
        return list(entry.iter_unpack(data[: min(used, len(data) - len(data) % entry.size)]))

    def _check_sorted(self, path: Path, entries: list[tuple[int, int]]) -> None:
        """Check that both columns grow from entry to entry."""
        previous = (-(2**63), -1)
        for slot, (key, value) in enumerate(entries):
            if key <= previous[0] or value <= previous[1]:
                size = OFFSET_ENTRY.size if path is self._offset_path else TIME_ENTRY.size
                self._say(
                    path, f"entry {slot} ({key}, {value}) does not follow ({previous[0]}, {previous[1]})", position=slot * size
                )
                return
            previous = key, value

    def damaged(self, position: int, end: int) -> None:
        """Skip the entries that name batches between two bytes, because nothing is known of these batches."""
        self._trusts_times = False
        self._missing = {at: relative for at, relative in self._missing.items() if not position <= at < end}

    def batch(self, position: int, header: BatchHeader) -> None:
        """Check the entries about a whole batch."""
        relative = self._missing.pop(position, None)
        if relative is not None and header.base_offset > self._base_offset + relative:
            what = f"offset {self._base_offset + relative} is said to lie at byte {position} or behind, where {header.base_offset} begins"
            self._say(self._offset_path, what)
        self._newest = max(self._newest, header.max_timestamp)
        last = header.last_offset - self._base_offset
        while self._time_slot < len(self._times) and self._times[self._time_slot][1] <= last:
            self._check_time(*self._times[self._time_slot])
            self._time_slot += 1

    def _check_time(self, timestamp: int, relative: int) -> None:
        if self._trusts_times and timestamp != self._newest:
            offset = self._base_offset + relative
            self._say(
                self._time_path, f"timestamp {timestamp} stands at offset {offset}, where the largest so far is {self._newest}"
            )

    def end(self, size: int, next_offset: int) -> None:
        """Check the remaining entries after the last batch; the batches end at byte `size`, and `next_offset` follows them."""
        for position, relative in self._missing.items():
            where = "no batch begins" if position < size else "the file has no batch"
            self._say(
                self._offset_path, f"offset {self._base_offset + relative} is said to lie at byte {position}, where {where}"
            )
        for timestamp, relative in self._times[self._time_slot :]:
            if self._base_offset + relative < next_offset:  # the entry belongs to a damaged batch
                continue
            what = f"timestamp {timestamp} stands at offset {self._base_offset + relative}, which is past the end of the segment"
            self._say(self._time_path, what)
        last = self._times[-1][0] if self._times else NO_TIMESTAMP
        if not self._is_active and self._trusts_times and last != self._newest:
            self._say(self._time_path, f"the last timestamp is {last}, where the largest of the segment is {self._newest}")

    def _say(
        self, path: Path, what: str, loss: str = SLOW_OR_WRONG, position: int | None = None, *, mended: bool = False
    ) -> None:
        # One finding per file is enough: the repair rebuilds the whole file.
        if not any(finding.path == path for finding in self.findings):
            is_mended = mended or self._is_recovered
            self.findings.append(Finding(path, what, loss, position, repair=Repair.REBUILD_INDEXES, mended=is_mended))


def check_aborted(
    files: Files, segment: SegmentFiles, markers: set[tuple[int, int]] | None, aborted: list[CompletedTransaction]
) -> Iterator[Finding]:
    """The findings about the index of aborted transactions of one segment.

    Args:
        markers: (producer id, offset) of every abort marker in the segment; None if compaction may have removed markers, whose
            entries stay.
        aborted: the transactions of this log that these markers ended.
    """
    path = segment.aborted
    data = files.read_file(path) if files.exists(path) else b""
    if len(data) % ABORTED_ENTRY.size:
        yield _aborted(path, f"{len(data)} bytes are no whole number of entries of {ABORTED_ENTRY.size} bytes")
        return
    found = set()
    previous = -1
    for slot, (version, producer_id, first, last, stable) in enumerate(ABORTED_ENTRY.iter_unpack(data)):
        what = None
        if version != ABORTED_VERSION:
            what = f"entry {slot} has version {version}"
        elif markers is not None and (producer_id, last) not in markers:
            what = f"entry {slot} names an abort of producer {producer_id} at offset {last}, where there is none"
        elif last <= previous or first > last or stable < first:
            what = f"entry {slot} (offsets {first} to {last}, stable from {stable}) is out of order"
        if what is not None:
            yield _aborted(path, what)
            return
        previous = last
        found.add((producer_id, first, last))
    for transaction in aborted:
        if (transaction.producer_id, transaction.first_offset, transaction.last_offset) not in found:
            what = f"the aborted transaction of producer {transaction.producer_id} is not in it"
            yield _aborted(path, what, transaction.first_offset, transaction.last_offset)
            return


def _aborted(path: Path, what: str, first: int | None = None, last: int | None = None) -> Finding:
    loss = "readers of committed records may get aborted ones; " + COSTS_NOTHING
    return Finding(path, what, loss, None, first, last, Repair.REBUILD_ABORTED)
