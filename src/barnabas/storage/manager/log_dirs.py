"""The log directories, the directory of each partition's folder, and the directories that have failed.

Rules
  1. A new log goes to the directory with the fewest logs, of those that are not cordoned. If all are cordoned and the log is created
     nevertheless (an operator assigned it to this broker by hand), it goes to one of them: cordoning keeps partitions away, but makes
     none unavailable.
  2. A directory that failed (`fail`) is not touched from then on: its logs are out of use, its checkpoints stay as they are, and it is
     not marked clean. The other directories continue.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Set
from pathlib import Path
from threading import Lock
from uuid import UUID, uuid4

from barnabas import limits
from barnabas.clock import Clock
from barnabas.errors import LogDirFailed, StorageError
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.log import PRODUCER_ID_EXPIRATION_MS, Log
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.startup_scan import StartupScan

logger = logging.getLogger(__name__)
MAX_NAME_LENGTH = 255


class LogDirs:
    """The logs of this broker by partition, and their directories."""

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
        first_has_metadata: bool = True,
    ) -> None:
        self.files = OsFiles() if files is None else files
        self.clock = clock
        self._new_id = new_id
        self.open_files = open_files
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.by_partition: dict[TopicPartition, Log] = {}
        self.homes: dict[TopicPartition, LogDirectory] = {}
        self.counts: Counter[Path] = Counter()  # log directory -> number of its logs
        self.leaving: dict[TopicPartition, LogDirectory] = {}  # old directories of moved logs whose old folder still has its name
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.startup_scan = StartupScan(self.files, self.failed_at_start)
        self._cordoned: frozenset[str] = frozenset()
        self.closed = False
        self.unclosed: dict[LogDirectory, StorageError] = {}  # the first error of a log that failed to close
        self.checkpoint_lock = Lock()
        self.unforgotten: set[tuple[Path, TopicPartition]] = set()  # deleted logs that the checkpoints of a directory still name
        self._first_has_metadata = first_has_metadata
        self.hidden: set[TopicPartition] = set()  # logs that may lie in a directory that failed before the startup scan read it
        self.directories: list[LogDirectory] = []
        try:
            for path in log_dirs:
                directory = LogDirectory(
                    path,
                    files=self.files,
                    broker_id=broker_id,
                    cluster_id=cluster_id,
                    new_id=new_id(),
                    required=first_has_metadata and not self.directories,
                    boot_id=boot_id,
                )
                self.directories.append(directory)
                if directory.failure is not None:
                    _report_failed(directory, directory.failure)
            self.usable()
            if self.failed_directories:
                self.forget_boots()
        except StorageError:
            self.unlock()
            raise

    def __len__(self) -> int:
        return len(self.by_partition)

    def get(self, topic: str, partition: int) -> Log | None:
        return self.by_partition.get((topic, partition))

    def logs(self) -> list[Log]:
        return list(self.by_partition.values())

    def directory_of(self, topic: str, partition: int) -> LogDirectory:
        """The directory of a log; KeyError if there is no such log."""
        return self.homes[topic, partition]

    def directory_at(self, path: str) -> LogDirectory | None:
        """The log directory with that absolute path; None if there is none."""
        return next((each for each in self.directories if os.path.abspath(each.path) == path), None)

    @property
    def failed_directories(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is not None]

    def fail(self, error: LogDirFailed) -> list[Log]:
        """Take the directory that `error` names out of use; returns the logs that were in use there, none if it had failed before."""
        directory = next((each for each in self.directories if str(each.path) == error.path), None)
        if directory is None or directory.failure is not None:
            return []
        directory.failure = error
        lost = [entry for key, entry in self.by_partition.items() if self.homes[key] is directory]
        for entry in lost:
            entry.fail(error)
        return lost

    def take_in(self, key: TopicPartition, directory: LogDirectory, opened: Log) -> Log:
        self.by_partition[key], self.homes[key] = opened, directory
        self.counts[directory.path] += 1
        return opened

    def failed_at_start(self, directory: LogDirectory, error: LogDirFailed | OSError) -> None:
        """Continue without a directory whose disk does not work; raises if that is impossible: it has the metadata, or is the last one."""
        if isinstance(error, LogDirFailed):
            failure, cause = error, error.__cause__
        else:
            failure, cause = LogDirFailed(str(directory.path), str(error)), error
        is_needed = self.usable() == [directory] or (self._first_has_metadata and directory is self.directories[0])
        if is_needed or not isinstance(cause, OSError):
            raise failure
        _report_failed(directory, failure)
        for entry in self.fail(failure):
            key = entry.topic, entry.partition
            entry.abandon()
            del self.by_partition[key], self.homes[key]
            self.counts[directory.path] -= 1
        self.forget_boots()

    def forget_boots(self) -> None:
        """Remove the boot ids after a directory failed, so that the next start does not count any directory as complete; blocks.

        The failed disk may have lost unsynced data. The others lose their boot ids too, since the failed disk may refuse the removal.
        """
        for directory in self.directories:
            directory.forget_boot()

    def hide(self, topic: str, partition: int) -> None:
        """Record that the log is in no working directory, but may be in a failed one: no second log of that name may be created."""
        self.hidden.add((topic, partition))

    def usable(self) -> list[LogDirectory]:
        usable = [directory for directory in self.directories if directory.failure is None]
        if not usable:
            raise self.directories[0].failure or LogDirFailed(str(self.directories[0].path), "no log directory is left")
        return usable

    def home_of(self, key: TopicPartition) -> LogDirectory:
        usable = self.usable()
        free = [directory for directory in usable if not self.is_cordoned(directory)] or usable
        preferred = self._preferred.pop(key, None)
        return preferred if preferred in free else min(free, key=lambda directory: self.counts[directory.path])

    def give_up_room(self) -> None:
        """Free the space that is reserved in each directory for a stop; blocks."""
        for directory in self.directories:
            directory.give_up_room()

    def cordon(self, paths: Set[str]) -> None:
        """Cordon the directories with these absolute paths, and no others: they get no new logs."""
        self._cordoned = frozenset(paths)

    def is_cordoned(self, directory: LogDirectory) -> bool:
        return os.path.abspath(directory.path) in self._cordoned

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Set the directory of a log, in case it is created while this process lives."""
        while len(self._preferred) >= limits.MAX_PREFERRED_LOG_DIRS:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic, partition] = directory

    def name_with(self, name: str, purpose: str) -> str:
        """The name of a folder that is not a log: Kafka's pattern, cut to what a file system accepts."""
        suffix = f".{self._new_id().hex}-{purpose}"
        return name[: MAX_NAME_LENGTH - len(suffix)] + suffix

    def unlock(self) -> None:
        for directory in self.directories:
            if directory.failure is not None:
                directory.forget_boot()
            directory.unlock()


def _report_failed(directory: LogDirectory, failure: LogDirFailed) -> None:
    logger.error(
        "event=log-directory-not-usable path=%s note='out of use until the next start' reason=%r", directory.path, failure.reason
    )
