"""Reads a topic straight from the data folder of a broker that runs or is stopped, without a request to it.

Records are read as far as they are committed. A broker alone (its folder has `metadata.db`) commits a record when it writes it. A
member of a cluster writes its high watermarks down every five seconds (`replica.high.watermark.checkpoint.interval.ms`), and a snapshot
ends there. A topic has the partitions whose replicas are in the folder.

Rules
  1. Nothing is written, and no lock is taken.
  2. A snapshot keeps files open, up to `MAX_HELD_SEGMENTS` in a process, so that it stays readable while they are removed. The records
     of files beyond that are gone when retention removes them, as for a consumer.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from barnabas.client.batches import next_offset
from barnabas.tables.errors import TableError
from barnabas.tables.folder.log_dirs import FoundPartition, LogDirs
from barnabas.tables.folder.partition import PartitionFolder, PartitionView
from barnabas.tables.folder.segments import SegmentGone
from barnabas.tables.source import Bounds, Chunk, Snapshot

DataFolder = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
SETTLES_WITHIN_S = 5.0  # a topic that is deleted or moved while it is looked at
LOOK_AGAIN_S = 0.01


class FolderSnapshot(Snapshot, frozen=True):
    """A snapshot that holds the files of its partitions."""

    views: Mapping[int, PartitionView] = {}


class _Unsettled(Exception):
    """The folders of a topic change at this moment."""


class FolderSource:
    """A topic in the data folder of a broker.

    Args:
        data_folder: the broker's `log.dirs`: one path, several with commas between them, or a list of paths.

    Raises:
        TableError: there is no such folder.
    """

    def __init__(self, topic: str, data_folder: DataFolder) -> None:
        self.topic = topic
        self._dirs = LogDirs(paths_of(data_folder))
        self._lock = threading.Lock()
        self._folders: dict[tuple[Path, str], PartitionFolder] = {}

    def close(self) -> None:
        with self._lock:
            self._folders.clear()

    def snapshot(self) -> FolderSnapshot:
        with self._lock:
            return self._settled(self._look)

    def _settled(self, look: Callable[[], FolderSnapshot]) -> FolderSnapshot:
        """A look that met no change. Raises TableError, CorruptLog."""
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while True:
            try:
                return look()
            except (_Unsettled, FileNotFoundError) as error:
                if time.monotonic() > deadline:
                    raise TableError(f"the files of {self.topic} change while they are looked for: {error}") from error
            except PermissionError as error:
                raise TableError(f"the files of {self.topic} cannot be read: {error}") from error
            time.sleep(LOOK_AGAIN_S)

    def _look(self) -> FolderSnapshot:
        found = self._dirs.partitions(self.topic)
        if not found:
            raise TableError(f"there is no topic {self.topic} in {', '.join(map(str, self._dirs.paths))}")
        ids = {each.topic_id for each in found.values()}
        if len(ids) > 1:
            raise _Unsettled("its partitions have several topic ids")
        if self._dirs.is_single_broker() and list(found) != list(range(len(found))):
            raise _Unsettled(f"of its partitions there are {', '.join(map(str, found))}")
        views = {partition: self._view(each) for partition, each in found.items()}
        if {each.path: each.topic_id for each in found.values()} != self._dirs.topic_ids(self.topic):
            raise _Unsettled("its folders were renamed")
        self._folders = {(each.path, each.topic_id): self._folders[each.path, each.topic_id] for each in found.values()}
        bounds = {partition: view.bounds for partition, view in views.items()}
        epochs = {partition: view.epoch for partition, view in views.items() if view.epoch >= 0}
        return FolderSnapshot(self.topic, ids.pop(), bounds, epochs, views)

    def _view(self, found: FoundPartition) -> PartitionView:
        folder = self._folders.setdefault((found.path, found.topic_id), PartitionFolder(found.path))
        return folder.view(found.log_start, found.high_watermark)

    def end_of_epoch(self, partition: int, epoch: int) -> int:
        with self._lock:
            if not self._folders:
                self._settled(self._look)
            name = f"{self.topic}-{partition}"
            return next((each.end_of_epoch(epoch) for (path, _), each in self._folders.items() if path.name == name), -1)

    def offsets_from(self, snapshot: Snapshot, timestamp_ms: int) -> Mapping[int, int]:
        return {
            partition: self._offset_from(snapshot, partition, bounds, timestamp_ms)
            for partition, bounds in snapshot.partitions.items()
        }

    def _offset_from(self, snapshot: Snapshot, partition: int, bounds: Bounds, timestamp_ms: int) -> int:
        while True:
            try:
                return min(max(self._view_of(snapshot, partition).first_from(timestamp_ms), bounds.start), bounds.end)
            except SegmentGone:
                snapshot = self._later(snapshot)

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        while True:
            try:
                for chunk in self._view_of(snapshot, partition).chunks(start, end):
                    yield chunk
                    start = max(start, next_offset(chunk.records, start))
                return
            except SegmentGone:
                snapshot = self._later(snapshot)

    def _view_of(self, snapshot: Snapshot, partition: int) -> PartitionView:
        if not isinstance(snapshot, FolderSnapshot):
            snapshot = self._later(snapshot)
        if partition not in snapshot.views:
            raise TableError(f"{self.topic}-{partition} is not in the data folder any more")
        return snapshot.views[partition]

    def _later(self, snapshot: Snapshot) -> FolderSnapshot:
        """The topic at this moment, to go on where the files of a snapshot are gone. Raises TableError if it is another topic."""
        later = self.snapshot() if self._dirs.topic_ids(self.topic) else None
        if later is None or later.topic_id != snapshot.topic_id:
            raise TableError(f"the topic {self.topic} was deleted while it was read")
        return later


def paths_of(data_folder: DataFolder) -> list[Path]:
    """The folders, from each form in which they are given."""
    if isinstance(data_folder, str):
        return [Path(each.strip()) for each in data_folder.split(",")]
    return [Path(data_folder)] if isinstance(data_folder, os.PathLike) else [Path(each) for each in data_folder]
