"""Taking logs out of use, by deletion or because they have moved to another log directory.

Deleting renames the folder to `<topic>-<partition>.<32 hex digits>-delete` at once; the files go later. A folder with such a name found at
the start is from a crash in between and is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError, LogDirFailed
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.garbage import Garbage, remove_folder
from barnabas.storage.log_move import MARKER, LogMove
from barnabas.storage.manager.log_dirs import LogDirs
from barnabas.storage.manager.offset_checkpoints import OffsetCheckpoints
from barnabas.storage.os_errors import storage_error
from barnabas.storage.startup_scan import hand_over


class Retired(NamedTuple):
    """A log out of use whose folder still has its old name."""

    garbage: Garbage
    folder: Path
    target: Path
    key: TopicPartition
    home: LogDirectory


class LogRemoval:
    """Logs that go, and folders that are left."""

    def __init__(self, dirs: LogDirs, written: OffsetCheckpoints) -> None:
        self._dirs = dirs
        self._checkpoints = written

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
        dirs = self._dirs
        doomed = dirs.by_partition.pop((topic, partition), None)
        if doomed is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        home = dirs.homes.pop((topic, partition))
        dirs.counts[home.path] -= 1
        target = home.path / dirs.name_with(doomed.directory.name, "delete")
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
                self._dirs.files.rename(folder, target)
            except OSError as error:
                raise storage_error(folder.parent, error) from error
            garbage.directory = target

    def forget(self, retired: Sequence[Retired]) -> None:
        """The second part of `rename`: the new names are durable, and the checkpoints name these logs no more.

        Raises:
            LogDirFailed: the new names may not last.
        """
        dirs = self._dirs
        log_dirs = {id(each.home): each.home for each in retired}.values()
        for home in log_dirs:
            try:
                dirs.files.sync_directory(home.path)
            except OSError as error:
                raise LogDirFailed(str(home.path), str(error)) from error
        with dirs.checkpoint_lock:
            for directory in log_dirs:
                self._checkpoints.forget(directory, [each.key for each in retired if each.home is directory])

    # Moving

    @property
    def interrupted(self) -> dict[TopicPartition, LogDirectory]:
        """Moves that were under way when the broker ended, and where to."""
        return self._dirs.startup_scan.interrupted

    def forget_move(self, key: TopicPartition) -> None:
        """The move that the last stop or crash interrupted is not wanted any more."""
        dirs = self._dirs
        directory, path = dirs.startup_scan.interrupted.pop(key), dirs.startup_scan.begun.pop(key)
        if directory.failure is None:
            remove_folder(dirs.files, path)

    def begin_move(self, topic: str, partition: int, directory: LogDirectory) -> LogMove:
        """A move of the log to `directory`; nothing is on the disk yet."""
        dirs = self._dirs
        moved = dirs.by_partition[topic, partition]
        if self.interrupted.pop((topic, partition), None) is directory:
            folder = dirs.startup_scan.begun.pop((topic, partition))
        else:
            folder = directory.path / dirs.name_with(moved.directory.name, "future")
        return LogMove(moved, directory.path, folder, dirs.files)

    def swap(self, move: LogMove, directory: LogDirectory) -> Retired:
        """The log is in `directory` from now on; the old folder keeps its name until `leave`.

        Raises:
            OSError: a disk does not work; the log stays where it was.
        """
        dirs = self._dirs
        moved = move.log
        key, old = (moved.topic, moved.partition), moved.directory
        garbage = move.swap()
        source = dirs.homes[key]
        dirs.counts[source.path] -= 1
        dirs.counts[directory.path] += 1
        dirs.homes[key], dirs.leaving[key] = directory, source
        garbage.directory = old.with_name(dirs.name_with(old.name, "delete"))
        return Retired(garbage, old, garbage.directory, key, source)

    def leave(self, move: LogMove, retired: Retired) -> Garbage:
        """Give the old folder up, once nothing of the new one can be lost any more; blocks, runs in a thread.

        Raises:
            StorageError, OSError: a disk does not work; the next start finishes this.
        """
        dirs = self._dirs
        dirs.files.sync_directory(move.directory)
        self._checkpoints.write_recovery_points()
        self._checkpoints.write_log_start_offsets()
        with dirs.checkpoint_lock:
            hand_over(retired.key, retired.home, dirs.homes[retired.key])
        del dirs.leaving[retired.key]
        (garbage,) = self.rename([retired])
        dirs.files.unlink(move.folder / MARKER)
        return garbage
