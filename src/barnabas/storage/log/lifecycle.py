"""A log from its opening to its end: flushes, changed settings, a move to another folder, closing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from barnabas.config.topic import TopicConfig
from barnabas.errors import (
    CorruptLog,
    LogDirFailed,
)
from barnabas.storage import checkpoints
from barnabas.storage.epoch_file import EpochFile
from barnabas.storage.files import Files, sync_file
from barnabas.storage.flushing import Flusher, FlushPlan
from barnabas.storage.garbage import Garbage
from barnabas.storage.loader import LoadedLog, load_log
from barnabas.storage.log.appender import LogAppender
from barnabas.storage.log.reader import LogReader
from barnabas.storage.log.state import PRODUCER_ID_EXPIRATION_MS, LogState
from barnabas.storage.log.truncator import LogTruncator
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.os_errors import storage_error
from barnabas.storage.producer_state import ProducerEntry
from barnabas.storage.segment import Segment

logger = logging.getLogger(__name__)
PARTS = frozenset({"reader", "appender", "truncator"})


class Log(LogState):
    """One partition's log; created by `Log.open`."""

    def __init__(
        self, directory: Path, topic: str, partition: int, topic_id: UUID | None, config: TopicConfig, files: Files
    ) -> None:
        super().__init__(directory, topic, partition, topic_id, config, files)
        self._compose(self)

    def _compose(self, state: LogState) -> None:
        self.reader = LogReader(state)
        self.appender = LogAppender(state)
        self.truncator = LogTruncator(state, self.appender)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        config: TopicConfig,
        files: Files,
        now_ms: int,
        clean_shutdown: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int = 0,
        topic_id: UUID | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        open_files: OpenFiles | None = None,
        sync_name: bool = True,
    ) -> Log:
        """Open the log in `directory` (named `<topic>-<partition>`), or begin one there.

        Args:
            clean_shutdown: the log was closed, so its files are trusted.
            recovery_point: a crash cannot have changed records before it.
            cleaned_offset: below it, compaction may have left gaps.
            topic_id: written for a new log; an existing log keeps its own.
            open_files: limits the number of segments with an open file, over all logs that share it.
            sync_name: make the name of a new log's first segment durable; otherwise the caller calls `sync_name` before it uses the log.

        Raises:
            CorruptLog: the folder has files in a state that no crash leaves.
            LogDirFailed: the disk does not work.
            StorageExhausted: the disk is full.
        """
        topic, _, partition = directory.name.rpartition("-")
        opened = cls(directory, topic, int(partition), topic_id, config, files)
        opened.producer_id_expiration_ms = producer_id_expiration_ms
        opened.open_files = open_files
        try:
            files.make_directory(directory)
            opened._load_topic_id(clean_shutdown=clean_shutdown)
            loaded = load_log(
                directory,
                files=files,
                config=config,
                now_ms=now_ms,
                clean_shutdown=clean_shutdown,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                cleaned_offset=cleaned_offset,
                sync_name=sync_name,
            )
        except OSError as error:
            raise storage_error(directory.parent, error) from error
        opened._take_over(loaded, clean_shutdown=clean_shutdown, recovery_point=recovery_point)
        opened.producer_states.expire(now_ms, producer_id_expiration_ms)
        opened.cleaned_end = min(cleaned_offset, opened.log_end_offset)
        if clean_shutdown or not opened.log_end_offset:
            opened.as_on_disk = opened.extent
        return opened

    def _take_over(self, loaded: LoadedLog, *, clean_shutdown: bool, recovery_point: int) -> None:
        self.epoch_file = EpochFile(self.files, self.directory, loaded.epochs, is_written=loaded.has_epochs_written)
        self.producer_states = loaded.producers
        self.log_start_offset = self.kept_start_offset = loaded.log_start_offset
        self.segments = LogSegments(loaded.segments, self.open_files)
        end = self.log_end_offset = self.segments.active.next_offset
        self.flusher = Flusher(
            self.files,
            self.directory,
            durable_end=end if clean_shutdown else min(recovery_point, end),
            is_folder_durable=clean_shutdown,
        )
        for segment in loaded.segments:
            segment.synced = clean_shutdown  # after a kill, the name of the segment file may not be durable yet

    def sync_name(self) -> None:
        """Make the names in the folder and the log's topic id durable; blocks.

        If many logs are created one after the other, the first call does most of the work for all. If a power failure removed its id, a
        log could be of any topic that ever had the name. So no log takes a record before its id is on the disk (as in Kafka).

        Raises:
            LogDirFailed: the disk does not work.
        """
        try:
            if self.topic_id is not None:
                sync_file(self.files, self.directory / checkpoints.PARTITION_METADATA)
            self.files.sync_directory(self.directory)
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error

    def plan_flush(self, up_to_offset: int | None = None, *, everything: bool = True) -> FlushPlan | None:
        """A plan that makes the records below `up_to_offset` (all, if None) durable; None if they are durable already.

        The caller runs it in a thread and passes it to `finish_flush` on the loop, also after a failure.

        Args:
            everything: also indexes, epochs and snapshots, which moves the recovery point; otherwise only `durable_end` moves.

        Raises:
            LogDirFailed: the disk failed before.
        """
        end = self.log_end_offset if up_to_offset is None else min(up_to_offset, self.log_end_offset)
        plan = self.flusher.plan(self.segments, self.epoch_file, end, everything=everything)
        if plan is not None and everything:
            plan.snapshot = self._unwritten_producers_at(end)
        return plan

    def _unwritten_producers_at(self, offset: int) -> Sequence[ProducerEntry] | None:
        """The producers as they were when the log ended at `offset`; None if they are unknown, or in a snapshot already."""
        if offset == self.snapshot_offset:
            return None
        if offset == self.log_end_offset:
            return list(self.producer_states)
        at, producers = self.rolled_producers
        return producers if offset == at else None

    def finish_flush(self, plan: FlushPlan) -> None:
        """Take over the result of a plan.

        Raises:
            LogDirFailed: the disk does not work; nothing more becomes durable.
            StorageExhausted: there was no space for the indexes; no bound moved.
        """
        self.flusher.finish(plan, self.segments)
        if plan.snapshot is not None and plan.truncations == self.truncations:
            self.snapshot_offset = plan.end
            if self.rolled_producers[0] <= plan.end:
                self.rolled_producers = -1, ()

    def flush(self, up_to_offset: int | None = None) -> None:
        """Plan, run and finish a flush at once, for callers that may block.

        Raises:
            LogDirFailed, StorageExhausted: as `finish_flush`.
        """
        plan = self.plan_flush(up_to_offset)
        if plan is not None:
            plan.run()
            self.finish_flush(plan)

    def fail(self, error: LogDirFailed) -> None:
        """Record that the log directory failed: nothing more is written or durable, and `close` leaves the files as a crash would."""
        self.flusher.fail(error)

    def update_config(self, config: TopicConfig) -> None:
        self.config = config
        self.roll_size = self.roll_time = self.roll_offset = -1

    @property
    def needs_work_to_close(self) -> bool:
        """Whether `close` has something to write or sync."""
        return not self.closed and self.flusher.failed is None and (self.as_on_disk != self.extent or self.was_torn)

    def close(self) -> None:
        """Flush, write what the next opening needs, and close the files; a log that did not change costs nothing."""
        if self.closed:
            return
        if not self.needs_work_to_close:
            self.abandon()
            return
        try:
            self.cut_torn()
            active = self.segments.active
            active.add_time_entry()
            with self.flusher.lock:  # a flush may still run in a thread
                for index in (active.index, active.time_index):
                    index.write(exact=True)
                self.snapshot()
                self.epoch_file.write()
            self.flush()
            self._sync_end()
            active.sync_indexes()
            self.truncator.sync_cut()
        except OSError as error:
            raise storage_error(self.directory.parent, error) from error
        finally:
            self.abandon()

    def _sync_end(self) -> None:
        """Sync the segments that end where the log ends, if the flush may have had nothing to do: the name of an empty one must be durable
        before the next append, and so must the cut of a failed write."""
        for segment in self.segments.ending_from(self.log_end_offset):
            if self.was_torn or not segment.synced:
                segment.sync_records()

    def abandon(self) -> None:
        """Close the files as they are, as a crash would; the next `open` recovers."""
        self.closed = self.flusher.closed = True
        self._close_files()
        self._leave_parts()

    def detach_all(self) -> Garbage:
        """Stop using the folder, which is about to be renamed; its descriptors stay open for running reads."""
        self.closed = self.flusher.closed = True
        garbage, self.garbage = self.garbage, []
        self._leave_parts()
        return Garbage(self.files, [], [segment.close for segment in self.segments.leave_all()], garbage)

    def _leave_parts(self) -> None:
        """Give the parts a copy of the state, which nothing changes any more, so that they do not refer to this log. So a log that is
        out of use is freed by reference counting; the garbage collector may not know it (`server/gc_tuning`)."""
        state = LogState.__new__(LogState)
        vars(state).update((name, value) for name, value in vars(self).items() if name not in PARTS)
        self._compose(state)

    def put_on(self, directory: Path, segments: Sequence[Segment]) -> Garbage:
        """Continue in `directory` with `segments`, which have the same bytes there.

        Flushes that are running have no effect, because they concern the old files. Not while segments are swapped.

        Returns: files of the old folder that must be closed and removed.
        """
        assert not self.swapping, "a copy is not up to date while segments are swapped"
        old = self.flusher
        flusher = Flusher(self.files, directory, durable_end=old.durable_end, is_folder_durable=False)
        flusher.recovery_point, flusher.truncations, flusher.failed = old.recovery_point, old.truncations + 1, old.failed
        flusher.snapshots = old.snapshots
        garbage, self.garbage = self.garbage, []
        gone = self.segments.leave_all()
        self.segments = LogSegments(segments, self.open_files)
        self.epoch_file = EpochFile(self.files, directory, self.epoch_file.epochs, is_written=True)
        self.flusher, self.directory = flusher, directory
        self.is_torn = self.was_torn = False
        return Garbage(self.files, [], [segment.close for segment in gone], garbage)

    def _close_files(self) -> None:
        for garbage in self.truncator.take_garbage():
            garbage.remove()
        for segment in self.segments:
            segment.close()

    def _load_topic_id(self, *, clean_shutdown: bool) -> None:
        path = self.directory / checkpoints.PARTITION_METADATA
        try:
            known = checkpoints.read_partition_metadata(self.files, path)
        except CorruptLog as error:
            # A clean stop rules out a power failure as the cause: the log may belong to an older topic of that name.
            if clean_shutdown:
                raise
            logger.warning("event=topic-id-lost file=%s note='taken from the metadata' reason=%r", error.path, error.reason)
            known = None
            self.files.unlink(path)  # the id may stay unknown, and a clean stop must not leave a broken file
        if known is not None:
            self.topic_id = known
        elif self.topic_id is not None:
            checkpoints.write_partition_metadata(self.files, path, self.topic_id)

    def adopt_topic_id(self, topic_id: UUID) -> None:
        """Set the topic id of a log whose folder does not name one.

        Raises:
            StorageError: the id cannot be written.
        """
        assert self.topic_id is None, "a log does not change its topic"
        try:
            checkpoints.write_partition_metadata(self.files, self.directory / checkpoints.PARTITION_METADATA, topic_id)
        except OSError as error:
            raise storage_error(self.directory.parent, error) from error
        self.topic_id = topic_id
        self.sync_name()
