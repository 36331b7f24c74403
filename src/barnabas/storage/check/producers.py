"""Checks the producers of a partition: replays them from the batches, and compares them with the snapshots and the aborted
transactions.

Owns the replay. A snapshot is right if it agrees with the batches about every producer that both have; a producer that it lacks
may have expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import NO_PRODUCER_ID, BatchHeader
from barnabas.protocol.records.record import Record
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.files import Files
from barnabas.storage.markers import ending_of
from barnabas.storage.producer_state import NO_OFFSET, CompletedTransaction, ProducerEntry, ProducerStates
from barnabas.storage.segment import SNAPSHOT_SUFFIX, file_name
from barnabas.storage.snapshot import decode_snapshot, encode_snapshot

COSTS = "a retried batch may be taken twice or refused; nothing is lost, the next start goes by the batches"


class ProducerCheck:
    """Replay and snapshots of one partition."""

    def __init__(self, files: Files, folder: Path, snapshot_offsets: Sequence[int], first_offset: int) -> None:
        self.findings: list[Finding] = []
        self.replacements: dict[Path, bytes] = {}  # corrected snapshots
        self.markers: set[tuple[int, int]] = set()  # abort markers of the current segment: (producer id, offset)
        self.aborted: list[CompletedTransaction] = []  # transactions that the markers of the current segment aborted
        self.is_exact = True  # every batch so far was whole
        self._files = files
        self._snapshots: list[tuple[int, Path, list[ProducerEntry] | None]] = []
        self._states = ProducerStates()
        self.is_complete = first_offset == 0  # the replay began at the start of the log
        for offset in sorted(snapshot_offsets):
            path = folder / file_name(offset, SNAPSHOT_SUFFIX)
            entries = self._read(path)
            if offset <= first_offset and entries is not None:
                self._states, self.is_complete = ProducerStates(entries), True
            else:
                self._snapshots.append((offset, path, entries))
        self._faults = {finding.path: finding for finding in self.findings}
        self.findings = []

    def _read(self, path: Path) -> list[ProducerEntry] | None:
        try:
            entries = decode_snapshot(self._files.read_file(path), path)
        except CorruptLog as error:
            self.findings.append(Finding(path, error.reason, COSTS, error.position))
            return None
        return entries

    def begin_segment(self) -> None:
        self.markers, self.aborted = set(), []

    def batch(self, header: BatchHeader, records: Iterable[Record]) -> None:
        """Replay a whole batch; `records` is read only for control batches."""
        self.reached(header.base_offset)
        if header.producer_id == NO_PRODUCER_ID:
            return
        if not header.is_control:
            self._states.update(header, header.base_offset)
            return
        marker = next(iter(records), None)
        ending = ending_of(marker)
        if marker is None or ending is None:
            return
        if ending.aborted:
            self.markers.add((header.producer_id, marker.offset))
        completed = self._states.update_marker(header, ending, marker.offset)
        if completed is not None and completed.aborted:
            self.aborted.append(completed)

    def reached(self, offset: int) -> None:
        """Check the snapshots up to `offset`, because all batches below it were replayed."""
        while self._snapshots and self._snapshots[0][0] <= offset:
            snapshot_offset, path, entries = self._snapshots.pop(0)
            if entries is None:
                self._broken(path)
            else:
                self._compare(snapshot_offset, path, entries)

    def end(self, end_offset: int) -> None:
        """Finish at the end of the log; later snapshots are of lost records."""
        self.reached(end_offset)
        for offset, path, _ in self._snapshots:
            what = f"it is of offset {offset}, the log ends at {end_offset}"
            self.findings.append(
                Finding(path, what, "nothing: the next start removes it", repair=Repair.REMOVE_FILE, mended=True)
            )
        self._snapshots = []

    def _broken(self, path: Path) -> None:
        fault = self._faults[path]
        if self.is_exact and self.is_complete:
            self.replacements[path] = encode_snapshot(self._states)
            self.findings.append(Finding(path, fault.what, COSTS, fault.position, repair=Repair.REBUILD_SNAPSHOT, mended=True))
        else:
            reason = "the batches that it was made from are not all there; the next start goes by an older one and the batches"
            self.findings.append(Finding(path, fault.what, COSTS, fault.position, why_not=reason, mended=True))

    def _compare(self, offset: int, path: Path, entries: list[ProducerEntry]) -> None:
        for entry in entries:
            what = self._contradiction(offset, entry)
            if what is not None:
                if self.is_exact and self.is_complete:
                    self.replacements[path] = encode_snapshot(self._states)
                    self.findings.append(Finding(path, what, COSTS, repair=Repair.REBUILD_SNAPSHOT))
                else:
                    self.findings.append(Finding(path, what, COSTS, why_not="not all batches that it was made from are there"))
                return

    def _contradiction(self, offset: int, entry: ProducerEntry) -> str | None:
        if entry.last_offset >= offset:
            return f"producer {entry.producer_id} has last offset {entry.last_offset}, past the snapshot's own {offset}"
        replayed = self._states.get(entry.producer_id)
        if replayed is None or not self.is_exact:
            return None
        told, found = _summary(entry), _summary(replayed)
        if NO_OFFSET in (entry.last_offset, replayed.last_offset):
            told, found = told[:1], found[:1]
        if told == found:
            return None
        return f"producer {entry.producer_id} has (epoch, sequence, offset) {told}, the batches say {found}"


def _summary(entry: ProducerEntry) -> tuple[int, ...]:
    return entry.epoch, entry.last_sequence, entry.last_offset
