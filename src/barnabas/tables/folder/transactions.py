"""The open transactions at an offset of a log, and the aborted ones before it.

Owns the progress of a reading of batch headers, from a snapshot of the producers on. A later reading goes on where the one before
ended, so it costs as much as was written meanwhile.

Rules
  1. The log ends before the first batch that is not whole. Where a batch may still be written, its CRC is checked too.
  2. Transactions that ended before the reading began are in the files of aborted transactions; the reading finds those that ended later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from barnabas.columnar.batches import CONTROL, TRANSACTIONAL, Longs, marker_kind
from barnabas.errors import CorruptLog
from barnabas.lazy_module import LazyModule
from barnabas.protocol.records.batch_header import CRC_START, MAGIC
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.checkpoints import LEADER_EPOCHS, read_leader_epochs
from barnabas.storage.files import ReadingFiles
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.markers import ABORT, COMMIT
from barnabas.storage.producer_state import NO_OFFSET
from barnabas.storage.segment.file_names import SNAPSHOT_SUFFIX, file_name
from barnabas.storage.snapshot import decode_snapshot
from barnabas.tables.folder.blocks import Block, BlockReader
from barnabas.tables.folder.segments import NO_ABORTED, FileId, LogSegment

if TYPE_CHECKING:
    from barnabas.protocol.records import kernels as k
else:
    k = LazyModule("barnabas.protocol.records.kernels")

BLOCK_BYTES = 4 << 20  # read at once
WHOLE_LOG = 2**63 - 1


class TransactionProgress:
    """The transactions of a log up to `next_offset`, and its leader epochs.

    Args:
        start: offset from which on it reads.
        is_open: first offsets of the transactions that are open there, by producer id.
        epochs: the leader epochs that the log's file has.
    """

    def __init__(self, start: int, is_open: Mapping[int, int], epochs: Iterable[tuple[int, int]] = ()) -> None:
        self.epochs = LeaderEpochs(epochs)
        self.start = start
        self.next_offset = start
        self.found: list[tuple[int, int, int]] = []  # aborted: producer id, first and last offset
        self._open = dict(is_open)
        self._seen_end: int | None = None  # of the last batch that was read
        self._place: tuple[FileId, int] | None = None  # the file that was read last, and how far

    @property
    def stable_offset(self) -> int:
        """The last stable offset, if the log is committed up to `next_offset`."""
        return min(self._open.values(), default=self.next_offset)

    def aborted(self, segments: Sequence[LogSegment]) -> Longs:
        """All aborted transactions that ended below `next_offset`, int64[n, 3] in the order of their first offsets."""
        before = [each.aborted[each.aborted[:, 2] < self.start] for each in segments if len(each.aborted)]
        rows = np.concatenate([NO_ABORTED, *before, np.array(self.found, np.int64).reshape(-1, 3)])
        return rows[np.argsort(rows[:, 1], kind="stable")]

    def read(self, segments: Sequence[LogSegment], limit: int | None) -> None:
        """Go on to `limit`, or to the end of the log.

        Args:
            limit: the offset up to which the log is known to be written; None if its last batch may be under way.

        Raises:
            CorruptLog: a segment other than the last one is damaged.
            SegmentGone: a segment is not there any more.
        """
        for slot, segment in enumerate(segments):
            is_last = slot == len(segments) - 1
            if not is_last and segments[slot + 1].base_offset <= self.next_offset:
                continue
            if limit is not None and segment.base_offset >= limit:
                break
            self._read_segment(segment, WHOLE_LOG if limit is None else limit, is_last=is_last, is_written=limit is not None)

    def _read_segment(self, segment: LogSegment, limit: int, *, is_last: bool, is_written: bool) -> None:
        if self.next_offset >= limit:
            return
        with segment.opened() as fileno:
            position = self._position_in(segment, fileno)
            unsure_from = segment.last_indexed_position(fileno) if is_last and not is_written else None
            for block in BlockReader(BLOCK_BYTES).read(segment, fileno, position, may_end_early=is_last):
                wanted = self._wanted(block, limit, unsure_from)
                if len(wanted):
                    self._take(block.data, wanted)
                    segment.mark(block.position, wanted)
                    position = block.position + int(wanted[-1, k.POSITION] + wanted[-1, k.SIZE])
                    self._place = segment.identity, position
                if len(wanted) < len(block.table) or self.next_offset >= limit:
                    break

    def _position_in(self, segment: LogSegment, fileno: int) -> int:
        if self._place is not None and self._place[0] == segment.identity:
            return self._place[1]
        return segment.start_position(fileno, self.next_offset)

    def _wanted(self, block: Block, limit: int, unsure_from: int | None) -> Longs:
        """The batches up to the limit or to the first one that is not whole."""
        position, view, table = block
        bad = (table[:, k.MAGIC] != MAGIC) | (table[:, k.BASE_OFFSET] >= limit)
        stop = int(np.argmax(bad)) if bad.any() else len(table)
        if unsure_from is not None:
            first = int(np.searchsorted(table[:stop, k.POSITION], unsure_from - position))
            for row in range(first, stop):
                begin, size, crc = (int(table[row, column]) for column in (k.POSITION, k.SIZE, k.CRC))
                if crc32c(view[begin + CRC_START : begin + size]) != crc:
                    stop = row
                    break
        return table[:stop]

    def _take(self, view: memoryview, table: Longs) -> None:
        """Follow the transactions and leader epochs of these batches."""
        for epoch, row in zip(*np.unique(table[:, k.LEADER_EPOCH], return_index=True), strict=True):
            self.epochs.found(int(epoch), int(table[row, k.BASE_OFFSET]))
        kind = table[:, k.ATTRIBUTES] & (CONTROL | TRANSACTIONAL)
        for row in table[(kind != 0) & (table[:, k.BASE_OFFSET] >= self.next_offset)]:
            producer_id, offset = int(row[k.PRODUCER_ID]), int(row[k.BASE_OFFSET])
            if not row[k.ATTRIBUTES] & CONTROL:
                self._open.setdefault(producer_id, offset)
                continue
            decision = marker_kind(view, row)
            if decision in (ABORT, COMMIT):
                first = self._open.pop(producer_id, None)
                if first is not None and decision == ABORT:
                    self.found.append((producer_id, first, offset + int(row[k.LAST_DELTA])))
        self._seen_end = int(table[-1, k.BASE_OFFSET] + table[-1, k.LAST_DELTA]) + 1
        self.next_offset = max(self.next_offset, self._seen_end)

    def is_past_end(self, segments: Sequence[LogSegment]) -> bool:
        """Whether it began behind the end of the log: a loss of power took records, and not the snapshot of their producers."""
        seen = self._seen_end if self._seen_end is not None else segments[-1].base_offset if segments else self.start
        return seen < self.start


def read_transactions(
    folder: Path, segments: Sequence[LogSegment], snapshots: Sequence[int], log_start: int, limit: int | None
) -> TransactionProgress:
    """The transactions at `limit`, from the newest snapshot of producers below it, or from the start of the log if none can be read.

    Raises:
        CorruptLog, SegmentGone: as `TransactionProgress.read`.
    """
    epochs = _epochs(folder / LEADER_EPOCHS)
    for offset in reversed(snapshots):
        is_open = _open_at(folder / file_name(offset, SNAPSHOT_SUFFIX)) if limit is None or offset <= limit else None
        if is_open is not None:
            progress = TransactionProgress(offset, is_open, epochs)
            progress.read(segments, limit)
            if not progress.is_past_end(segments):
                return progress
    progress = TransactionProgress(log_start, {}, epochs)
    progress.read(segments, limit)
    return progress


def _open_at(path: Path) -> dict[int, int] | None:
    """First offsets of the open transactions of a snapshot, by producer id; None if it cannot be read."""
    try:
        entries = decode_snapshot(ReadingFiles().read_file(path), path)
    except (FileNotFoundError, CorruptLog):
        return None
    return {each.producer_id: each.transaction_first_offset for each in entries if each.transaction_first_offset != NO_OFFSET}


def _epochs(path: Path) -> list[tuple[int, int]]:
    """The entries of the file of leader epochs; none if it is not there, or cannot be read."""
    try:
        return read_leader_epochs(ReadingFiles(), path)
    except (FileNotFoundError, CorruptLog):
        return []
