"""Finds a topic's partitions in the log directories of a broker, and reads the checkpoints that tell their bounds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.files import ReadingFiles
from barnabas.storage.log_move import MARKER
from barnabas.storage.startup_scan import LOG_FOLDER
from barnabas.tables.errors import TableError

FILES = ReadingFiles()
STORE_OF_A_SINGLE_BROKER = "metadata.db"


class FoundPartition(NamedTuple):
    """A partition's folder.

    Args:
        topic_id: as hexadecimal digits; empty if the folder has none.
        log_start: offset below which records were deleted.
        high_watermark: offset below which records are committed; None: all that is in the log.
    """

    path: Path
    topic_id: str
    log_start: int
    high_watermark: int | None


class LogDirs:
    """The log directories of one broker, which may run.

    Args:
        paths: the folders of `log.dirs`.

    Raises:
        TableError: one of them is no folder.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.is_dir():
                raise TableError(f"there is no data folder {path}")
        self.paths = list(paths)

    def topics(self) -> list[str]:
        """The names of all topics with replicas here."""
        entries = (path / name for path in self.paths for name in os.listdir(path))
        return sorted({match["topic"] for each in entries if (match := LOG_FOLDER.fullmatch(each.name)) and each.is_dir()})

    def partitions(self, topic: str) -> dict[int, FoundPartition]:
        """The partitions of a topic whose replicas are here.

        Raises:
            TableError: a partition lies in two folders, and nothing tells which one is in use.
            CorruptLog: the checkpoint of high watermarks cannot be read.
            FileNotFoundError: a folder was renamed meanwhile.
        """
        folders = self._folders(topic)
        starts = [self._offsets(path, checkpoints.LOG_START_OFFSETS) for path in self.paths]
        high_watermarks = [] if self.is_single_broker() else [self._high_watermarks(path) for path in self.paths]
        found = {}
        for partition, folder in folders.items():
            home, key = self.paths.index(folder.parent), (topic, partition)
            found[partition] = FoundPartition(
                folder,
                _topic_id(folder),
                max(_told(starts, home, key), 0),
                _told(high_watermarks, home, key) if high_watermarks else None,
            )
        return found

    def topic_ids(self, topic: str) -> dict[Path, str]:
        """The topic id of each folder of a topic; raises as `partitions`."""
        return {folder: _topic_id(folder) for folder in self._folders(topic).values()}

    def _folders(self, topic: str) -> dict[int, Path]:
        folders: dict[int, Path] = {}
        for path in self.paths:
            for entry in os.listdir(path):
                match = LOG_FOLDER.fullmatch(entry)
                if match is not None and match["topic"] == topic:
                    partition = int(match["partition"])
                    other = folders.get(partition)
                    folders[partition] = path / entry if other is None else _in_use(other, path / entry)
        return dict(sorted(folders.items()))

    def is_single_broker(self) -> bool:
        """Whether the broker is alone: then its records are committed as soon as they are in the log."""
        return any((path / STORE_OF_A_SINGLE_BROKER).exists() for path in self.paths)

    def _offsets(self, path: Path, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.read_offsets(FILES, path / name)
        except CorruptLog:  # a broker also goes on without it
            return {}

    def _high_watermarks(self, path: Path) -> dict[TopicPartition, int]:
        return checkpoints.read_offsets(FILES, path / checkpoints.HIGH_WATERMARKS)


def _topic_id(folder: Path) -> str:
    found = checkpoints.read_partition_metadata(FILES, folder / checkpoints.PARTITION_METADATA)
    return "" if found is None else found.hex


def _told(offsets: Sequence[dict[TopicPartition, int]], home: int, key: TopicPartition) -> int:
    """The offset in the checkpoint of the partition's directory; in another one for a partition that has just moved; 0 without one."""
    if key in offsets[home]:
        return offsets[home][key]
    return next((each[key] for each in offsets if key in each), 0)


def _in_use(one: Path, other: Path) -> Path:
    """Which of two folders of a partition is in use: one that was moved has a mark until the other one is gone."""
    moved = [each for each in (one, other) if (each / MARKER).exists()]
    if len(moved) != 1:
        raise TableError(f"{one.name} lies in {one.parent} and in {other.parent}, and nothing tells which one is in use")
    return moved[0]
