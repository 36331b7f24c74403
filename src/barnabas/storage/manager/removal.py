"""Taking logs out of use, by deletion or because they have moved to another log directory.

A deletion renames the folder to `<topic>-<partition>.<32 hex digits>-delete` at once, and removes the files later. If a start finds a
folder with such a name, a crash came in between, and the start removes it.
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
    """Removes logs, and the old folders of moved logs."""

    def __init__(self, dirs: LogDirs, written: OffsetCheckpoints) -> None:
        self._dirs = dirs
        self._checkpoints = written

    def delete(self, topic: str, partition: int) -> Garbage:
        """Take a log out of use; its folder is renamed now, and `Garbage.remove` of the result removes it (in a thread).

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
        """The second half of `delete`, for many logs; it blocks, and runs in a thread if there are many.

        The new names are on the disk when it returns. Otherwise a power failure could bring back a folder that belongs to no topic.

        Raises:
            LogDirFailed: a folder cannot be renamed.
        """
        self.rename_folders(retired)
        self.forget(retired)
        return [each.garbage for each in retired]

    def rename_folders(self, retired: Sequence[Retired]) -> None:
        """The first part of `rename`; several threads may run it at once, each for other logs.

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
        """The second part of `rename`: makes the new names durable, and removes these logs from the checkpoints.

        Raises:
            LogDirFailed: the new names may not be durable.
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
        """Moves that were running when the broker ended, with their target directories."""
        return self._dirs.startup_scan.interrupted

    def forget_move(self, key: TopicPartition) -> None:
        """Drop a move that the last stop or crash interrupted, because it is not wanted any more."""
        dirs = self._dirs
        directory, path = dirs.startup_scan.interrupted.pop(key), dirs.startup_scan.begun.pop(key)
        if directory.failure is None:
            remove_folder(dirs.files, path)

    def begin_move(self, topic: str, partition: int, directory: LogDirectory) -> LogMove:
        """A move of the log to `directory`; it has not touched the disk yet."""
        dirs = self._dirs
        moved = dirs.by_partition[topic, partition]
        if self.interrupted.pop((topic, partition), None) is directory:
            folder = dirs.startup_scan.begun.pop((topic, partition))
        else:
            folder = directory.path / dirs.name_with(moved.directory.name, "future")
        return LogMove(moved, directory.path, folder, dirs.files)

    def swap(self, move: LogMove, directory: LogDirectory) -> Retired:
        """Put the log into `directory`; the old folder keeps its name until `leave`.

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
        """Remove the old folder, after making the new one durable; blocks, runs in a thread.

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
