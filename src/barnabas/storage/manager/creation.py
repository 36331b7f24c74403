"""Creating the log of a new partition, in steps; the steps that block may run in a thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptLog, LogDirFailed, StorageError
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.garbage import remove_folder
from barnabas.storage.log import Log
from barnabas.storage.manager.log_dirs import LogDirs
from barnabas.storage.manager.offset_checkpoints import OffsetCheckpoints
from barnabas.storage.os_errors import storage_error

logger = logging.getLogger(__name__)


class FoundLog(NamedTuple):
    """A log that waits to be opened or created; `open` blocks, and touches only the log's own folder."""

    key: TopicPartition
    directory: LogDirectory
    open: Callable[[], Log]


class LogCreation:
    """New logs."""

    def __init__(self, dirs: LogDirs, written: OffsetCheckpoints) -> None:
        self._dirs = dirs
        self._checkpoints = written

    def create(self, topic: str, partition: int, topic_id: UUID, config: TopicConfig) -> Log:
        """The log of a new partition; the existing log, if it has the same topic id. Blocks.

        A log of another topic, or one whose id a power failure removed, belongs to no topic: its folder keeps its content under another
        name, as Kafka names strays.

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
        """The first step of `create`: choose the directory of the log.

        The caller opens the result and calls `Log.sync_name` (in a thread, if wanted), and passes it to `made` or `not_made`. An
        existing log is returned at once.

        Raises:
            LogDirFailed: no directory works; or one that has failed has, or may have, a log with this name: a log has only one folder.
        """
        dirs = self._dirs
        key = topic, partition
        existing, stray = dirs.by_partition.get(key), None
        failure = self._failure_of(key)
        if failure is not None:
            raise failure
        if existing is not None and existing.topic_id != topic_id:
            stray, existing = self._take_out(key), None
        if existing is None:
            home = dirs.home_of(key)
            dirs.counts[home.path] += 1
            return FoundLog(key, home, partial(self._make, key, home, topic_id, config, stray))
        return existing

    def set_aside(self, topic: str, partition: int) -> None:
        """Take a log that belongs to no known topic out of use; its folder keeps its content under another name. Blocks.

        Raises:
            StorageError: the folder cannot be renamed.
        """
        key = topic, partition
        stray, home = self._take_out(key)
        stray.abandon()
        self._set_aside(key, stray.directory, home)

    def _take_out(self, key: TopicPartition) -> tuple[Log, LogDirectory]:
        dirs = self._dirs
        home = dirs.homes.pop(key)
        dirs.counts[home.path] -= 1
        return dirs.by_partition.pop(key), home

    def _failure_of(self, key: TopicPartition) -> LogDirFailed | None:
        dirs = self._dirs
        if key in dirs.hidden:
            return dirs.failed_directories[0].failure
        home = dirs.homes.get(key)
        return None if home is None else home.failure

    def _make(
        self, key: TopicPartition, home: LogDirectory, topic_id: UUID, config: TopicConfig, stray: tuple[Log, LogDirectory] | None
    ) -> Log:
        dirs = self._dirs
        if stray is not None:
            log, directory = stray
            log.abandon()
            self._set_aside(key, log.directory, directory)
        if (home.path, key) in dirs.unforgotten:
            try:
                with dirs.checkpoint_lock:
                    home.forget({key})
            except OSError as error:
                raise storage_error(home.path, error) from error
            dirs.unforgotten.discard((home.path, key))
        folder = home.path / f"{key[0]}-{key[1]}"
        was_there = dirs.files.exists(folder)
        # The topic was deleted, but the disk refused to rename its folder.
        if was_there and self._is_of_another_topic(folder, topic_id):
            self._set_aside(key, folder, home)
            was_there = False
        try:
            return self.open(key, home, config=config, clean_shutdown=False, topic_id=topic_id, sync_name=False)
        except StorageError:
            if not was_there:
                self._remove_unmade(folder)
            raise

    def _is_of_another_topic(self, folder: Path, topic_id: UUID) -> bool:
        """Whether a folder names another topic; its log is not opened, because it may be long, or too damaged."""
        try:
            found = checkpoints.read_partition_metadata(self._dirs.files, folder / checkpoints.PARTITION_METADATA)
        except CorruptLog:  # the file names no topic, so the folder counts as an interrupted creation
            return False
        except OSError as error:
            raise storage_error(folder.parent, error) from error
        return found is not None and found != topic_id

    def open(
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
        dirs = self._dirs
        return Log.open(
            directory.path / f"{key[0]}-{key[1]}",
            config=config,
            files=dirs.files,
            now_ms=dirs.clock.now_ms(),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_offset=cleaned_offset,
            topic_id=topic_id,
            producer_id_expiration_ms=dirs.producer_id_expiration_ms,
            open_files=dirs.open_files,
            sync_name=sync_name,
        )

    def made(self, prepared: FoundLog, opened: Log) -> None:
        """Add `opened` to this broker's logs."""
        dirs = self._dirs
        dirs.by_partition[prepared.key], dirs.homes[prepared.key] = opened, prepared.directory

    def not_made(self, prepared: FoundLog) -> None:
        """Record that the log was not created."""
        self._dirs.counts[prepared.directory.path] -= 1

    def unmake(self, opened: Log) -> None:
        """Remove a log that was opened and then not `made`; blocks."""
        opened.abandon()
        if not opened.log_end_offset:
            self._remove_unmade(opened.directory)

    def _remove_unmade(self, folder: Path) -> None:
        """Remove the folder: another try may use another directory, and a log has only one folder."""
        with suppress(OSError):
            remove_folder(self._dirs.files, folder)

    def _set_aside(self, key: TopicPartition, folder: Path, home: LogDirectory) -> None:
        dirs = self._dirs
        target = home.path / dirs.name_with(folder.name, "stray")
        logger.warning("event=log-set-aside directory=%s as=%s reason='it belongs to no topic'", folder, target.name)
        try:
            dirs.files.rename(folder, target)
            dirs.files.sync_directory(home.path)
        except OSError as error:
            raise storage_error(home.path, error) from error
        with dirs.checkpoint_lock:
            self._checkpoints.forget(home, [key])
