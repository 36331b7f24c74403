"""Finds the logs in a broker's directories at its start, and unfinished deletions, moves and creations.

Owns the names of folders. It repairs its findings at once, if that loses nothing:

    <topic>-<partition>                     a log
    <topic>-<partition>.<id>-delete         a deletion that a stop interrupted: removed
    <topic>-<partition>.<id>-future         a copy on its way to this directory: emptied, and `interrupted`, so that it begins again
    <topic>-<partition>.<id>-stray          a log of another topic that had the name, which nobody deleted: left alone
    one log in two directories              a move that was nearly finished, or a log that was created and not used: the other folder
                                            is removed
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.errors import LogDirFailed
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import Files
from barnabas.storage.garbage import remove_deleted, remove_folder
from barnabas.storage.log_move import MARKER
from barnabas.storage.segment import LOG_SUFFIX, file_name

logger = logging.getLogger(__name__)

LOG_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
DELETED_FOLDER = re.compile(r".*\.[0-9a-f]{32}-delete")
FUTURE_FOLDER = re.compile(r".*\.[0-9a-f]{32}-future")
STRAY_FOLDER = re.compile(r".*\.[0-9a-f]{32}-stray")
OWN_NAME = re.compile(
    r""
    r""
    r""
    r""
    r""
    r""
    r"\.lock|\.kafka_cleanshutdown|\.last-boot|\.room-to-stop|meta\.properties|[a-z-]+-checkpoint|bootstrap\.checkpoint|metadata\.db.*|lost\+found|.*\.tmp"
)
KRAFT_FOLDER = "__cluster_metadata-0"  # Kafka's own metadata log, in an adopted folder; not a partition that barnabas serves

Failed = Callable[[LogDirectory, LogDirFailed | OSError], None]


class StartupScan:
    """The scan at the start.

    Args:
        failed: called with a directory whose disk does not work.
    """

    def __init__(self, files: Files, failed: Failed) -> None:
        self._files = files
        self._failed = failed
        self.log_dirs: dict[TopicPartition, LogDirectory] = {}
        self.interrupted: dict[TopicPartition, LogDirectory] = {}  # target directories of interrupted moves
        self.begun: dict[TopicPartition, Path] = {}  # folders of the interrupted copies

    def look(self, directories: Iterable[LogDirectory]) -> None:
        """Find the logs of the directories that work; finishes half-done deletions and moves."""
        for directory in directories:
            try:
                for name in self._files.list_directory(directory.path):
                    key = self._partition_of(directory, name)
                    if key is None:
                        continue
                    other = self.log_dirs.get(key)
                    self.log_dirs[key] = directory if other is None else self._choose(name, other, directory)
            except (LogDirFailed, OSError) as error:
                self._failed(directory, error)

    def _drop_copy(self, directory: LogDirectory, path: Path) -> None:
        """Empty the folder of a copy that a stop or a crash interrupted; the copying begins again (`interrupted`).

        The folder and its marker stay: if the broker ends before the copying has begun again, the move is not forgotten.
        """
        marker = path / MARKER
        original = self._files.read_file(marker).decode() if self._files.exists(marker) else path.name.rpartition(".")[0]
        match = LOG_FOLDER.fullmatch(original)
        if match is not None:
            key = match["topic"], int(match["partition"])
            self.interrupted[key], self.begun[key] = directory, path
        logger.info("event=log-copy-begins-again path=%s", path)
        for name in self._files.list_directory(path):
            if self._files.is_directory(path / name):
                remove_folder(self._files, path / name)
            elif name != MARKER:
                self._files.unlink(path / name)

    def _choose(self, name: str, one: LogDirectory, other: LogDirectory) -> LogDirectory:
        """The one of two directories whose log is used; the folder in the other one is removed.

        Raises:
            LogDirFailed: neither a move of the log nor a creation that a disk error ended explains that there are two.
        """
        moved = [each for each in (one, other) if self._files.exists(each.path / name / MARKER)]
        if not moved:
            for unused, used in ((other, one), (one, other)):
                if self._never_held_records(unused.path / name):
                    logger.info("event=log-made-in-vain-removed path=%s", unused.path / name)
                    remove_folder(self._files, unused.path / name)
                    return used
        if len(moved) != 1:
            raise LogDirFailed(str(other.path), f"{name} lies in {one.path} too")
        target = moved[0]
        source = one if target is other else other
        # A crash may have come just after the move: the checkpoint entries of the log can still be in the old directory.
        topic, _, partition = name.rpartition("-")
        hand_over((topic, int(partition)), source, target)
        logger.info("event=log-move-finished log=%s removed=%s", name, source.path / name)
        remove_folder(self._files, source.path / name)
        return target

    def _never_held_records(self, folder: Path) -> bool:
        """Whether a folder is as the creation of a log leaves it, whole or half done; a log that was emptied later begins past offset 0."""
        first = file_name(0, LOG_SUFFIX)
        logs = [each for each in self._files.list_directory(folder) if LOG_SUFFIX in each]
        return not logs or (logs == [first] and self._files.file_size(folder / first) == 0)

    def _partition_of(self, directory: LogDirectory, name: str) -> TopicPartition | None:
        """The partition of a name in a log directory; removes leftovers of deletions."""
        path = directory.path / name
        match = LOG_FOLDER.fullmatch(name)
        if DELETED_FOLDER.fullmatch(name) and self._files.is_directory(path):
            logger.info("event=deleted-log-removed path=%s", path)
            remove_deleted(self._files, path)
            return None
        if FUTURE_FOLDER.fullmatch(name) and self._files.is_directory(path):
            self._drop_copy(directory, path)
            return None
        if match is None or name == KRAFT_FOLDER:
            if name != KRAFT_FOLDER and not OWN_NAME.fullmatch(name) and not STRAY_FOLDER.fullmatch(name):
                logger.warning("event=foreign-entry-left-alone path=%s", path)
            return None
        return match["topic"], int(match["partition"])


def hand_over(key: TopicPartition, source: LogDirectory, target: LogDirectory) -> None:
    """Copy the entries of a moved log from the checkpoints of `source` to those of `target`, where these have none."""
    for name in checkpoints.OFFSET_CHECKPOINTS:
        known, told = target.read(name), source.read(name).get(key)
        if told is not None and key not in known:
            target.write(name, {**known, key: told})
