"""All logs of a broker, over its log directories.

Owns which partition has its folder where, opening and closing all of them, creating and deleting, and the checkpoints.

Rules
  1. A new log goes to the directory with the fewest logs.
  2. Deleting renames the folder to `<topic>-<partition>.<32 hex digits>-delete` at once; the files go later. A folder with such
     a name found at the start is from a crash in between and is removed.
  3. A checkpoint is written only by the methods that say so; the caller decides when, and may run them in a thread.

The ids for new names come from `new_id`, so that a simulation can repeat itself.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from barnabas.clock import Clock
from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError, LogDirFailed
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.garbage import Garbage, remove_folder
from barnabas.storage.log import PRODUCER_ID_EXPIRATION_MS, Log

log = logging.getLogger(__name__)

LOG_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
DELETED_FOLDER = re.compile(r".*\.[0-9a-f]{32}-delete")
STRAY_FOLDER = re.compile(r".*\.[0-9a-f]{32}-(future|stray)")
MAX_NAME_LENGTH = 255


class Retired(NamedTuple):
    """A log out of use whose folder still has its old name."""

    garbage: Garbage
    folder: Path
    target: Path


class LogManager:
    """The logs of this broker; call `open_all` first and `close` last."""

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
    ) -> None:
        self._files = OsFiles() if files is None else files
        self._clock = clock
        self._new_id = new_id
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._counts: Counter[Path] = Counter()  # of logs, by directory
        self._closed = False
        self.directories: list[LogDirectory] = []
        try:
            for path in log_dirs:
                self.directories.append(
                    LogDirectory(path, files=self._files, broker_id=broker_id, cluster_id=cluster_id, new_id=new_id())
                )
        except LogDirFailed:
            self._unlock()
            raise

    def __len__(self) -> int:
        return len(self._logs)

    def open_all(self, config_of: Callable[[str], TopicConfig]) -> list[Log]:
        """Open every log found in the directories.

        Raises:
            CorruptLog: files that no crash leaves behind.
            LogDirFailed: the disk does not work, or two directories hold the same partition.
        """
        for directory in self.directories:
            recovery_points = directory.read(checkpoints.RECOVERY_POINTS)
            start_offsets = directory.read(checkpoints.LOG_START_OFFSETS)
            opened = 0
            for name in self._files.list_directory(directory.path):
                key = self._partition_of(directory, name)
                if key is None:
                    continue
                if key in self._logs:
                    raise LogDirFailed(str(directory.path), f"{name} lies in {self._homes[key].path} too")
                self._open(
                    key,
                    directory,
                    config=config_of(key[0]),
                    clean_shutdown=directory.was_clean,
                    recovery_point=recovery_points.get(key, 0),
                    log_start_offset=start_offsets.get(key, 0),
                )
                opened += 1
            log.info("log directory opened path=%s logs=%d clean_shutdown=%s", directory.path, opened, directory.was_clean)
        return list(self._logs.values())

    def _partition_of(self, directory: LogDirectory, name: str) -> TopicPartition | None:
        """Which partition a name in a log directory is of; leftovers of deletions are removed."""
        path = directory.path / name
        if DELETED_FOLDER.fullmatch(name):
            log.info("deleted log removed path=%s", path)
            remove_folder(self._files, path)
            return None
        match = LOG_FOLDER.fullmatch(name)
        if match is None or STRAY_FOLDER.fullmatch(name):
            return None
        return match["topic"], int(match["partition"])

    def _open(
        self,
        key: TopicPartition,
        directory: LogDirectory,
        *,
        config: TopicConfig,
        clean_shutdown: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        topic_id: UUID | None = None,
    ) -> Log:
        opened = Log.open(
            directory.path / f"{key[0]}-{key[1]}",
            config=config,
            files=self._files,
            now_ms=self._clock.now_ms(),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            topic_id=topic_id,
            producer_id_expiration_ms=self._producer_id_expiration_ms,
        )
        self._logs[key], self._homes[key] = opened, directory
        self._counts[directory.path] += 1
        return opened

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get((topic, partition))

    def logs(self) -> list[Log]:
        return list(self._logs.values())

    def directory_of(self, topic: str, partition: int) -> LogDirectory:
        """Where a log lies; KeyError if there is none."""
        return self._homes[topic, partition]

    def create(self, topic: str, partition: int, topic_id: UUID, config: TopicConfig) -> Log:
        """The log of a new partition; the one that exists, if it is of the same topic id.

        Raises:
            KafkaError: INCONSISTENT_TOPIC_ID where a log of another topic of that name lies there.
            LogDirFailed: the disk does not work.
        """
        key = topic, partition
        existing = self._logs.get(key)
        if existing is None:
            home = min(self.directories, key=lambda directory: self._counts[directory.path])
            return self._open(key, home, config=config, clean_shutdown=False, topic_id=topic_id)
        if existing.topic_id != topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        return existing

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
        suffix = f".{self._new_id().hex}-delete"
        target = home.path / (doomed.directory.name[: MAX_NAME_LENGTH - len(suffix)] + suffix)
        return Retired(doomed.detach_all(), doomed.directory, target)

    def rename(self, retired: Sequence[Retired]) -> list[Garbage]:
        """The second half of `delete`, of many logs; it blocks, and runs in a thread where there are many.

        Raises:
            LogDirFailed: a folder cannot be renamed.
        """
        for garbage, folder, target in retired:
            try:
                self._files.rename(folder, target)
            except OSError as error:
                raise LogDirFailed(str(folder.parent), str(error)) from error
            garbage.directory = target
        return [each.garbage for each in retired]

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(checkpoints.RECOVERY_POINTS, {key: entry.recovery_point for key, entry in list(self._logs.items())})

    def checkpoint_log_start_offsets(self) -> None:
        """Only logs that begin behind their first segment need an entry, as in Kafka."""
        starts = {
            key: entry.log_start_offset for key, entry in list(self._logs.items()) if entry.log_start_offset > entry.first_offset
        }
        self._checkpoint(checkpoints.LOG_START_OFFSETS, starts)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return {
            key: offset for directory in self.directories for key, offset in directory.read(checkpoints.HIGH_WATERMARKS).items()
        }

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self._checkpoint(checkpoints.HIGH_WATERMARKS, high_watermarks)

    def read_cleaned_offsets(self) -> dict[TopicPartition, int]:
        """For compacted logs, the offset below which they are clean."""
        return {
            key: offset for directory in self.directories for key, offset in directory.read(checkpoints.CLEANED_OFFSETS).items()
        }

    def write_cleaned_offsets(self, cleaned: Mapping[TopicPartition, int]) -> None:
        self._checkpoint(checkpoints.CLEANED_OFFSETS, cleaned)

    def _checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        for directory in self.directories:
            directory.write(name, {key: offset for key, offset in offsets.items() if self._homes.get(key) is directory})

    def close(self) -> None:
        """Close all logs, write the checkpoints and the marker that says so, unlock. Where a log fails to close, there is no
        marker.

        Raises:
            LogDirFailed: the first failure, after all else is closed.
        """
        if self._closed:
            return
        self._closed = True
        failed: dict[LogDirectory, LogDirFailed] = {}
        for key, entry in self._logs.items():
            try:
                entry.close()
            except LogDirFailed as error:
                log.error("log not closed directory=%s reason=%r", entry.directory, error.reason)
                failed.setdefault(self._homes[key], error)
        try:
            self.checkpoint_recovery_points()
            self.checkpoint_log_start_offsets()
            for directory in self.directories:
                if directory not in failed:
                    directory.mark_clean()
        except OSError as error:
            raise LogDirFailed(str(self.directories[0].path), str(error)) from error
        finally:
            self._unlock()
        for failure in failed.values():
            raise failure

    def abandon(self) -> None:
        """Let go of everything as a crash would; for tests and simulations."""
        self._closed = True
        for entry in self._logs.values():
            entry.abandon()
        self._unlock()

    def _unlock(self) -> None:
        for directory in self.directories:
            directory.unlock()
