"""All logs of a broker, over its log directories.

Owns which partition has its folder where, opening and closing all of them, creating and deleting, and the checkpoints.

Rules
  1. A new log goes to the directory with the fewest logs.
  2. Deleting renames the folder to `<topic>-<partition>.<32 hex digits>-delete` at once; the files go later. A folder with such
     a name found at the start is from a crash in between and is removed.
  3. A directory that failed (`fail`) is left alone from then on: its logs are out of use, its checkpoints stay as they are, and it is not
     marked clean. The others go on.
  4. A checkpoint is written only by the methods that say so; the caller decides when, and may run them in a thread.
  5. Checkpoints name partitions that exist: entries of a deleted one are gone before its deletion counts as done, or at the latest
     before its name is used again, so that a topic made anew does not begin where the old one was. Hence the lock, which is held
     from gathering offsets to writing them.

The ids for new names come from `new_id`, so that a simulation can repeat itself.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from uuid import UUID, uuid4

from barnabas import limits
from barnabas.clock import Clock
from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError, LogDirFailed, StorageError
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.faults import storage_error
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.finding import FolderFinder, hand_over
from barnabas.storage.garbage import Garbage, remove_folder
from barnabas.storage.log import PRODUCER_ID_EXPIRATION_MS, Log
from barnabas.storage.moving import MARKER, LogMove
from barnabas.storage.open_files import OpenFiles

log = logging.getLogger(__name__)

MAX_NAME_LENGTH = 255


class Retired(NamedTuple):
    """A log out of use whose folder still has its old name."""

    garbage: Garbage
    folder: Path
    target: Path
    key: TopicPartition
    home: LogDirectory


class FoundLog(NamedTuple):
    """A log that waits to be opened, or made; `open` blocks, and touches nothing but the log's own folder."""

    key: TopicPartition
    directory: LogDirectory
    open: Callable[[], Log]


class LogManager:
    """The logs of this broker; call `open_all`, or `find` and `adopt`, first and `close` last."""

    def __init__(
        self,
        log_dirs: Iterable[Path],
        *,
        files: Files | None = None,
        clock: Clock,
        broker_id: int,
        cluster_id: str,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        new_id: Callable[[], UUID] = uuid4,
        open_files: OpenFiles | None = None,
        boot_id: str | None = None,
    ) -> None:
        self._files = OsFiles() if files is None else files
        self._clock = clock
        self._new_id = new_id
        self.open_files = open_files
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._counts: Counter[Path] = Counter()  # of logs, by directory
        self._leaving: dict[
            TopicPartition, LogDirectory
        ] = {}  # where logs were that have moved, while the old folder has its name
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self._finder = FolderFinder(self._files, self._failed_at_start)
        self._closed = False
        self._unclosed: dict[LogDirectory, StorageError] = {}  # what the first log that could not be closed met
        self._checkpoint_lock = Lock()
        self._unforgotten: set[tuple[Path, TopicPartition]] = set()  # still in the checkpoints of a directory, though deleted
        self.directories: list[LogDirectory] = []
        try:
            for path in log_dirs:
                directory = LogDirectory(
                    path,
                    files=self._files,
                    broker_id=broker_id,
                    cluster_id=cluster_id,
                    new_id=new_id(),
                    required=not self.directories,  # the first has the metadata
                    boot_id=boot_id,
                )
                self.directories.append(directory)
                if directory.failure is not None:
                    _report_failed(directory, directory.failure)
        except StorageError:
            self._unlock()
            raise

    def __len__(self) -> int:
        return len(self._logs)

    def open_all(self, config_of: Callable[[str], TopicConfig]) -> list[Log]:
        """Open every log found in the directories, one after the other.

        Raises:
            CorruptLog: files that no crash leaves behind.
            LogDirFailed: the first directory's disk does not work, or two directories hold the same partition.
        """
        for found in self.find(config_of):
            if found.directory.failure is None:
                try:
                    self.adopt(found, found.open())
                except (LogDirFailed, OSError) as error:
                    self.not_opened(found, error)
        return self.logs()

    def find(self, config_of: Callable[[str], TopicConfig]) -> list[FoundLog]:
        """The logs in the directories; each is to be opened, in a thread where that is wanted, and given to `adopt` or `not_opened`.

        Raises:
            CorruptLog, LogDirFailed: as `open_all`.
        """
        self._finder.look(self._usable())
        found = []
        for directory in self._usable():
            here = [key for key, home in self._finder.homes.items() if home is directory]
            try:
                recovery_points = directory.read(checkpoints.RECOVERY_POINTS)
                start_offsets = directory.read(checkpoints.LOG_START_OFFSETS)
                cleaned_offsets = directory.read(checkpoints.CLEANED_OFFSETS)
                self._forget(directory, directory.partitions_named() - set(here))
            except (LogDirFailed, OSError) as error:
                self._failed_at_start(directory, error)
                continue
            for key in here:
                opening = partial(
                    self._open,
                    key,
                    directory,
                    config=config_of(key[0]),
                    clean_shutdown=directory.was_clean,
                    recovery_point=recovery_points.get(key, 0),
                    log_start_offset=start_offsets.get(key, 0),
                    cleaned_offset=cleaned_offsets.get(key, 0),
                )
                found.append(FoundLog(key, directory, opening))
            log.info("log directory found path=%s logs=%d clean_shutdown=%s", directory.path, len(here), directory.was_clean)
        return found

    @property
    def interrupted(self) -> dict[TopicPartition, LogDirectory]:
        """Moves that were under way when the broker ended, and where to."""
        return self._finder.interrupted

    def forget_move(self, key: TopicPartition) -> None:
        """The move that the last stop or crash interrupted is not wanted any more."""
        directory, path = self._finder.interrupted.pop(key), self._finder.begun.pop(key)
        if directory.failure is None:
            remove_folder(self._files, path)

    def adopt(self, found: FoundLog, opened: Log) -> None:
        """`opened` is one of this broker's logs from now on, unless its directory failed while others were opened."""
        if found.directory.failure is not None:
            opened.abandon()
        else:
            self._adopt(found.key, found.directory, opened)

    def not_opened(self, found: FoundLog, error: LogDirFailed | OSError) -> None:
        """Go on without the directory of a log that cannot be opened; without the log alone where a file has its name.

        Raises:
            LogDirFailed: it is the first directory, or the fault is not the disk's.
        """
        if isinstance(error.__cause__, FileExistsError):
            log.warning(
                "a file with the name of a partition is left alone path=%s", found.directory.path / "{}-{}".format(*found.key)
            )
        elif found.directory.failure is None:
            self._failed_at_start(found.directory, error)

    def _adopt(self, key: TopicPartition, directory: LogDirectory, opened: Log) -> Log:
        self._logs[key], self._homes[key] = opened, directory
        self._counts[directory.path] += 1
        return opened

    def _failed_at_start(self, directory: LogDirectory, error: LogDirFailed | OSError) -> None:
        """Go on without a directory whose disk does not work; raises where it is the first, which has the metadata."""
        if isinstance(error, LogDirFailed):
            failure, cause = error, error.__cause__
        else:
            failure, cause = LogDirFailed(str(directory.path), str(error)), error
        if directory is self.directories[0] or not isinstance(cause, OSError):
            raise failure
        _report_failed(directory, failure)
        for entry in self.fail(failure):
            key = entry.topic, entry.partition
            entry.abandon()
            del self._logs[key], self._homes[key]
            self._counts[directory.path] -= 1

    def _open(
        self,
        key: TopicPartition,
        directory: LogDirectory,
        *,
        config: TopicConfig,
        clean_shutdown: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int = 0,
        topic_id: UUID | None = None,
        sync_name: bool = True,
    ) -> Log:
        return Log.open(
            directory.path / f"{key[0]}-{key[1]}",
            config=config,
            files=self._files,
            now_ms=self._clock.now_ms(),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_offset=cleaned_offset,
            topic_id=topic_id,
            producer_id_expiration_ms=self._producer_id_expiration_ms,
            open_files=self.open_files,
            sync_name=sync_name,
        )

    def fail(self, error: LogDirFailed) -> list[Log]:
        """Take the directory that `error` names out of use; the logs that were in use there, none if it had failed before."""
        directory = next((each for each in self.directories if str(each.path) == error.path), None)
        if directory is None or directory.failure is not None:
            return []
        directory.failure = error
        lost = [entry for key, entry in self._logs.items() if self._homes[key] is directory]
        for entry in lost:
            entry.fail(error)
        return lost

    @property
    def failed_directories(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is not None]

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get((topic, partition))

    def logs(self) -> list[Log]:
        return list(self._logs.values())

    def directory_of(self, topic: str, partition: int) -> LogDirectory:
        """Where a log lies; KeyError if there is none."""
        return self._homes[topic, partition]

    def create(self, topic: str, partition: int, topic_id: UUID, config: TopicConfig) -> Log:
        """The log of a new partition; the one that exists, if it is of the same topic id. Blocks.

        One of another topic, or that a loss of power took the id from, is nobody's: its folder keeps what it has under another name,
        as Kafka names strays.

        Raises:
            StorageError: the disk does not work, or is full.
        """
        prepared = self.prepare(topic, partition, topic_id, config)
        if isinstance(prepared, Log):
            return prepared
        opened = None
        try:
            opened = prepared.open()
            opened.sync_name()
        except StorageError:
            self.not_made(prepared)
            if opened is not None:
                self.unmake(opened)
            raise
        self.made(prepared, opened)
        return opened

    def prepare(self, topic: str, partition: int, topic_id: UUID, config: TopicConfig) -> FoundLog | Log:
        """The first step of `create`: where the log is to lie. To be opened and `Log.sync_name` called, in a thread where that is wanted,
        and given to `made` or `not_made`. A log that exists comes at once.

        Raises:
            LogDirFailed: no directory works, or a log of another topic keeps the name in one that has failed: a log has one folder.
        """
        key = topic, partition
        existing, stray = self._logs.get(key), None
        if existing is not None and existing.topic_id != topic_id:
            failure = self._homes[key].failure
            if failure is not None:
                raise failure
            stray, existing = (existing, self._homes.pop(key)), None
            del self._logs[key]
            self._counts[stray[1].path] -= 1
        if existing is None:
            home = self._home_of(key)
            self._counts[home.path] += 1
            return FoundLog(key, home, partial(self._make, key, home, topic_id, config, stray))
        return existing

    def _make(
        self, key: TopicPartition, home: LogDirectory, topic_id: UUID, config: TopicConfig, stray: tuple[Log, LogDirectory] | None
    ) -> Log:
        if stray is not None:
            self._set_aside(key, *stray)
        if (home.path, key) in self._unforgotten:
            try:
                with self._checkpoint_lock:
                    home.forget({key})
            except OSError as error:
                raise storage_error(home.path, error) from error
            self._unforgotten.discard((home.path, key))
        folder = home.path / f"{key[0]}-{key[1]}"
        was_there = self._files.exists(folder)
        try:
            return self._open(key, home, config=config, clean_shutdown=False, topic_id=topic_id, sync_name=False)
        except StorageError:
            if not was_there:
                self._remove_unmade(folder)
            raise

    def made(self, prepared: FoundLog, opened: Log) -> None:
        """`opened` is one of this broker's logs from now on."""
        self._logs[prepared.key], self._homes[prepared.key] = opened, prepared.directory

    def not_made(self, prepared: FoundLog) -> None:
        """There is no such log after all."""
        self._counts[prepared.directory.path] -= 1

    def unmake(self, opened: Log) -> None:
        """Remove what was opened and then not `made`; blocks."""
        opened.abandon()
        if not opened.log_end_offset:
            self._remove_unmade(opened.directory)

    def _remove_unmade(self, folder: Path) -> None:
        """Another try may be in another directory, and a log has one folder."""
        with suppress(OSError):
            remove_folder(self._files, folder)

    def _set_aside(self, key: TopicPartition, stray: Log, home: LogDirectory) -> None:
        stray.abandon()
        target = home.path / self._name_with(stray.directory.name, "stray")
        log.warning("a log that belongs to no topic is set aside directory=%s as=%s", stray.directory, target.name)
        try:
            self._files.rename(stray.directory, target)
            self._files.sync_directory(home.path)
        except OSError as error:
            raise storage_error(home.path, error) from error
        with self._checkpoint_lock:
            self._forget(home, [key])

    def _usable(self) -> list[LogDirectory]:
        usable = [directory for directory in self.directories if directory.failure is None]
        if not usable:
            raise self.directories[0].failure or LogDirFailed(str(self.directories[0].path), "no log directory is left")
        return usable

    def _home_of(self, key: TopicPartition) -> LogDirectory:
        usable = self._usable()
        preferred = self._preferred.pop(key, None)
        return preferred if preferred in usable else min(usable, key=lambda directory: self._counts[directory.path])

    # Moving

    def directory_at(self, path: str) -> LogDirectory | None:
        """The log directory with that absolute path; None if there is none."""
        return next((each for each in self.directories if os.path.abspath(each.path) == path), None)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Where the log is to be made, if it is made while this process lives."""
        while len(self._preferred) >= limits.MAX_PREFERRED_LOG_DIRS:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic, partition] = directory

    def begin_move(self, topic: str, partition: int, directory: LogDirectory) -> LogMove:
        """A move of the log to `directory`; nothing is on the disk yet."""
        moved = self._logs[topic, partition]
        if self.interrupted.pop((topic, partition), None) is directory:
            folder = self._finder.begun.pop((topic, partition))
        else:
            folder = directory.path / self._name_with(moved.directory.name, "future")
        return LogMove(moved, directory.path, folder, self._files)

    def swap(self, move: LogMove, directory: LogDirectory) -> Retired:
        """The log is in `directory` from now on; the old folder keeps its name until `leave`.

        Raises:
            OSError: a disk does not work; the log stays where it was.
        """
        moved = move.log
        key, old = (moved.topic, moved.partition), moved.directory
        garbage = move.swap()
        source = self._homes[key]
        self._counts[source.path] -= 1
        self._counts[directory.path] += 1
        self._homes[key], self._leaving[key] = directory, source
        garbage.directory = old.with_name(self._name_with(old.name, "delete"))
        return Retired(garbage, old, garbage.directory, key, source)

    def leave(self, move: LogMove, retired: Retired) -> Garbage:
        """Give the old folder up, once nothing of the new one can be lost any more; blocks, runs in a thread.

        Raises:
            StorageError, OSError: a disk does not work; the next start finishes this.
        """
        self._files.sync_directory(move.directory)
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        with self._checkpoint_lock:
            hand_over(retired.key, retired.home, self._homes[retired.key])
        del self._leaving[retired.key]
        (garbage,) = self.rename([retired])
        self._files.unlink(move.folder / MARKER)
        return garbage

    def _name_with(self, name: str, purpose: str) -> str:
        """The name of a folder that is no log's: Kafka's pattern, cut to what a file system takes."""
        suffix = f".{self._new_id().hex}-{purpose}"
        return name[: MAX_NAME_LENGTH - len(suffix)] + suffix

    # Deleting

    def delete(self, topic: str, partition: int) -> Garbage:
        """Take a log out of use; its folder is renamed now, and removed by `Garbage.remove` of the answer (in a thread).

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
            LogDirFailed: the folder cannot be renamed.
        """
        return self.rename([self.retire(topic, partition)])[0]

    def retire(self, topic: str, partition: int) -> Retired:
        """The first half of `delete`, which does not touch the disk.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        doomed = self._logs.pop((topic, partition), None)
        if doomed is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        home = self._homes.pop((topic, partition))
        self._counts[home.path] -= 1
        target = home.path / self._name_with(doomed.directory.name, "delete")
        return Retired(doomed.detach_all(), doomed.directory, target, (topic, partition), home)

    def rename(self, retired: Sequence[Retired]) -> list[Garbage]:
        """The second half of `delete`, of many logs; it blocks, and runs in a thread where there are many.

        The new names are on the disk when it returns: else the power could bring a folder back that belongs to no topic any more.

        Raises:
            LogDirFailed: a folder cannot be renamed.
        """
        self.rename_folders(retired)
        self.forget(retired)
        return [each.garbage for each in retired]

    def rename_folders(self, retired: Sequence[Retired]) -> None:
        """The first part of `rename`; several threads may do it at once, each for other logs.

        Raises:
            LogDirFailed: a folder cannot be renamed.
        """
        for garbage, folder, target, _, _ in retired:
            try:
                self._files.rename(folder, target)
            except OSError as error:
                raise storage_error(folder.parent, error) from error
            garbage.directory = target

    def forget(self, retired: Sequence[Retired]) -> None:
        """The second part of `rename`: the new names are durable, and the checkpoints name these logs no more.

        Raises:
            LogDirFailed: the new names may not last.
        """
        homes = {id(each.home): each.home for each in retired}.values()
        for home in homes:
            try:
                self._files.sync_directory(home.path)
            except OSError as error:
                raise LogDirFailed(str(home.path), str(error)) from error
        with self._checkpoint_lock:
            for directory in homes:
                self._forget(directory, [each.key for each in retired if each.home is directory])

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(checkpoints.RECOVERY_POINTS, self._recovery_points)

    def _recovery_points(self) -> dict[TopicPartition, int]:
        return {key: entry.recovery_point for key, entry in list(self._logs.items())}

    def checkpoint_log_start_offsets(self) -> None:
        self._checkpoint(checkpoints.LOG_START_OFFSETS, self._start_offsets)

    def _start_offsets(self) -> dict[TopicPartition, int]:
        """Every log that does not begin at 0 gets an entry.

        Kafka leaves out those that begin where their first segment does. But a power cut may bring segments back of which only the
        renaming was lost, and with them records that were deleted for good.
        """
        return {key: entry.log_start_offset for key, entry in list(self._logs.items()) if entry.log_start_offset}

    def prepare_removal(self, shortened: Iterable[Log]) -> None:
        """Make durable what tells after a crash that nothing is missing when the first segments of these logs are gone: where the logs
        begin, and the names of the segments that stay. Blocks; in a thread.
        """
        for log_ in shortened:
            try:
                self._files.sync_directory(log_.directory)
            except FileNotFoundError:
                continue  # deleted meanwhile
            except OSError as error:
                raise storage_error(log_.directory.parent, error) from error
        self.checkpoint_log_start_offsets()

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return {
            key: offset for directory in self._usable() for key, offset in directory.read(checkpoints.HIGH_WATERMARKS).items()
        }

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self._checkpoint(checkpoints.HIGH_WATERMARKS, lambda: high_watermarks)

    def read_cleaned_offsets(self) -> dict[TopicPartition, int]:
        """For compacted logs, the offset below which they are clean."""
        return {
            key: offset for directory in self._usable() for key, offset in directory.read(checkpoints.CLEANED_OFFSETS).items()
        }

    def write_cleaned_offsets(self, gather: Callable[[], Mapping[TopicPartition, int]]) -> None:
        self._checkpoint(checkpoints.CLEANED_OFFSETS, gather)

    def _checkpoint(self, name: str, gather: Callable[[], Mapping[TopicPartition, int]]) -> None:
        """Write a checkpoint in each directory.

        Raises:
            StorageError: the first that could not be written; the others are.
        """
        failures: list[StorageError] = []
        with self._checkpoint_lock:
            offsets = gather()
            for directory in self._usable():
                try:
                    self._write(directory, name, offsets)
                except StorageError as error:
                    failures.append(error)
        if failures:
            raise failures[0]

    def _write(self, directory: LogDirectory, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        directory.write(name, {key: offset for key, offset in offsets.items() if self._is_told(directory, key)})

    def _is_told(self, directory: LogDirectory, key: TopicPartition) -> bool:
        """Whether the directory's checkpoints name a log: while it has two folders, those of both, for one is written before the other."""
        return self._homes.get(key) is directory or self._leaving.get(key) is directory

    def _forget(self, directory: LogDirectory, gone: Iterable[TopicPartition]) -> None:
        """Take what is gone out of the directory's checkpoints; where the disk does not allow it, before the name is used again."""
        keys = set(gone)
        try:
            directory.forget(keys)
        except (StorageError, OSError) as error:
            log.warning("checkpoints name deleted partitions path=%s error=%s", directory.path, error)
            self._unforgotten.update((directory.path, key) for key in keys)

    def close_log(self, entry: Log) -> None:
        """Close one log ahead of `close`, which takes up what went wrong; blocks, and may run in several threads at once."""
        try:
            entry.close()
        except StorageError as error:
            log.error("log not closed directory=%s error=%s", entry.directory, error)
            self._unclosed.setdefault(self._homes[entry.topic, entry.partition], error)

    def close(self) -> None:
        """Close all logs, write the checkpoints and the marker that says so, unlock. Where a log fails to close, there is no
        marker.

        Raises:
            StorageError: the first failure, after all else is closed. What failed before was told when it did.
        """
        if self._closed:
            return
        self._closed = True
        for entry in self._logs.values():
            self.close_log(entry)
        failed = self._unclosed
        recovery_points, starts = self._recovery_points(), self._start_offsets()
        for directory in self.directories:
            if directory.failure is not None:
                continue
            try:
                self._write(directory, checkpoints.RECOVERY_POINTS, recovery_points)
                self._write(directory, checkpoints.LOG_START_OFFSETS, starts)
                if directory not in failed:
                    directory.mark_clean()
            except StorageError as error:
                log.error("log directory not marked clean path=%s error=%s", directory.path, error)
                failed.setdefault(directory, error)
        for directory in failed:
            directory.forget_boot()
        self._unlock()
        for failure in failed.values():
            raise failure

    def abandon(self) -> None:
        """Let go of everything as a crash would; for tests and simulations."""
        self._closed = True
        for entry in self._logs.values():
            entry.abandon()
        self._unlock()

    def remember_boot(self) -> None:
        """See `LogDirectory`; blocks."""
        for directory in self._usable():
            directory.remember_boot()

    def _unlock(self) -> None:
        for directory in self.directories:
            if directory.failure is not None:
                directory.forget_boot()
            directory.unlock()


def _report_failed(directory: LogDirectory, failure: LogDirFailed) -> None:
    log.error("log directory is out of use until the next start path=%s reason=%r", directory.path, failure.reason)
