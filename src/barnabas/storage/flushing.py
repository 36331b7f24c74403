"""Tracks the flushed part of one log, and flushes the rest.

Owns two bounds and the plans that move them:

    durable_end      records before it survive a power failure: their file and the names of its path were synced
    recovery_point   before it, indexes, epochs and snapshots are flushed as well, so the next start need not check there

Rules
  1. recovery_point <= durable_end <= the log's end.
  2. A flush has three steps: `plan` on the loop, `FlushPlan.run` in a thread that may block, `finish` on the loop. Only `finish` moves a
     bound, and only if no truncation began or ended in between (`truncations`).
  3. A failed sync is never tried again: `failed` is set, no bound moves any more, and records past `durable_end` count as lost until a
     start has read them from the disk.
  4. A failure of a segment that has left the log meanwhile is ignored.
  5. A plan with `everything` also writes files with fixed names, so such plans run one at a time (`lock`). They are rare: the
     periodic flush, the cleaner, the stop. `finish` of a plan may come after the next plan has run.
  6. Until a plan is finished, the descriptors of its segments stay open (`Segment.pins`). The code that limits the number of open files
     skips them, because the number of a closed descriptor may return as another file.
  7. A plan that reaches the log's end also writes a snapshot of the producers; otherwise a start would read all of the active segment.
     So does a plan that reaches the end of a segment whose roll left the snapshot to it, because there were many producers. The snapshot
     is written under a temporary name after its records were synced, and `finish` renames it on the loop: after a truncation in between,
     it would have producers of records that are gone. The temporary name belongs to one plan, because another plan may write the same
     snapshot. If that plan has moved the recovery point as far, this snapshot is dropped.
  8. Records of a segment count as durable only when the end of the segment before is durable too. A failed write or a truncation may have
     cut that one where it ends, without another record in it since. So a plan that begins at its end syncs it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import RLock

from barnabas.errors import LogDirFailed
from barnabas.storage import checkpoints
from barnabas.storage.epoch_file import EpochFile
from barnabas.storage.files import TEMPORARY_SUFFIX, Files, sync_file, write_all
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.os_errors import storage_error
from barnabas.storage.producer_state import ProducerEntry
from barnabas.storage.segment import SNAPSHOT_SUFFIX, Segment, file_name
from barnabas.storage.snapshot import encode_snapshot
from barnabas.storage.transaction_index import aborted_of

FLUSHING_SUFFIX = ".flushing" + TEMPORARY_SUFFIX  # a name of its own: a roll may write the same snapshot at the same time


class FlushPlan:
    """The files to sync, fixed at one moment: `segments` hold the records of [start, end) that are not on the disk yet.

    Args:
        everything: also indexes, epochs and snapshots, so that the recovery point moves; otherwise only the files that records need.
    """

    __slots__ = (
        "_epochs",
        "_files",
        "_is_new_folder",
        "_lock",
        "end",
        "errors",
        "everything",
        "folder",
        "is_done",
        "number",
        "position",
        "segments",
        "size",
        "snapshot",
        "truncations",
    )

    def __init__(self, flusher: Flusher, segments: list[Segment], epochs: EpochFile, *, end: int, everything: bool) -> None:
        self.segments = segments
        self.end = end
        self.everything = everything
        self.number = next(flusher.numbers)
        self.truncations = flusher.truncations
        self.is_done = False
        # Base offset and size of the last segment. Without segments, everything that was not on the disk has been removed.
        self.position = (segments[-1].base_offset, segments[-1].size) if segments else flusher.position
        self.size = 0  # bytes that the plan covers; the caller who made it sets this
        # The producers at `end`, if the caller who made the plan knows them and they must be written.
        self.snapshot: Sequence[ProducerEntry] | None = None
        self.errors: list[tuple[Segment | None, OSError, bool]] = []  # segment, error, whether a sync failed
        self._files = flusher.files
        self.folder = flusher.folder
        self._epochs = epochs
        self._lock: AbstractContextManager[object] = flusher.lock if everything else nullcontext()
        self._is_new_folder = not flusher.is_folder_durable

    def run(self) -> None:
        """Block until everything is on the disk; errors are kept for `Flusher.finish`."""
        with self._lock:
            self._run()

    def _run(self) -> None:
        if self.everything:  # write before any sync, so that a full disk is found early
            for segment in self.segments:
                self._attempt(segment, segment.write_indexes)
            self._attempt(None, self._epochs.write)
        for segment in self.segments:
            self._sync(segment, segment.sync_records)
            if self.everything:
                self._sync(segment, segment.sync_indexes)
                self._sync(segment, aborted_of(segment).sync)
                self._sync(segment, partial(self._sync_snapshot, segment.next_offset))
        if self.errors:  # this includes errors of segments that have left the log, which do no harm
            self.snapshot = None
        if self.snapshot is not None:
            self._attempt(None, partial(self._write_snapshot, self.snapshot))
            if not self.errors:
                self._sync(None, partial(sync_file, self._files, self.unnamed_snapshot))
        if self.everything:  # snapshots and `.txnindex` files are created long after their segment
            self._sync(None, partial(self._files.sync_directory, self.folder))
        if self._is_new_folder:
            self._sync(None, self._sync_names)
        self.is_done = True

    def _sync_snapshot(self, offset: int) -> None:
        path = self.folder / file_name(offset, SNAPSHOT_SUFFIX)
        if self._files.exists(path):
            sync_file(self._files, path)

    @property
    def unnamed_snapshot(self) -> Path:
        return self.folder / f"{file_name(self.end, SNAPSHOT_SUFFIX)}.{self.number}{FLUSHING_SUFFIX}"

    def _write_snapshot(self, producers: Sequence[ProducerEntry]) -> None:
        data = encode_snapshot(producers)
        fileno = self._files.open(self.unnamed_snapshot, create=True)
        try:
            write_all(self._files, fileno, data, 0)
            self._files.truncate(fileno, len(data))
        except OSError:
            with suppress(OSError):  # if this fails, the next start removes the file
                self._files.unlink(self.unnamed_snapshot)
            raise
        finally:
            self._files.close(fileno)

    def _sync_names(self) -> None:
        """Sync the names of a folder that this process created, and its topic id."""
        metadata = self.folder / checkpoints.PARTITION_METADATA
        if self._files.exists(metadata):
            sync_file(self._files, metadata)
        self._files.sync_directory(self.folder)
        self._files.sync_directory(self.folder.parent)

    def _attempt(self, segment: Segment | None, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            self.errors.append((segment, error, False))

    def _sync(self, segment: Segment | None, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            self.errors.append((segment, error, True))


class Flusher:
    """The flushing of the log in `folder`.

    Args:
        durable_end: records before it are on the disk, with all that belongs to them.
        is_folder_durable: whether the folder's own name is on the disk.
    """

    __slots__ = (
        "closed",
        "durable_end",
        "failed",
        "files",
        "folder",
        "is_folder_durable",
        "lock",
        "numbers",
        "position",
        "recovery_point",
        "snapshots",
        "truncations",
    )

    def __init__(self, files: Files, folder: Path, *, durable_end: int, is_folder_durable: bool) -> None:
        self.files = files
        self.folder = folder
        self.durable_end = durable_end
        self.recovery_point = durable_end
        self.is_folder_durable = is_folder_durable
        self.truncations = 0
        self.lock = RLock()
        self.numbers = count()
        # Base offset and size of the last segment that was flushed with its indexes, epochs and snapshots.
        self.position = (-1, 0)
        self.snapshots: tuple[int, ...] = ()  # offsets of the last two snapshots that flushes wrote
        self.closed = False  # the log's files may be gone
        self.failed: LogDirFailed | None = None

    def plan(self, segments: LogSegments, epochs: EpochFile, end: int, *, everything: bool) -> FlushPlan | None:
        """The plan that makes the records before `end` durable; None if they are durable already.

        Raises:
            LogDirFailed: a sync has failed before.
        """
        if self.failed is not None:
            raise self.failed
        start = self.recovery_point if everything else self.durable_end
        if end <= start:
            return None
        wanted = [s for s in segments.ending_from(start) if s.base_offset < end]
        for segment in wanted:
            segment.pins += 1
        return FlushPlan(self, wanted, epochs, end=end, everything=everything)

    def finish(self, plan: FlushPlan, segments: LogSegments) -> None:
        """Take over the result of `plan`.

        Raises:
            LogDirFailed: a sync failed; nothing becomes durable any more.
            StorageExhausted: there was no space for the indexes; no bound moved, and a later flush may succeed.
        """
        for segment in plan.segments:
            segment.pins -= 1
        if self.closed or plan.folder != self.folder:  # the log was deleted or moved to another log directory
            return
        is_truncated = self.truncations != plan.truncations
        for concerned, error, in_sync in plan.errors:
            if concerned is not None and (is_truncated or concerned not in segments):
                continue
            failure = storage_error(self.folder.parent, error)
            if in_sync or isinstance(failure, LogDirFailed):
                self.failed = LogDirFailed(str(self.folder.parent), str(error))
                raise self.failed from error
            raise failure from error
        if not plan.is_done:
            self.failed = LogDirFailed(str(self.folder.parent), "a flush broke off")
            raise self.failed
        self.is_folder_durable = True
        try:
            self._settle_snapshot(plan, segments, is_wanted=not is_truncated and plan.end > self.recovery_point)
        except OSError as error:
            raise storage_error(self.folder.parent, error) from error
        if is_truncated:
            return
        self.durable_end = max(self.durable_end, plan.end)
        if plan.everything and plan.end >= self.recovery_point:
            self.recovery_point = plan.end
            self.position = plan.position

    def _settle_snapshot(self, plan: FlushPlan, segments: LogSegments, *, is_wanted: bool) -> None:
        """Give the plan's snapshot its name, and remove snapshots of earlier flushes except the last one. The last one is at the
        recovery point that is written to the disk, and a start may have to go back to it."""
        if plan.snapshot is None:
            return
        if not is_wanted:
            self.files.unlink(plan.unnamed_snapshot)
            plan.snapshot = None
            return
        self.files.rename(plan.unnamed_snapshot, self.folder / file_name(plan.end, SNAPSHOT_SUFFIX))
        for offset in self.snapshots[:-1]:
            if offset not in segments.bases:  # at a segment's base offset lies the snapshot of a roll
                self.files.unlink(self.folder / file_name(offset, SNAPSHOT_SUFFIX))
        self.snapshots = (*self.snapshots[-1:], plan.end)

    def fail(self, error: LogDirFailed) -> None:
        """Record that the disk does not work: nothing becomes durable any more."""
        self.failed = self.failed or error

    def truncating(self) -> None:
        """Record that a truncation begins."""
        self.truncations += 1

    def truncated(self, log_end_offset: int) -> None:
        """Record that a truncation ended."""
        self.truncations += 1
        self.durable_end = min(self.durable_end, log_end_offset)
        self.recovery_point = min(self.recovery_point, log_end_offset)
        self.snapshots = tuple(offset for offset in self.snapshots if offset <= log_end_offset)

    def forget_synced(self, offset: int) -> None:
        """Lower the recovery point to `offset`, because records after it are about to be truncated."""
        self.recovery_point = min(self.recovery_point, offset)

    def start_over(self, offset: int) -> None:
        """Record that the log is empty and begins at `offset`."""
        self.durable_end = self.recovery_point = offset
