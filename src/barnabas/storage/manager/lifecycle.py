"""Opening all logs of a broker at its start, and closing them at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property, partial

from barnabas.config.topic import TopicConfig
from barnabas.errors import LogDirFailed, StorageError
from barnabas.storage import checkpoints
from barnabas.storage.log import Log
from barnabas.storage.manager.creation import FoundLog, LogCreation
from barnabas.storage.manager.log_dirs import LogDirs
from barnabas.storage.manager.offset_checkpoints import OffsetCheckpoints
from barnabas.storage.manager.removal import LogRemoval

logger = logging.getLogger(__name__)


class LogManager(LogDirs):
    """The logs of this broker; call `open_all`, or `find` and `adopt`, first and `close` last."""

    @cached_property
    def checkpoints(self) -> OffsetCheckpoints:
        """The checkpoint files beside the logs."""
        return OffsetCheckpoints(self)

    @cached_property
    def creation(self) -> LogCreation:
        """New logs."""
        return LogCreation(self, self.checkpoints)

    @cached_property
    def removal(self) -> LogRemoval:
        """Logs that are deleted or move."""
        return LogRemoval(self, self.checkpoints)

    def open_all(self, config_of: Callable[[str], TopicConfig]) -> list[Log]:
        """Open every log found in the directories, one after the other.

        Raises:
            CorruptLog: files are in a state that no crash leaves.
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
        """The logs in the directories; the caller opens each (in a thread, if wanted) and passes it to `adopt` or `not_opened`.

        Raises:
            CorruptLog, LogDirFailed: as `open_all`.
        """
        self.startup_scan.look(self.usable())
        found = []
        for directory in self.usable():
            here = [key for key, home in self.startup_scan.log_dirs.items() if home is directory]
            try:
                recovery_points = directory.read(checkpoints.RECOVERY_POINTS)
                start_offsets = directory.read(checkpoints.LOG_START_OFFSETS)
                cleaned_offsets = directory.read(checkpoints.CLEANED_OFFSETS)
                self.checkpoints.forget(directory, directory.partitions_named() - set(here))
            except (LogDirFailed, OSError) as error:
                self.failed_at_start(directory, error)
                continue
            for key in here:
                opening = partial(
                    self.creation.open,
                    key,
                    directory,
                    config=config_of(key[0]),
                    clean_shutdown=directory.was_clean,
                    recovery_point=recovery_points.get(key, 0),
                    log_start_offset=start_offsets.get(key, 0),
                    cleaned_offset=cleaned_offsets.get(key, 0),
                )
                found.append(FoundLog(key, directory, opening))
            if directory.is_new and not here:
                # A fresh directory had no shutdown, so the line names none.
                logger.info("event=log-directory-new path=%s", directory.path)
            else:
                logger.info(
                    "event=log-directory-found path=%s logs=%d clean_shutdown=%s", directory.path, len(here), directory.was_clean
                )
        return found

    def adopt(self, found: FoundLog, opened: Log) -> None:
        """Add `opened` to this broker's logs, unless its directory failed while others were opened."""
        if found.directory.failure is not None:
            opened.abandon()
        else:
            self.take_in(found.key, found.directory, opened)

    def not_opened(self, found: FoundLog, error: LogDirFailed | OSError) -> None:
        """Continue without the directory of a log that cannot be opened; without only the log if a file has its name.

        Raises:
            LogDirFailed: it is the first directory, or the error is not the disk's.
        """
        if isinstance(error.__cause__, FileExistsError):
            logger.warning(
                "event=file-with-name-of-partition-left-alone path=%s", found.directory.path / "{}-{}".format(*found.key)
            )
        elif found.directory.failure is None:
            self.failed_at_start(found.directory, error)

    def close_log(self, entry: Log) -> None:
        """Close one log before `close`, which raises its error; blocks, and may run in several threads at once."""
        try:
            entry.close()
        except StorageError as error:
            logger.error("event=log-not-closed directory=%s error=%r", entry.directory, str(error))
            self.unclosed.setdefault(self.homes[entry.topic, entry.partition], error)

    def close(self) -> None:
        """Close all logs, write the checkpoints and the marker of a clean stop, and unlock.

        If a log fails to close, its directory gets no marker.

        Raises:
            StorageError: the first error, after everything else is closed. Earlier failures were reported when they happened.
        """
        if self.closed:
            return
        self.closed = True
        self.give_up_room()
        for entry in self.by_partition.values():
            self.close_log(entry)
        failed = self.unclosed
        recovery_points, starts = self.checkpoints.recovery_points(), self.checkpoints.start_offsets()
        # If a failed directory keeps its claim to be complete, the others must not claim it.
        is_sure = all(directory.failure is None or directory.forget_boot() for directory in self.directories)
        for directory in self.directories:
            if directory.failure is not None:
                continue
            try:
                self.checkpoints.write(directory, checkpoints.RECOVERY_POINTS, recovery_points)
                self.checkpoints.write(directory, checkpoints.LOG_START_OFFSETS, starts)
                if directory not in failed and is_sure:
                    directory.mark_clean()
            except StorageError as error:
                logger.error("event=log-directory-not-marked-clean path=%s error=%r", directory.path, str(error))
                failed.setdefault(directory, error)
        for directory in failed:
            directory.forget_boot()
        self.unlock()
        for failure in failed.values():
            raise failure

    def abandon(self) -> None:
        """Close everything as a crash would; for tests and simulations."""
        self.closed = True
        for entry in self.by_partition.values():
            entry.abandon()
        self.unlock()

    def remember_boot(self) -> None:
        """Call `LogDirectory.remember_boot` of all directories, unless one has failed. Blocks."""
        for directory in self.directories if not self.failed_directories else ():
            directory.remember_boot()
