"""Moves a log to another log directory while it is read and written.

Owns the copy: a folder `<topic>-<partition>.<32 hex digits>-future` in the other directory, which becomes the log's own.

    copying    rounds of `plan` (on the loop), `CopyPlan.run` (in a thread) and `finish` (on the loop) until little is missing; each
               round copies and syncs the bytes that the copy lacks
    swapping   `swap` copies the few bytes that came meanwhile, renames the folder to the log's name and puts the log on it, all in
               one step of the loop: readers and writers see the old files before it and the new ones after it
    leaving    `LogRemoval.leave`, in a thread: the new name is synced, the checkpoints get its entries, and then the old folder
               loses its name

Rules
  1. Only bytes are copied, never records: offsets, batches and indexes are the same in both places.
  2. The copy holds a file `moved.tmp` until the old folder is removed. After a crash it identifies the folders: a folder with the log's
     name and that file has taken over, and another of the same name is the old one; a folder that is still called `-future` is not
     complete, and the move begins again with it.
  3. Durable records stay durable: the swap waits until the copy is synced as far as the log is.
  4. A log that was truncated, or whose segments were replaced, is copied again as far as needed. Segments that retention removed leave
     the copy too. While compaction replaces segments, nothing is planned or swapped, because names lead to other files then.
  5. An error of the target disk is raised as a StorageError of `directory`, an error of the source disk as OSError.

Source: KIP-113. Kafka copies batches by a fetcher; here a file is copied as a file, so compaction and transactions need no special care.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from barnabas.errors import InvariantViolated
from barnabas.storage import checkpoints
from barnabas.storage.copying import CopyPlan, Piece, Unreadable, writing_to
from barnabas.storage.files import Files, sync_file, write_all
from barnabas.storage.garbage import Garbage, remove_folder
from barnabas.storage.segment import ABORTED_SUFFIX, SUFFIXES, Segment, file_name

if TYPE_CHECKING:
    from barnabas.storage.log import Log

MARKER = "moved.tmp"  # opening a log removes files with this ending
SWAP_BYTES = 64 * 1024  # the loop itself copies up to this many bytes


class _Copied(Struct):
    """The copied part of a segment."""

    size: int = 0
    index_entries: int = 0
    time_index_entries: int = 0
    is_complete: bool = False  # a sealed segment, copied with its indexes


class LogMove:
    """The move of one log to `directory`, a log directory; the copy grows in `folder`."""

    def __init__(self, moved: Log, directory: Path, folder: Path, files: Files) -> None:
        self.log = moved
        self.directory = directory
        self.folder = folder
        self._files = files
        self._copied: dict[Segment, _Copied] = {}
        self._truncations = moved.truncations
        self._durable_end = 0

    def prepare(self) -> None:
        """Create the folder; blocks a little. From then on, a restart of the broker finds the move.

        Raises:
            StorageError: the disk does not work, or is full.
        """
        with writing_to(self.directory):
            self._files.make_directory(self.folder)
            self._files.replace_file(self.folder / MARKER, self.log.directory.name.encode())
            if self.log.topic_id is not None:
                checkpoints.write_partition_metadata(self._files, self.folder / checkpoints.PARTITION_METADATA, self.log.topic_id)
                sync_file(self._files, self.folder / checkpoints.PARTITION_METADATA)
            self._files.sync_directory(self.directory)

    @property
    def size_bytes(self) -> int:
        """Bytes of records in the copy."""
        return sum(copied.size for copied in self._copied.values())

    @property
    def end_offset(self) -> int:
        """The copy has all records below this offset, and maybe some more."""
        for segment in self.log.segments:
            copied = self._copied.get(segment)
            if copied is None or copied.size < segment.size:
                return segment.base_offset
        return self.log.log_end_offset

    # Copying

    def plan(self, max_bytes: int) -> CopyPlan:
        """The next round, of about `max_bytes` at most; not while segments of the log are swapped."""
        moved = self.log
        assert not moved.is_swapping, "names lead to other files"
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
        wanted = set(segments)
        gone = [segment for segment in self._copied if segment not in wanted]
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

    def _piece(self, segment: Segment, start: int, end: int, *, is_sealed: bool) -> Piece:
        is_last = is_sealed and end == segment.size
        if is_sealed and not is_last:
            return Piece(segment, start, end, 0, 0, is_last=False)
        return Piece(segment, start, end, segment.index.written_bytes, segment.time_index.written_bytes, is_last=is_last)

    def finish(self, plan: CopyPlan) -> None:
        """Record the result of `plan`, which has run.

        Raises:
            OSError: a file of the log is missing, and no change of the log explains that.
        """
        if plan.truncations != self.log.truncations:
            return
        for piece in plan.pieces:
            if piece.segment in plan.lost:
                if piece.segment in self.log.segments and not self.log.is_swapping:
                    raise Unreadable(f"{piece.segment.path} is missing or too short")
                # A part of the segment may be in the copy: an entry makes the next plan remove it.
                self._copied[piece.segment] = _Copied()
                continue
            copied = self._copied.setdefault(piece.segment, _Copied())
            copied.size, copied.is_complete = piece.end, piece.is_last
            copied.index_entries = piece.index_bytes // piece.segment.index.entry_bytes
            copied.time_index_entries = piece.time_index_bytes // piece.segment.time_index.entry_bytes
        if not plan.lost:
            self._durable_end = plan.durable_end

    # Swapping

    @property
    def can_swap(self) -> bool:
        """Whether so little is missing that the loop may copy it."""
        moved = self.log
        *sealed, active = moved.segments
        copied = self._copied.get(active)
        return (
            not moved.is_swapping
            and moved.truncations == self._truncations
            and len(self._copied) == len(sealed) + 1
            and copied is not None
            and active.size - copied.size <= SWAP_BYTES
            and all(segment in self._copied and self._copied[segment].is_complete for segment in sealed)
            and active.index.keeps_behind(copied.index_entries)
            and active.time_index.keeps_behind(copied.time_index_entries)
            and moved.durable_end <= self._durable_end
        )

    def swap(self) -> Garbage:
        """Put the log on its new folder; the old folder keeps its name.

        Raises:
            StorageError: the new disk does not work, or is full; the log stays where it was.
            OSError: the old files cannot be read; the log stays where it was.
        """
        if not self.can_swap:
            raise InvariantViolated("a log was to be swapped for a copy that is not up to date")
        moved = self.log
        final = self.directory / moved.directory.name
        segments = [self._moved_segment(segment, final) for segment in moved.segments]
        with writing_to(self.directory):
            checkpoints.write_leader_epochs(self._files, self.folder / checkpoints.LEADER_EPOCHS, moved.epoch_entries)
            self._files.rename(self.folder, final)
        self.folder = final
        return moved.put_on(final, segments)

    def _moved_segment(self, segment: Segment, final: Path) -> Segment:
        copied = self._copied[segment]
        if copied.is_complete:
            return segment.moved_to(final)
        rest = self._files.pread(segment.fileno, segment.size - copied.size, copied.size)
        with writing_to(self.directory):
            target = self._files.open(self.folder / segment.path.name)
            try:
                write_all(self._files, target, rest, copied.size)
            finally:
                self._files.close(target)
        aborted = file_name(segment.base_offset, ABORTED_SUFFIX)
        if self._files.exists(segment.directory / aborted):
            data = self._files.read_file(segment.directory / aborted)
            with writing_to(self.directory):
                self._files.replace_file(self.folder / aborted, data, sync=False)
        return segment.moved_to(final, index_entries=copied.index_entries, time_index_entries=copied.time_index_entries)

    def give_up(self) -> None:
        """Remove the copy; blocks, runs in a thread."""
        if self._files.exists(self.folder):
            remove_folder(self._files, self.folder)
