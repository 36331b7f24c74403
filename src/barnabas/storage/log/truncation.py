"""Taking records out of a log: at the start by deletion and retention, at the end by truncation, in between by compaction.

Rule: files are removed in two steps, so that a removal never meets a read: detached here, at once, and deleted by `Garbage.remove`.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from barnabas.error_codes import ErrorCode
from barnabas.errors import (
    KafkaError,
    LogDirFailed,
    SegmentsGone,
    StorageExhausted,
)
from barnabas.storage.files import sync_file
from barnabas.storage.garbage import Garbage
from barnabas.storage.log.appending import AppendableLog
from barnabas.storage.log.state import MAX_OFFSET
from barnabas.storage.log_segments import retire
from barnabas.storage.producer_loading import load_producers, snapshot_offsets
from barnabas.storage.producer_rewind import ProducerRewind
from barnabas.storage.producer_state import ProducerStates
from barnabas.storage.retention import count_not_retained
from barnabas.storage.segment import SNAPSHOT_SUFFIX, Segment, file_name
from barnabas.storage.transaction_index import aborted_of

logger = logging.getLogger(__name__)
MAX_SEGMENTS = 2**31
REPLAYED_AT_ONCE_BYTES = 8 * 1024  # 100 of the smallest batches, which take 1 ms


class TruncatableLog(AppendableLog):
    """What makes a log shorter."""

    def delete_records_before(self, offset: int) -> None:
        """Move the log's start up to `offset`; whole segments below it go with the next `detach_below_start`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE past the end.
        """
        if offset > self.log_end_offset or offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self._epochs.epochs.truncate_from_start(offset)

    @property
    def start_mark(self) -> tuple[int, int]:
        """Where the log begins, for `start_written`."""
        return self.log_start_offset, self.truncations + self._announced_cuts

    def start_written(self, mark: tuple[int, int]) -> None:
        """A checkpoint with the start as it was at `mark`, or since, is on the disk; after a cut, one with the recovery point as well, and
        the cut itself (`sync_cut`). Where something was cut since, the disk may say another."""
        start, cuts = mark
        if cuts == self.truncations + self._announced_cuts:
            self.kept_start_offset = max(self.kept_start_offset, start)
            self.is_overstated, self._lowest_cut = False, MAX_OFFSET

    def apply_retention(self, now_ms: int, *, committed_end: int = MAX_OFFSET) -> int:
        """Move the log's start past the segments that `retention.ms` and `retention.bytes` no longer keep.

        An active segment of which all is too old is rolled and goes too, so that an idle topic empties.

        Args:
            committed_end: segments with records at or past it stay.

        Returns:
            How many segments lie below the start, for `detach_below_start`. Before that the start is to be written down and synced:
            the system may keep the removal of one segment and forget that of an older one, and only the start tells then that
            nothing is missing between them.
        """
        if self.is_swapping:
            return 0
        count = count_not_retained(self._segments, self.config, self.log_start_offset, now_ms, committed_end)
        if count == len(self._segments):
            try:
                self._roll(now_ms, self.log_end_offset)
            except StorageExhausted:
                count -= 1  # the sealed ones go, which makes room
        if count and self._segments.bases[count] > self.log_start_offset:
            self.log_start_offset = self._segments.bases[count]
            self._epochs.epochs.truncate_from_start(self.log_start_offset)
        return self._segments.count_below(self.log_start_offset)

    def detach_below_start(self, most: int = MAX_SEGMENTS) -> None:
        """Give up the segments that lie wholly below the log's start, the oldest `most` of them: their files are renamed now and removed
        later. A swap under way is not disturbed: they go the next time then."""
        count = min(most, self._segments.count_below(self.log_start_offset))
        if not count or self.is_swapping:
            return
        gone = self._segments.detach_first(count)
        try:
            for offset in snapshot_offsets(self._files, self.directory):
                if offset < self.first_offset:
                    self._files.unlink(self.directory / file_name(offset, SNAPSHOT_SUFFIX))
        except OSError as error:
            self._garbage.append(Garbage(self._files, [], [segment.close for segment in gone]))
            raise LogDirFailed(str(self.directory.parent), str(error)) from error
        with self._failing_as_a_whole():
            self._retire(gone)
        logger.info(
            "event=segments-deleted directory=%s count=%d log_start_offset=%d", self.directory, count, self.log_start_offset
        )

    def _retire(self, gone: Sequence[Segment]) -> None:
        """Rename the files of segments that have left the list; where that fails they are closed all the same, raises OSError."""
        try:
            self._garbage.append(retire(self._files, gone))
        except OSError:
            self._garbage.append(Garbage(self._files, [], [segment.close for segment in gone]))
            raise

    def take_garbage(self) -> list[Garbage]:
        """What was detached since the last time; the caller removes it in a thread after `file.delete.delay.ms`."""
        garbage, self._garbage = self._garbage, []
        return garbage

    # Compaction, which `compaction.replacing` leads through these

    def begin_swap(self, replaced: Sequence[int], cleaned: Segment) -> list[Segment]:
        """Put `cleaned` in the place of the sealed neighbours that begin at `replaced`; they are answered, their files untouched.

        Until `end_swap` the log lets go of no other segments.

        Raises:
            SegmentsGone: they are not neighbours of this log any more.
            OSError: the disk does not say how old they are.
        """
        segments = self._segments
        start = bisect_left(segments.bases, replaced[0])
        old = segments.sealed[start : start + len(replaced)]
        is_here = cleaned.directory == self.directory  # not so if the log has moved to another log directory meanwhile
        if self._closed or self.is_swapping or not is_here or [segment.base_offset for segment in old] != list(replaced):
            raise SegmentsGone(self.directory.name)
        cleaned.created_ms, cleaned.written_ms = old[-1].created_ms, old[-1].written_ms
        segments.replace(old, [cleaned])
        self._swapping = cleaned
        return old

    def end_swap(self, garbage: Garbage) -> None:
        """The swap is done; `garbage` is what was replaced."""
        self._swapping = None
        self._garbage.append(garbage)

    # Truncation, which a follower needs

    def plan_truncation(self, offset: int, at_once_bytes: int = REPLAYED_AT_ONCE_BYTES) -> ProducerRewind | None:
        """What `truncate_to` needs that takes a while to find out: to be run in a thread and given to it. None where it takes none, for no
        more than `at_once_bytes` are to be read."""
        if not self.first_offset <= offset < self.log_end_offset:
            return None
        segments = list(self._segments)[: self._segments.index_of(offset) + 1]
        found = segments[-1].find(offset)
        rewind = ProducerRewind(
            self._files,
            self.directory,
            segments,
            end_offset=segments[-1].next_offset if found is None else found.base_offset,
            stop=segments[-1].size if found is None else found.position,
            mark=self._rewind_mark(),
        )
        return rewind if rewind.size_bytes > at_once_bytes else None

    def _rewind_mark(self) -> object:
        return self._extent, list(self._segments)

    def may_cut(self, offset: int) -> bool:
        """Whether a start puts right what a crash leaves of a cut at `offset` that is half done: past the recovery point it does. Where the
        log was synced further than that, it is to be written down first that it was not (`is_written_down`).
        """
        if offset < self.recovery_point:
            self._flusher.forget_synced(offset)
            self._announced_cuts += 1
            self.is_overstated = True
        return not self.is_overstated

    def sync_cut(self) -> None:
        """Have the last cut on the disk: what it took does not come back beside what is appended now; blocks, in a thread.

        Raises:
            LogDirFailed: the disk does not work.
        """
        if self._lowest_cut == MAX_OFFSET or self._flusher.failed is not None:
            return
        try:
            for segment in self._segments.starting_at(self._lowest_cut):
                sync_file(self._files, segment.path)
            self._files.sync_directory(self.directory)
        except FileNotFoundError:
            return  # cut again, deleted, or moved to another log directory, which was synced
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error

    def still_holds(self, rewind: ProducerRewind) -> bool:
        """Whether the log is as it was when `rewind` was planned."""
        return not self.is_swapping and rewind.mark == self._rewind_mark()

    def truncate_to(self, offset: int, rewind: ProducerRewind | None = None) -> None:
        """Drop the records at and past `offset`; a batch that holds it goes as a whole. Not while it reaches segments that are swapped.

        An epoch that began at the end, and got no records before another leader was chosen, is forgotten as well.

        Args:
            rewind: planned for this offset, and holds; else the producers are found out here, which takes 10 us for each batch since the
                last roll.

        Raises:
            LogDirFailed: the disk does not work; the log is cut by half, and nobody can go on with it.
        """
        assert self._swapping is None or offset >= self._swapping.next_offset, "who truncates waits for the swap"
        if offset >= self.log_end_offset:
            self._epochs.epochs.truncate_from_end(offset)
            return
        if offset < self.first_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._failing_as_a_whole():
            self._flusher.truncating()
            self._retire(self._segments.detach_behind(offset))
            segment = self._segments.active
            if segment.index.sealed:
                segment.activate()
            found = segment.find(offset)
            if found is not None:
                segment.truncate(found.position)
            self._truncated(None if rewind is None else rewind.producers)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`. Not while segments are swapped. Raises as `truncate_to`."""
        assert not self.is_swapping, "who truncates waits for the swap"
        with self._failing_as_a_whole():
            self._start_over(offset)

    @contextmanager
    def _failing_as_a_whole(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error

    def _start_over(self, offset: int) -> None:
        self._flusher.truncating()
        created_ms = self._segments.active.created_ms
        garbage = retire(self._files, list(self._segments))  # renamed, for the first one may get a name that is in use
        first = Segment.create(self._files, self.directory, offset, created_ms, self.config.preallocated_bytes)
        self._segments.start_over(first)
        self._garbage.append(garbage)
        for stale in snapshot_offsets(self._files, self.directory):
            self._files.unlink(self.directory / file_name(stale, SNAPSHOT_SUFFIX))
        self._truncated()
        self.log_start_offset = offset
        self._flusher.start_over(offset)

    def _truncated(self, producers: ProducerStates | None = None) -> None:
        """Bring everything else back to the log's new end; the producers as they were there, where they are known."""
        self._torn, self._snapshot_offset, self._rolled_producers = False, -1, (-1, ())
        end = self.log_end_offset = self._segments.active.next_offset
        self.lowest_truncation = min(self.lowest_truncation, end)
        self.cleaned_end = min(self.cleaned_end, end)
        self._plan_roll()
        self._lowest_cut = min(self._lowest_cut, end)
        self.is_overstated = True
        self._flusher.truncated(end)
        self.log_start_offset = min(self.log_start_offset, end)
        self.kept_start_offset = min(self.kept_start_offset, self.log_start_offset)
        self._epochs.epochs.truncate_from_end(end)
        for segment in self._segments:
            aborted_of(segment).truncate(end)
        snapshots = snapshot_offsets(self._files, self.directory)
        if producers is None:
            producers = load_producers(self._files, self.directory, list(self._segments), snapshots)
        else:
            for stale in snapshots[bisect_right(snapshots, end) :]:
                self._files.unlink(self.directory / file_name(stale, SNAPSHOT_SUFFIX))
        self._producers = producers
