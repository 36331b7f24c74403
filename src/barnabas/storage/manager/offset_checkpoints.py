"""The checkpoints of all log directories: recovery points, log start offsets, high watermarks, cleaned offsets.

Rules
  1. A checkpoint is written only by the methods that say so; the caller decides when, and may run them in a thread.
  2. Checkpoints name only partitions that exist. Entries of a deleted partition are removed before its deletion counts as done, or at
     the latest before its name is used again. Otherwise a new topic of that name would begin where the old one was. So a lock is held
     from gathering offsets to writing them.
  3. Records appended after a cut count only once no checkpoint on the disk is past the cut (`Log.is_overstated`). After a crash, a log
     start past the cut would remove these records. A recovery point past the cut would treat them as synced. The records that were cut
     would come back in their place, or beside them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from barnabas.errors import LogDirFailed, StartsUnwritten, StorageError, StorageExhausted
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.log import Log
from barnabas.storage.manager.log_dirs import LogDirs
from barnabas.storage.os_errors import storage_error

logger = logging.getLogger(__name__)


class OffsetCheckpoints:
    """The checkpoint files of all log directories."""

    def __init__(self, dirs: LogDirs) -> None:
        self._dirs = dirs

    def write_recovery_points(self) -> None:
        self._checkpoint(checkpoints.RECOVERY_POINTS, self.recovery_points)

    def recovery_points(self) -> dict[TopicPartition, int]:
        return {key: entry.recovery_point for key, entry in list(self._dirs.by_partition.items())}

    def write_log_start_offsets(self) -> None:
        """Write the log start offsets; after a cut, also the cut itself and the recovery points, see `LogTruncator.start_written`.

        Raises:
            StartsUnwritten: some directories could not be written; the others are.
        """
        overstated = [entry for entry in list(self._dirs.by_partition.values()) if entry.is_overstated]
        failures: list[LogDirFailed | StorageExhausted] = []
        for entry in overstated:
            try:
                entry.truncator.sync_cut()
            except LogDirFailed as error:
                failures.append(error)
        if overstated:
            failures += self._try_checkpoint(checkpoints.RECOVERY_POINTS, self.recovery_points)
        failures += self._try_checkpoint(checkpoints.LOG_START_OFFSETS, self.start_offsets)
        if failures:
            raise StartsUnwritten(failures)

    def start_offsets(self) -> dict[TopicPartition, int]:
        """The log start offsets; every log that does not begin at 0 gets an entry.

        Kafka leaves out logs that begin where their first segment does. But a power failure may bring back segments whose renaming was
        not durable, and with them records that were deleted for good.
        """
        return {key: entry.log_start_offset for key, entry in list(self._dirs.by_partition.items()) if entry.log_start_offset}

    def prepare_removal(self, shortened: Iterable[Log]) -> None:
        """Prepare removing the first segments of these logs: make durable their start offsets and the names of their other segments.

        After a crash these show that nothing is missing. Blocks; in a thread.

        Raises:
            StorageError: a disk does not work, or is full.
        """
        for log_ in shortened:
            try:
                self._dirs.files.sync_directory(log_.directory)
            except FileNotFoundError:
                continue  # the log was deleted in the meantime
            except OSError as error:
                raise storage_error(log_.directory.parent, error) from error
        self.write_log_start_offsets()

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return {
            key: offset
            for directory in self._dirs.usable()
            for key, offset in directory.read(checkpoints.HIGH_WATERMARKS).items()
        }

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self._checkpoint(checkpoints.HIGH_WATERMARKS, lambda: high_watermarks)

    def read_cleaned_offsets(self) -> dict[TopicPartition, int]:
        """The offset below which each compacted log is clean."""
        return {
            key: offset
            for directory in self._dirs.usable()
            for key, offset in directory.read(checkpoints.CLEANED_OFFSETS).items()
        }

    def write_cleaned_offsets(self, gather: Callable[[], Mapping[TopicPartition, int]]) -> None:
        self._checkpoint(checkpoints.CLEANED_OFFSETS, gather)

    def _checkpoint(self, name: str, gather: Callable[[], Mapping[TopicPartition, int]]) -> None:
        """Write a checkpoint in each directory.

        Raises:
            StorageError: the first error; the other directories are written.
        """
        failures = self._try_checkpoint(name, gather)
        if failures:
            raise failures[0]

    def _try_checkpoint(
        self, name: str, gather: Callable[[], Mapping[TopicPartition, int]]
    ) -> list[LogDirFailed | StorageExhausted]:
        """As `_checkpoint`; returns an error for each directory that could not be written."""
        dirs = self._dirs
        failures: list[LogDirFailed | StorageExhausted] = []
        with dirs.checkpoint_lock:
            offsets = gather()
            for directory in dirs.usable():
                try:
                    self.write(directory, name, offsets)
                except (LogDirFailed, StorageExhausted) as error:
                    failures.append(error)
        return failures

    def write(self, directory: LogDirectory, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        directory.write(name, {key: offset for key, offset in offsets.items() if self._is_told(directory, key)})

    def _is_told(self, directory: LogDirectory, key: TopicPartition) -> bool:
        """Whether the directory's checkpoints have an entry of a log. While a log has two folders, both directories have one, because
        one is written before the other."""
        dirs = self._dirs
        return dirs.homes.get(key) is directory or dirs.leaving.get(key) is directory

    def forget(self, directory: LogDirectory, gone: Iterable[TopicPartition]) -> None:
        """Remove these partitions from the directory's checkpoints; if the disk refuses it, that is done before a name is used again."""
        keys = set(gone)
        try:
            directory.forget(keys)
        except (StorageError, OSError) as error:
            logger.warning("event=checkpoints-name-deleted-partitions path=%s error=%r", directory.path, str(error))
            self._dirs.unforgotten.update((directory.path, key) for key in keys)
