"""Chooses the log to clean, has it cleaned, puts the cleaned segments in place, and records its clean offset.

Rules
  1. At most `log.cleaner.threads` logs are cleaned at a time, the dirtiest first. If none is due, the cleaner waits
     `log.cleaner.backoff.ms`. Each decision reads the settings, so a change counts from the next decision on.
  2. A log that cannot be cleaned does not stop the others. The cleaner gives up a log with a corrupt batch, or at which its process ended
     several times, until the broker restarts. After any other failure it tries again after a pause.
  3. The cleaner records the clean offset after the segments are in place, so a crash in between only causes a second cleaning.
  4. If a log is deleted, truncated or moved to another log directory in the meantime, its cleaning ends. Only `.cleaned` files remain,
     which are removed later.
  5. An expired tombstone or marker is removed only while all replicas are in sync. Otherwise a replica that comes back later would keep
     the deleted record, or wait without end for the end of the transaction. (In Kafka it does.)

Dirty records are on the disk before they are cleaned (see `compaction.choose`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.errors import CorruptLog, LogDirFailed, SegmentsGone, StorageError
from barnabas.server.cleaning.process import CleanerDied
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.compaction.choose import Dirtiness, dirtiness
from barnabas.storage.compaction.segment_replacement import replace_segments
from barnabas.storage.compaction.swap import drop_cleaned
from barnabas.storage.compaction.task import CleanedGroup, CleaningTask, SegmentRef
from barnabas.storage.log import MAX_OFFSET
from barnabas.storage.os_errors import storage_error

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.replication.partition import OnlinePartition
    from barnabas.server.cleaning.process import Cleaner
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)

SEGMENTS_PER_TURN = 200  # examined before the loop gets a turn
DEATHS = 3  # of the process at one log, before the cleaner leaves that log alone
# limits of the setting: a table needs room, and a search in a full one never ends
LEAST_LOAD_FACTOR, MOST_LOAD_FACTOR = 0.1, 0.95
LEAST_BACKOFF_S = 0.05  # used if log.cleaner.backoff.ms is smaller


class Candidate(NamedTuple):
    partition: OnlinePartition
    dirtiness: Dirtiness


class CleanerStatistics:
    """The counters of the cleaner; see `metrics.py`."""

    def __init__(self) -> None:
        self.runs = 0
        self.failures = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.records_removed = 0
        self.max_dirty_ratio = 0.0
        self.last_run_ms = 0.0  # on the monotonic clock: the last search for dirty logs


class LogCleaner:
    """Keeps the compacted logs of a broker clean, from `start` to `close`.

    Args:
        process: carries out the cleanings.
    """

    def __init__(self, services: Services, process: Cleaner) -> None:
        self._services = services
        self._process = process
        self._cleaned: dict[TopicPartition, int] = {}  # the offsets up to which the logs are clean, as in the checkpoint
        self._in_progress: dict[TopicPartition, OnlinePartition] = {}
        self._unfinished: dict[TopicPartition, OnlinePartition] = {}  # partitions in which a cleaning may have left files
        self._deaths: Counter[TopicPartition] = Counter()
        self._tasks: list[asyncio.Task[None]] = []
        self._swaps: dict[asyncio.Task[None], TopicPartition] = {}
        self._telling: set[asyncio.Task[None]] = set()  # tasks that send settings to the process
        self._choosing = asyncio.Lock()
        self._awake = asyncio.Event()
        self.uncleanable: dict[TopicPartition, str] = {}  # partition -> reason
        self.statistics = CleanerStatistics()

    @property
    def running(self) -> int:
        """The number of logs in cleaning now."""
        return len(self._in_progress)

    @property
    def uncleanable_bytes(self) -> int:
        """Bytes of the logs that the cleaner has given up."""
        found = (self._services.partitions.get(*key) for key in self.uncleanable)
        return sum(partition.log.size_bytes for partition in found if partition is not None and not partition.is_offline)

    def start(self) -> None:
        if not self._services.config.log_cleaner_enable:
            return
        read = self._services.logs.checkpoints.read_cleaned_offsets()
        self._cleaned = {key: offset for key, offset in read.items() if self._services.partitions.get(*key) is not None}
        self.statistics.last_run_ms = self._now_monotonic_ms()
        self.update_config()

    def update_config(self) -> None:
        """React to changed settings of the broker or a topic: another log may be due now, or more logs at a time."""
        config = self._services.config
        if not config.log_cleaner_enable:
            return
        self._awake.set()
        while len(self._tasks) < config.log_cleaner_threads:
            self._tasks.append(self._spawn(self._keep_cleaning(len(self._tasks)), f"cleaner-{len(self._tasks)}"))
        telling = self._spawn(self._process.update_rate(config.log_cleaner_io_max_bytes_per_second), "cleaner-rate")
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    def forget(self, keys: Iterable[TopicPartition]) -> None:
        """Forget deleted partitions, so that later topics of the same names begin as unclean."""
        for key in keys:
            self._cleaned.pop(key, None)
            self._unfinished.pop(key, None)
            self.uncleanable.pop(key, None)
            self._deaths.pop(key, None)

    async def leave(self, keys: Sequence[TopicPartition]) -> None:
        """Stop the work on these closed partitions; after the return no file in their folders is renamed any more."""
        for key in keys:
            partition = self._in_progress.get(key)
            if partition is not None:
                self._process.cancel(partition.log.directory)
        swaps = [swap for swap, key in self._swaps.items() if key in keys]
        if swaps:
            await asyncio.wait(swaps)

    def interrupt(self, directory: Path) -> None:
        """Stop the cleaning of a log that has moved away from `directory`; a new cleaning begins when it is due."""
        self._process.cancel(directory)

    async def close(self) -> None:
        """Stop. A swap of segments under way still ends; files of unfinished cleanings are removed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._telling, return_exceptions=True)
        await asyncio.gather(*self._swaps, return_exceptions=True)
        await self._process.close()
        for each in [partition.log for partition in self._unfinished.values() if not partition.closed]:
            try:
                await self._in_thread(partial(drop_cleaned, each.files, each.directory))
            except OSError as error:
                logger.warning("event=cleaning-files-not-removed directory=%s error=%r", each.directory, str(error))

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._services.loop.create_task(coroutine, name=name)

    async def _keep_cleaning(self, number: int) -> None:
        while True:
            config = self._services.config
            try:
                chosen = await self._choose() if number < config.log_cleaner_threads else None
                if chosen is not None and await self._clean(chosen):
                    continue
            except Exception:  # a fault of the broker must not end compaction
                logger.exception("event=cleaner-failed")
                self.statistics.failures += 1
            self._awake.clear()
            try:
                async with asyncio.timeout(max(config.log_cleaner_backoff_ms / 1000, LEAST_BACKOFF_S)):
                    await self._awake.wait()
            except TimeoutError:
                continue

    # Choosing

    async def _choose(self) -> Candidate | None:
        """The dirtiest of the logs that are due, marked as in progress; None if no log is due."""
        async with self._choosing:
            self.statistics.last_run_ms = self._now_monotonic_ms()
            best: Candidate | None = None
            highest, looked_at = 0.0, 0
            for partition in list(self._services.partitions):
                key = partition.topic, partition.index
                if (
                    partition.is_offline
                    or "compact" not in partition.log.config.cleanup_policy
                    or key in self._in_progress
                    or key in self.uncleanable
                ):
                    continue
                looked_at += len(partition.log.segments)
                if looked_at > SEGMENTS_PER_TURN:
                    looked_at = 0
                    await asyncio.sleep(0)
                if partition.closed:
                    continue
                self._notice_truncation(partition)
                found = self._dirtiness(partition, partition.last_stable_offset)
                if found is None:
                    continue
                highest = max(highest, found.ratio)
                if found.is_due(partition.log.config) and (best is None or found.ratio > best.dirtiness.ratio):
                    best = Candidate(partition, found)
            self.statistics.max_dirty_ratio = highest
            if best is not None:
                self._in_progress[best.partition.topic, best.partition.index] = best.partition
            return best

    def _notice_truncation(self, partition: OnlinePartition) -> None:
        """Mark records as dirty that replaced others after a truncation."""
        key, log_ = (partition.topic, partition.index), partition.log
        if log_.lowest_truncation < self._cleaned.get(key, 0):
            self._cleaned[key] = log_.lowest_truncation
        log_.lowest_truncation = MAX_OFFSET

    def _dirtiness(self, partition: OnlinePartition, limit_offset: int) -> Dirtiness | None:
        """The dirty part of a log; None if its indexes are unreadable. The cleaner tries such a log again, as after any other failure."""
        log_ = partition.log
        try:
            return dirtiness(
                log_.segments,
                log_.config,
                log_start_offset=log_.log_start_offset,
                limit_offset=limit_offset,
                cleaned_offset=self._cleaned.get((partition.topic, partition.index), log_.log_start_offset),
                now_ms=self._services.clock.now_ms(),
            )
        except StorageError as error:
            self._services.faults.report(error)
        except OSError as error:
            self._services.faults.report_read(str(log_.directory), log_.log_start_offset, error)
        self.statistics.failures += 1
        return None

    # Cleaning

    async def _clean(self, chosen: Candidate) -> bool:
        """Clean one log; False if this failed and the caller must pause."""
        partition = chosen.partition
        key = partition.topic, partition.index
        try:
            plan = partition.log.plan_flush(chosen.dirtiness.end_offset)
            if plan is not None:
                await self._in_thread(plan.run)
                partition.log.finish_flush(plan)
            if partition.closed:
                return True
            limit = min(partition.last_stable_offset, partition.log.recovery_point)
            found = self._dirtiness(partition, limit)
            if found is None or not found.is_due(partition.log.config):
                return False
            await self._run(partition, found)
        except (SegmentsGone, FileNotFoundError):
            return self._given_up(partition)
        except (StorageError, OSError) as error:
            if partition.closed:  # the files may belong to another topic with the same name
                return self._given_up(partition)
            return self._storage_failed(partition, error)
        except CleanerDied as error:
            self._failed(key, error)
            self._deaths[key] += 1
            if self._deaths[key] >= DEATHS:
                self._leave_alone(key, f"the cleaner process ended {DEATHS} times while at it")
            return False
        finally:
            del self._in_progress[key]
        return True

    def _given_up(self, partition: OnlinePartition) -> bool:
        logger.info(
            "event=cleaning-given-up topic=%s partition=%d reason='the log has changed'", partition.topic, partition.index
        )
        return partition.closed

    def _storage_failed(self, partition: OnlinePartition, error: StorageError | OSError) -> bool:
        key = partition.topic, partition.index
        if isinstance(error, CorruptLog):
            self._leave_alone(key, str(error))
            return True
        self._failed(key, error)
        if isinstance(error, OSError) and error.errno is not None:
            error = storage_error(partition.log.directory.parent, error)
        if isinstance(error, LogDirFailed):
            self._services.faults.report(error)
        return False

    async def _run(self, partition: OnlinePartition, found: Dirtiness) -> None:
        key = partition.topic, partition.index
        self._unfinished[key] = partition
        began_ms = self._now_monotonic_ms()
        logger.info(
            "event=cleaning-begins topic=%s partition=%d first_dirty_offset=%d end_offset=%d segments=%d dirty_ratio=%.2f",
            *key, found.first_dirty_offset, found.end_offset, len(found.segments), found.ratio,
        )  # fmt: skip
        sizes = [0, 0]
        task = self._task(partition, found)
        partition.log.cleaned_end = max(partition.log.cleaned_end, found.end_offset)

        async def take(group: CleanedGroup) -> None:
            sizes[0] += group.bytes_before
            sizes[1] += group.bytes_after
            self._check_same(partition, task)
            await self._take(partition, group)

        rate = self._services.config.log_cleaner_io_max_bytes_per_second
        try:
            result = await self._process.clean(task, rate=rate, on_group=take, on_progress=self._count)
        except (StorageError, OSError):
            self._check_same(partition, task)  # a file that is cut during a read looks damaged
            raise
        self._check_same(partition, task)
        self._unfinished.pop(key, None)
        self.statistics.runs += 1
        self.statistics.records_removed += result.records_read - result.records_kept
        self._deaths.pop(key, None)
        self._cleaned[key] = result.cleaned_offset
        await self._write_down()
        logger.info(
            "event=cleaned topic=%s partition=%d cleaned_offset=%d keys=%d records=%d kept=%d bytes_before=%d bytes_after=%d took_ms=%.0f",
            *key, result.cleaned_offset, result.keys, result.records_read, result.records_kept, *sizes,
            self._now_monotonic_ms() - began_ms,
        )  # fmt: skip

    def _task(self, partition: OnlinePartition, found: Dirtiness) -> CleaningTask:
        config, topic_config = self._services.config, partition.log.config
        threads = max(config.log_cleaner_threads, 1)
        behind = [segment.base_offset for segment in partition.log.segments if segment.base_offset >= found.end_offset]
        return CleaningTask(
            directory=partition.log.directory,
            segments=tuple(SegmentRef(segment.base_offset, segment.next_offset, segment.size) for segment in found.segments),
            later=tuple(behind),
            first_dirty_offset=found.first_dirty_offset,
            producers=partition.log.reader.last_writes(),
            now_ms=self._services.clock.now_ms(),
            keeps_expired=not self._is_everywhere(partition),
            delete_retention_ms=topic_config.delete_retention_ms,
            segment_bytes=topic_config.segment_bytes,
            segment_index_bytes=topic_config.segment_index_bytes,
            index_interval_bytes=topic_config.index_interval_bytes,
            dedupe_bytes=config.log_cleaner_dedupe_buffer_size // threads,
            load_factor=min(max(config.log_cleaner_io_buffer_load_factor, LEAST_LOAD_FACTOR), MOST_LOAD_FACTOR),
            buffer_bytes=config.log_cleaner_io_buffer_size // threads // 2,
        )

    def _is_everywhere(self, partition: OnlinePartition) -> bool:
        """Whether every replica has all committed records: a replica that is behind has not seen all tombstones and markers yet."""
        state = self._services.metadata.partition(partition.topic, partition.index)
        member = self._services.member
        return state is not None and set(state.isr) == set(state.replicas) and (member is None or not member.is_down)

    def _check_same(self, partition: OnlinePartition, task: CleaningTask) -> None:
        """Raise SegmentsGone if the log's segments are not those of the task any more, even if their names are equal."""
        log_ = partition.log
        if partition.closed or log_.directory != task.directory or log_.lowest_truncation < task.end_offset:
            raise SegmentsGone(task.directory.name)

    async def _take(self, partition: OnlinePartition, group: CleanedGroup) -> None:
        """Replace segments by a cleaned one. A swap that has begun runs to its end, even if its caller is cancelled."""
        swap = self._spawn(replace_segments(partition.log, group, self._services.clock.now_ms(), self._in_thread), "cleaner-swap")
        self._swaps[swap] = partition.topic, partition.index
        swap.add_done_callback(self._swaps.pop)
        await asyncio.shield(swap)

    async def _write_down(self) -> None:
        await self._in_thread(lambda: self._services.logs.checkpoints.write_cleaned_offsets(lambda: dict(self._cleaned)))

    def _count(self, read: int, written: int) -> None:
        self.statistics.bytes_read += read
        self.statistics.bytes_written += written

    def _failed(self, key: TopicPartition, error: Exception) -> None:
        self.statistics.failures += 1
        logger.error("event=cleaning-failed topic=%s partition=%d error=%r", *key, str(error))

    def _leave_alone(self, key: TopicPartition, reason: str) -> None:
        self.statistics.failures += 1
        self.uncleanable[key] = reason
        logger.error("event=log-not-compacted-any-more topic=%s partition=%d reason=%r", *key, reason)

    async def _in_thread(self, job: Callable[[], None]) -> None:
        await self._services.loop.run_in_executor(self._services.io_threads, job)

    def _now_monotonic_ms(self) -> float:
        return self._services.clock.monotonic_ms()
