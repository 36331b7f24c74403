"""Removing records from a log: at the start by deletion and retention, at the end by truncation, in between by compaction.

Rule: files are removed in two steps, so that a removal never disturbs a read. They are detached here at once, and deleted later by
`Garbage.remove`.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from barnabas.error_codes import ErrorCode
from barnabas.errors import (
    KafkaError,
    LogDirFailed,
    SegmentsGone,
    StorageExhausted,
)
from barnabas.storage.files import sync_file
from barnabas.storage.garbage import Garbage
from barnabas.storage.log.appender import LogAppender
from barnabas.storage.log.state import MAX_OFFSET, LogState
from barnabas.storage.log_segments import retire
from barnabas.storage.producer_loading import load_producers, snapshot_offsets
from barnabas.storage.producer_rewind import ProducerRewind
from barnabas.storage.producer_state import ProducerStates
from barnabas.storage.retention import count_not_retained
from barnabas.storage.segment import SNAPSHOT_SUFFIX, Segment, file_name
from barnabas.storage.transaction_index import aborted_of

logger = logging.getLogger(__name__)
MAX_SEGMENTS = 2**31
REPLAYED_AT_ONCE_BYTES = 8 * 1024  # 100 of the smallest batches; replaying them takes 1 ms


class LogTruncator:
    """The part that makes a log shorter."""

    __slots__ = ("_appender", "_log")

    def __init__(self, log: LogState, appender: LogAppender) -> None:
        self._log = log
        self._appender = appender

    def delete_records_before(self, offset: int) -> None:
        """Move the log's start up to `offset`; the next `detach_below_start` removes whole segments below it.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, `offset` is past the end.
        """
        log = self._log
        if offset > log.log_end_offset or offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset <= log.log_start_offset:
            return
        log.log_start_offset = offset
        log.epoch_file.epochs.truncate_from_start(offset)

    @property
    def start_mark(self) -> tuple[int, int]:
        """The start of the log, for `start_written`."""
        log = self._log
        return log.log_start_offset, log.truncations + log.announced_cuts

    def start_written(self, mark: tuple[int, int]) -> None:
        """Record that a checkpoint is on the disk with the start of the log at `mark`, or a later one. After a cut, the recovery point
        and the cut itself must be on the disk too (`sync_cut`). If something was cut after `mark`, the call has no effect, because the
        disk may have other values."""
        log = self._log
        start, cuts = mark
        if cuts == log.truncations + log.announced_cuts:
            log.kept_start_offset = max(log.kept_start_offset, start)
            log.is_overstated, log.lowest_cut = False, MAX_OFFSET

    def apply_retention(self, now_ms: int, *, committed_end: int = MAX_OFFSET) -> int:
        """Move the log's start past the segments that `retention.ms` and `retention.bytes` no longer keep.

        If all of the active segment is too old, it is rolled and also removed, so that an idle topic becomes empty.

        Args:
            committed_end: segments with records at or past it stay.

        Returns:
            The number of segments below the start, for `detach_below_start`. Before that call, the start must be written and synced: the
            file system may keep the removal of one segment and forget that of an older one, and then only the start shows that nothing
            is missing between them.
        """
        log = self._log
        if log.is_swapping:
            return 0
        count = count_not_retained(log.segments, log.config, log.log_start_offset, now_ms, committed_end)
        if count == len(log.segments):
            try:
                self._appender.roll(now_ms, log.log_end_offset)
            except StorageExhausted:
                count -= 1  # without a roll only the sealed segments go; this frees space
        if count and log.segments.bases[count] > log.log_start_offset:
            log.log_start_offset = log.segments.bases[count]
            log.epoch_file.epochs.truncate_from_start(log.log_start_offset)
        return log.segments.count_below(log.log_start_offset)

    def detach_below_start(self, most: int = MAX_SEGMENTS) -> None:
        """Remove at most `most` segments that are wholly below the log's start, the oldest first: their files are renamed now and
        deleted later. During a swap it does nothing; a later call removes them."""
        log = self._log
        count = min(most, log.segments.count_below(log.log_start_offset))
        if not count or log.is_swapping:
            return
        gone = log.segments.detach_first(count)
        try:
            for offset in snapshot_offsets(log.files, log.directory):
                if offset < log.first_offset:
                    log.files.unlink(log.directory / file_name(offset, SNAPSHOT_SUFFIX))
        except OSError as error:
            log.garbage.append(Garbage(log.files, [], [segment.close for segment in gone]))
            raise LogDirFailed(str(log.directory.parent), str(error)) from error
        with self._failing_as_a_whole():
            self._retire(gone)
        logger.info(
            "event=segments-deleted directory=%s count=%d log_start_offset=%d", log.directory, count, log.log_start_offset
        )

    def _retire(self, gone: Sequence[Segment]) -> None:
        """Rename the files of segments that have left the list; closes them also if that fails, and raises OSError."""
        log = self._log
        try:
            log.garbage.append(retire(log.files, gone))
        except OSError:
            log.garbage.append(Garbage(log.files, [], [segment.close for segment in gone]))
            raise

    def take_garbage(self) -> list[Garbage]:
        """The files that were detached since the last call; the caller removes it in a thread after `file.delete.delay.ms`."""
        log = self._log
        garbage, log.garbage = log.garbage, []
        return garbage

    # Compaction; `compaction.segment_replacement` calls these methods

    def begin_swap(self, replaced: Sequence[int], cleaned: Segment) -> list[Segment]:
        """Put `cleaned` in the place of the sealed neighbours that begin at `replaced`; returns these, their files untouched.

        Until `end_swap` the log removes no other segments.

        Raises:
            SegmentsGone: they are not neighbours of this log any more.
            OSError: the disk does not tell how old they are.
        """
        log = self._log
        segments = log.segments
        start = bisect_left(segments.bases, replaced[0])
        old = segments.sealed[start : start + len(replaced)]
        is_here = cleaned.directory == log.directory  # false if the log has moved to another log directory in the meantime
        if log.closed or log.is_swapping or not is_here or [segment.base_offset for segment in old] != list(replaced):
            raise SegmentsGone(log.directory.name)
        cleaned.created_ms, cleaned.written_ms = old[-1].created_ms, old[-1].written_ms
        segments.replace(old, [cleaned])
        log.swapping = cleaned
        return old

    def end_swap(self, garbage: Garbage) -> None:
        """End the swap; `garbage` are the replaced files."""
        log = self._log
        log.swapping = None
        log.garbage.append(garbage)

    # Truncation; followers need it

    def plan_truncation(self, offset: int, at_once_bytes: int = REPLAYED_AT_ONCE_BYTES) -> ProducerRewind | None:
        """The slow part of `truncate_to`: the caller runs it in a thread and passes it to that method. None if it is quick, because it
        reads at most `at_once_bytes`."""
        log = self._log
        if not log.first_offset <= offset < log.log_end_offset:
            return None
        segments = list(log.segments)[: log.segments.index_of(offset) + 1]
        found = segments[-1].lookup.find(offset)
        rewind = ProducerRewind(
            log.files,
            log.directory,
            segments,
            end_offset=segments[-1].next_offset if found is None else found.base_offset,
            stop=segments[-1].size if found is None else found.position,
            mark=self._rewind_mark(),
        )
        return rewind if rewind.size_bytes > at_once_bytes else None

    def _rewind_mark(self) -> object:
        log = self._log
        return log.extent, list(log.segments)

    def may_cut(self, offset: int) -> bool:
        """Whether the next start can repair a cut at `offset` that a crash leaves half done.

        It can repair a cut past the recovery point. If the log was synced further than `offset`, a lower recovery point must first be
        written to the disk (`is_written_down`).
        """
        log = self._log
        if offset < log.recovery_point:
            log.flusher.forget_synced(offset)
            log.announced_cuts += 1
            log.is_overstated = True
        return not log.is_overstated

    def sync_cut(self) -> None:
        """Make the last cut durable, so that the cut records do not come back beside later ones; blocks, in a thread.

        After a roll since then, a sealed segment ends at the cut.

        Raises:
            LogDirFailed: the disk does not work.
        """
        log = self._log
        if log.lowest_cut == MAX_OFFSET or log.flusher.failed is not None:
            return
        try:
            for segment in log.segments.ending_from(log.lowest_cut):
                with suppress(FileNotFoundError):  # removed by retention, or as below
                    sync_file(log.files, segment.path)
            log.files.sync_directory(log.directory)
        except FileNotFoundError:
            return  # deleted, or moved to another log directory, whose files are synced
        except OSError as error:
            raise LogDirFailed(str(log.directory.parent), str(error)) from error

    def still_holds(self, rewind: ProducerRewind) -> bool:
        """Whether the log is unchanged since `rewind` was planned."""
        return not self._log.is_swapping and rewind.mark == self._rewind_mark()

    def truncate_to(self, offset: int, rewind: ProducerRewind | None = None) -> None:
        """Drop the records at and past `offset`; a batch that contains it is dropped whole. Not while these are in swapped segments.

        An epoch that began at the end, and got no records before another leader was elected, is forgotten as well.

        Args:
            rewind: planned for this offset, on the unchanged log; without it the producers are computed here, which takes 10 us for each
                batch since the last roll.

        Raises:
            LogDirFailed: the disk does not work; the log is half cut, and cannot be used any more.
        """
        log = self._log
        assert log.swapping is None or offset >= log.swapping.next_offset, "who truncates waits for the swap"
        if offset >= log.log_end_offset:
            log.epoch_file.epochs.truncate_from_end(offset)
            return
        if offset < log.first_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._failing_as_a_whole():
            log.flusher.truncating()
            self._retire(log.segments.detach_behind(offset))
            segment = log.segments.active
            if segment.index.sealed:
                segment.activate()
            found = segment.lookup.find(offset)
            if found is not None:
                segment.truncate(found.position)
            self._truncated(None if rewind is None else rewind.producers)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records; the next record gets `offset`. Not while segments are swapped. Raises as `truncate_to`."""
        assert not self._log.is_swapping, "who truncates waits for the swap"
        with self._failing_as_a_whole():
            self._start_over(offset)

    @contextmanager
    def _failing_as_a_whole(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LogDirFailed(str(self._log.directory.parent), str(error)) from error

    def _start_over(self, offset: int) -> None:
        log = self._log
        log.flusher.truncating()
        created_ms = log.segments.active.created_ms
        garbage = retire(log.files, list(log.segments))  # renamed first: the first segment may get a name that is in use
        first = Segment.create(log.files, log.directory, offset, created_ms, log.config.preallocated_bytes)
        log.segments.start_over(first)
        log.garbage.append(garbage)
        for stale in snapshot_offsets(log.files, log.directory):
            log.files.unlink(log.directory / file_name(stale, SNAPSHOT_SUFFIX))
        self._truncated()
        log.log_start_offset = offset
        # No epoch ends below the start: a follower whose last record is of such an epoch would have to cut its log there, and then to
        # start again here, without an end.
        log.epoch_file.epochs.truncate_from_start(offset)
        log.flusher.start_over(offset)

    def _truncated(self, producers: ProducerStates | None = None) -> None:
        """Adjust the rest of the state to the log's new end; `producers` are those at that end, if they are known."""
        log = self._log
        log.is_torn, log.snapshot_offset, log.rolled_producers = False, -1, (-1, ())
        end = log.log_end_offset = log.segments.active.next_offset
        log.lowest_truncation = min(log.lowest_truncation, end)
        log.cleaned_end = min(log.cleaned_end, end)
        self._appender.plan_roll()
        log.lowest_cut = min(log.lowest_cut, end)
        log.is_overstated = True
        log.flusher.truncated(end)
        log.log_start_offset = min(log.log_start_offset, end)
        log.kept_start_offset = min(log.kept_start_offset, log.log_start_offset)
        log.epoch_file.epochs.truncate_from_end(end)
        for segment in log.segments:
            aborted_of(segment).truncate(end)
        snapshots = snapshot_offsets(log.files, log.directory)
        if producers is None:
            producers = load_producers(log.files, log.directory, list(log.segments), snapshots)
        else:
            for stale in snapshots[bisect_right(snapshots, end) :]:
                log.files.unlink(log.directory / file_name(stale, SNAPSHOT_SUFFIX))
        log.producer_states = producers
