"""Moving a log to another log directory while it is read and written.

Owns the copy: a folder `<topic>-<partition>.<32 hex digits>-future` in the other directory, which becomes the log's own.

    copying    rounds of `plan` (on the loop), `CopyPlan.run` (in a thread) and `finish` (on the loop) until little is missing; each
               copies what the log has more than the copy, and syncs it
    swapping   `swap` copies the few bytes that came meanwhile, renames the folder to the log's name and puts the log on it, all in one
               step of the loop: who reads or writes sees the old files before it and the new ones after it
    leaving    `LogManager.leave`, in a thread: the new name is synced and the checkpoints know of it, then the old folder loses its own

Rules
  1. Only bytes are copied, never records: offsets, batches and indexes are the same in both places.
  2. The copy holds a file `moved.tmp` until the old folder is out of the way. What a crash leaves is told apart by it: a folder with the
     log's name and that file has taken over, and another of the same name is the old one; a folder that is still called `-future` is
     not whole, and the move begins again.
  3. What was durable stays so: the swap waits until the copy is synced as far as the log is.
  4. A log that was truncated, or whose segments were replaced, is copied again as far as that goes; segments that retention let go leave
     the copy as well.

Source: KIP-113. Kafka copies batches by a fetcher; here a file is copied as a file, so compaction and transactions need no care.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.errors import InvariantViolated
from barnabas.storage import checkpoints
from barnabas.storage.files import Files, sync_file, write_all
from barnabas.storage.garbage import Garbage, remove_folder
from barnabas.storage.loader import snapshots_in
from barnabas.storage.segment import (
    ABORTED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    Segment,
    file_name,
)

if TYPE_CHECKING:
    from barnabas.storage.log import Log

log = logging.getLogger(__name__)

MARKER = "moved.tmp"  # the ending is one that opening a log removes
COPY_BYTES = 1024 * 1024  # in one read
SWAP_BYTES = 64 * 1024  # that the loop copies itself


@dataclass(slots=True)
class _Copied:
    """What the copy has of a segment."""

    size: int = 0
    index_entries: int = 0
    time_index_entries: int = 0
    is_complete: bool = False  # a sealed one, its indexes and all


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes [start, end) of a segment; with them the indexes' first entries, all of a sealed one."""

    segment: Segment
    start: int
    end: int
    index_bytes: int
    time_index_bytes: int
    is_last: bool  # of a sealed segment


class CopyPlan:
    """One round of copying, fixed on the loop; `run` blocks, and belongs in a thread."""

    def __init__(
        self, files: Files, source: Path, target: Path, *, truncations: int, durable_end: int, starts_over: bool
    ) -> None:
        self.pieces: list[_Piece] = []
        self.unwanted: list[Path] = []
        self.truncations = truncations
        self.durable_end = durable_end  # of the copy, once this has run
        self.starts_over = starts_over
        self.size = 0
        self.lost: set[Segment] = set()  # pieces whose segment was gone
        self._files = files
        self._source = source
        self._target = target

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.size += piece.end - piece.start

    def run(self) -> None:
        """Copy and sync.

        Raises:
            OSError: one of the disks does not work.
        """
        if self.starts_over:
            self.unwanted += [self._target / name for name in self._files.list_directory(self._target) if name[:1].isdigit()]
        for path in self.unwanted:
            self._files.unlink(path)
        for piece in self.pieces:
            try:
                self._copy_segment(piece)
            except FileNotFoundError:  # its files were renamed meanwhile; the next plan knows
                self.lost.add(piece.segment)
        for offset in snapshots_in(self._files.list_directory(self._source)):
            with suppress(FileNotFoundError):  # removed meanwhile, as those of segments that are gone
                self._copy_small(file_name(offset, SNAPSHOT_SUFFIX))
        self._files.sync_directory(self._target)

    def _copy_segment(self, piece: _Piece) -> None:
        base, index, time_index = piece.segment.base_offset, piece.segment.index_name, piece.segment.time_index_name
        self._copy(file_name(base, LOG_SUFFIX), piece.start, piece.end)
        self._copy(index, 0, piece.index_bytes)
        self._copy(time_index, 0, piece.time_index_bytes)
        self._copy_small(file_name(base, ABORTED_SUFFIX), again=True)

    def _copy(self, name: str, start: int, end: int) -> None:
        source = self._files.open(self._source / name)
        try:
            target = self._files.open(self._target / name, create=True)
            try:
                position = start
                while position < end:
                    data = self._files.pread(source, min(COPY_BYTES, end - position), position)
                    if not data:
                        raise OSError(f"{self._source / name} ends at {position}, before its end {end}")
                    write_all(self._files, target, data, position)
                    position += len(data)
                self._files.truncate(target, end)
                self._files.sync(target)
            finally:
                self._files.close(target)
        finally:
            self._files.close(source)

    def _copy_small(self, name: str, *, again: bool = False) -> None:
        if not self._files.exists(self._source / name) or (not again and self._files.exists(self._target / name)):
            return
        self._files.replace_file(self._target / name, self._files.read_file(self._source / name), sync=False)
        sync_file(self._files, self._target / name)


class LogMove:
    """One log on its way to `directory`, a log directory; `folder` is where the copy grows."""

    def __init__(self, moved: Log, directory: Path, folder: Path, files: Files) -> None:
        self.log = moved
        self.directory = directory
        self.folder = folder
        self._files = files
        self._copied: dict[Segment, _Copied] = {}
        self._truncations = moved.truncations
        self._durable_end = 0

    def prepare(self) -> None:
        """Make the folder; blocks a little."""
        self._files.make_directory(self.folder)
        self._files.replace_file(self.folder / MARKER, self.log.directory.name.encode())
        if self.log.topic_id is not None:
            checkpoints.write_partition_metadata(self._files, self.folder / checkpoints.PARTITION_METADATA, self.log.topic_id)
            sync_file(self._files, self.folder / checkpoints.PARTITION_METADATA)

    @property
    def size_bytes(self) -> int:
        """Bytes of records in the copy."""
        return sum(copied.size for copied in self._copied.values())

    @property
    def missing_bytes(self) -> int:
        return max(0, self.log.size_bytes - self.size_bytes)

    @property
    def end_offset(self) -> int:
        """The copy holds all records below it, and maybe some more."""
        for segment in self.log.segments:
            copied = self._copied.get(segment)
            if copied is None or copied.size < segment.size:
                return segment.base_offset
        return self.log.log_end_offset

    # Copying

    def plan(self, max_bytes: int) -> CopyPlan:
        """The next round, of about `max_bytes` at most."""
        moved = self.log
        segments = list(moved.segments)
        plan = CopyPlan(
            self._files,
            moved.directory,
            self.folder,
            truncations=moved.truncations,
            durable_end=moved.log_end_offset,
            starts_over=moved.truncations != self._truncations,
        )
        if plan.starts_over:
            self._copied.clear()
            self._truncations, self._durable_end = moved.truncations, 0
        gone = [segment for segment in self._copied if segment not in set(segments)]
        for segment in gone:
            del self._copied[segment]
            plan.unwanted += [self.folder / file_name(segment.base_offset, suffix) for suffix in SUFFIXES]
        for segment in segments:
            if plan.size >= max_bytes:
                plan.durable_end = min(plan.durable_end, segment.base_offset)
                break
            copied = self._copied.get(segment, _Copied())
            if not copied.is_complete:
                end = min(segment.size, copied.size + max_bytes - plan.size)
                if end < segment.size:
                    plan.durable_end = min(plan.durable_end, segment.base_offset)
                plan.add(self._piece(segment, copied.size, end, is_sealed=segment is not segments[-1]))
        return plan

    def _piece(self, segment: Segment, start: int, end: int, *, is_sealed: bool) -> _Piece:
        is_last = is_sealed and end == segment.size
        if is_sealed and not is_last:
            return _Piece(segment, start, end, 0, 0, is_last=False)
        return _Piece(segment, start, end, segment.index.written_bytes, segment.time_index.written_bytes, is_last=is_last)

    def finish(self, plan: CopyPlan) -> None:
        """`plan` has run."""
        if plan.truncations != self.log.truncations:
            return
        for piece in plan.pieces:
            copied = self._copied.setdefault(piece.segment, _Copied())
            if piece.segment in plan.lost:  # it may have left some of its files, which the next plan removes with it
                continue
            copied.size, copied.is_complete = piece.end, piece.is_last
            copied.index_entries = piece.index_bytes // piece.segment.index.entry_bytes
            copied.time_index_entries = piece.time_index_bytes // piece.segment.time_index.entry_bytes
        if not plan.lost:
            self._durable_end = plan.durable_end

    # Swapping

    @property
    def can_swap(self) -> bool:
        """Whether what is missing is so little that the loop may copy it."""
        moved = self.log
        *sealed, active = moved.segments
        copied = self._copied.get(active)
        return (
            moved.truncations == self._truncations
            and len(self._copied) == len(sealed) + 1
            and copied is not None
            and active.size - copied.size <= SWAP_BYTES
            and all(segment in self._copied and self._copied[segment].is_complete for segment in sealed)
            and active.index.keeps_behind(copied.index_entries)
            and active.time_index.keeps_behind(copied.time_index_entries)
            and moved.durable_end <= self._durable_end
        )

    def swap(self) -> Garbage:
        """Put the log on its new folder; the old one keeps its name.

        Raises:
            OSError: one of the disks does not work; the log stays where it was.
        """
        if not self.can_swap:
            raise InvariantViolated("a log was to be swapped for a copy that is not up to date")
        moved = self.log
        final = self.directory / moved.directory.name
        segments = [self._moved_segment(segment, final) for segment in moved.segments]
        checkpoints.write_leader_epochs(self._files, self.folder / checkpoints.LEADER_EPOCHS, moved.epoch_entries)
        self._files.rename(self.folder, final)
        self.folder = final
        return moved.put_on(final, segments)

    def _moved_segment(self, segment: Segment, final: Path) -> Segment:
        copied = self._copied[segment]
        if copied.is_complete:
            return segment.moved_to(final)
        rest = self._files.pread(segment.fileno, segment.size - copied.size, copied.size)
        target = self._files.open(self.folder / segment.path.name)
        try:
            write_all(self._files, target, rest, copied.size)
        finally:
            self._files.close(target)
        aborted = file_name(segment.base_offset, ABORTED_SUFFIX)
        if self._files.exists(segment.directory / aborted):
            data = self._files.read_file(segment.directory / aborted)
            self._files.replace_file(self.folder / aborted, data, sync=False)
        return segment.moved_to(final, index_entries=copied.index_entries, time_index_entries=copied.time_index_entries)

    def give_up(self) -> None:
        """Remove the copy; blocks, runs in a thread."""
        if self._files.exists(self.folder):
            remove_folder(self._files, self.folder)
