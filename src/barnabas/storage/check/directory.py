"""A data folder: who it belongs to, its checkpoints, and which partitions lie in it.

Owns what is checked around the partitions: before them the files of the folder itself, after them whether the checkpoints fit what
the partitions hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.partition import PartitionContext, PartitionReport
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import CLEAN_SHUTDOWN_FILE, LOCK_FILE
from barnabas.storage.files import TEMPORARY_SUFFIX, Files
from barnabas.storage.manager import DELETED_FOLDER, FUTURE_FOLDER, KRAFT_FOLDER, LOG_FOLDER, STRAY_FOLDER
from barnabas.storage.moving import MARKER

OFFSET_CHECKPOINTS = (checkpoints.RECOVERY_POINTS, checkpoints.LOG_START_OFFSETS, checkpoints.HIGH_WATERMARKS)
KNOWN_NAMES = {
    LOCK_FILE,
    CLEAN_SHUTDOWN_FILE,
    checkpoints.META_PROPERTIES,
    "cleaner-offset-checkpoint",
    "bootstrap.checkpoint",  # Kafka's, of a formatted folder
    "metadata.db",
    "metadata.db-wal",
    "metadata.db-shm",
    "metadata.db.reserve",  # room for it on a full disk
    *OFFSET_CHECKPOINTS,
}


@dataclass(slots=True)
class DataFolder:
    """A data folder as its own files tell."""

    path: Path
    findings: list[Finding] = field(default_factory=list)
    was_clean: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)  # by the checkpoint's name
    partitions: dict[TopicPartition, Path] = field(default_factory=dict)

    def context(self, key: TopicPartition, topic_id: UUID | None) -> PartitionContext:
        points, starts = (self.offsets.get(name, {}) for name in (checkpoints.RECOVERY_POINTS, checkpoints.LOG_START_OFFSETS))
        return PartitionContext(points.get(key, 0), self.was_clean, topic_id, starts.get(key, 0))


NOTHING_LOST = "nothing is lost"
MOVE_GOES_ON = "the next start goes on with the move"


def read_data_folder(files: Files, path: Path) -> DataFolder:
    """The files of the folder itself, and what is wrong with them."""
    found = DataFolder(path, was_clean=files.exists(path / CLEAN_SHUTDOWN_FILE))
    for name in files.list_directory(path):
        found.findings += _name(found, name)
    for name in OFFSET_CHECKPOINTS:
        try:
            found.offsets[name] = checkpoints.read_offsets(files, path / name)
        except (CorruptLog, UnicodeDecodeError) as error:
            loss = "the broker does not start with it; without it the next start reads every segment"
            found.findings.append(_unreadable(path / name, error.reason, loss))
    found.findings += _properties(files, found)
    return found


def _name(found: DataFolder, name: str) -> Iterator[Finding]:
    path = found.path / name
    if name == KRAFT_FOLDER or name in KNOWN_NAMES:
        return
    if DELETED_FOLDER.fullmatch(name):
        loss = "nothing is lost: the next start removes it"
        yield Finding(path, "a deleted partition that is not removed yet", loss, repair=Repair.REMOVE_FOLDER, mended=True)
    elif FUTURE_FOLDER.fullmatch(name):
        yield Finding(
            path, "an unfinished copy of a partition that is moved here", NOTHING_LOST, why_not=MOVE_GOES_ON, mended=True
        )
    elif STRAY_FOLDER.fullmatch(name):
        what = "a partition that was being moved, or that no metadata knew"
        yield Finding(path, what, NOTHING_LOST, why_not="the next start decides whether it is still wanted")
    elif match := LOG_FOLDER.fullmatch(name):
        found.partitions[match["topic"], int(match["partition"])] = path
    elif name.endswith(TEMPORARY_SUFFIX):
        loss = "nothing is lost: the file that it was to replace is there"
        yield Finding(path, "an unfinished replacement of a small file", loss, repair=Repair.REMOVE_FILE, mended=True)
    else:
        yield Finding(path, "not a file of a data folder", "nothing reads it", why_not="whoever put it there may want it")


def _properties(files: Files, found: DataFolder) -> Iterator[Finding]:
    path = found.path / checkpoints.META_PROPERTIES
    try:
        found.properties = checkpoints.read_properties(files, path)
    except UnicodeDecodeError as error:
        yield _unreadable(path, error.reason, "the broker does not start with it")
        return
    if not found.properties:
        if found.partitions:
            loss = "the folder may be taken for another broker's; the next start writes it anew"
            yield Finding(path, "the file is missing or empty", loss, why_not="nothing else names the cluster for sure")
        return
    missing = [name for name in ("cluster.id", "node.id") if name not in found.properties and name != "node.id"]
    if "node.id" not in found.properties and "broker.id" not in found.properties:
        missing.append("node.id")
    if missing:
        yield Finding(
            path,
            f"it has no {' and no '.join(missing)}",
            "the folder may be taken for another broker's",
            why_not="it is not known",
        )


def _unreadable(path: Path, reason: str, loss: str) -> Finding:
    return Finding(path, f"it cannot be read: {reason}", loss, why_not="what it said is not written anywhere else")


def leave_moved(files: Files, folders: Iterable[DataFolder]) -> Iterator[Finding]:
    """Take the partitions out that were moved to another of these folders, and whose old copy a stop has left."""
    moved = {key: path for folder in folders for key, path in folder.partitions.items() if files.exists(path / MARKER)}
    for folder in folders:
        for key, path in list(folder.partitions.items()):
            if moved.get(key, path) != path:
                del folder.partitions[key]
                what = f"the partition was moved to {moved[key].parent}"
                yield Finding(path, what, NOTHING_LOST, why_not="the next start removes this copy", mended=True)


def check_together(folders: Iterable[DataFolder]) -> Iterator[Finding]:
    """What data folders of one broker may not contradict each other in."""
    homes: dict[TopicPartition, Path] = {}
    first: DataFolder | None = None
    for folder in folders:
        for key, path in folder.partitions.items():
            if key in homes:
                loss = "the broker does not start; one of the two is not what clients were served from"
                yield Finding(
                    path, f"the partition lies in {homes[key].parent} too", loss, why_not="nothing tells which one is right"
                )
            homes.setdefault(key, path)
        if first is None:
            first = folder
            continue
        for name in ("cluster.id", "node.id"):
            told, other = folder.properties.get(name), first.properties.get(name)
            if told is not None and other is not None and told != other:
                what = f"{name} is {told}, but {other} in {first.path}"
                loss = "the broker does not start with both folders"
                yield Finding(folder.path / checkpoints.META_PROPERTIES, what, loss, why_not="nothing tells which one is right")


def check_checkpoints(folder: DataFolder, reports: Mapping[TopicPartition, PartitionReport]) -> Iterator[Finding]:
    """The offsets in the checkpoints against what the partitions hold."""
    for name, offsets in folder.offsets.items():
        path = folder.path / name
        for key, offset in offsets.items():
            report = reports.get(key)
            partition = f"{key[0]}-{key[1]}"
            if report is None:
                if offset > 0 and key[0] != "__cluster_metadata":
                    loss = "if the partition was not deleted, all of its records are gone"
                    what = f"it has offset {offset} for {partition}, of which there is no folder"
                    yield Finding(path, what, loss, why_not="the broker drops the line when it writes the file again")
            elif offset < 0:
                yield Finding(path, f"it has offset {offset} for {partition}", "the broker takes it for 0", why_not=NEXT_WRITE)
            elif offset > report.end_offset:
                yield _past_end(path, name, partition, offset, report)


NEXT_WRITE = "the broker writes it anew when it runs"


def _past_end(path: Path, name: str, partition: str, offset: int, report: PartitionReport) -> Finding:
    what = f"it has offset {offset} for {partition}, which ends at {report.end_offset}"
    if name == checkpoints.LOG_START_OFFSETS:
        loss = f"the next start takes offsets {report.start_offset} to {report.end_offset - 1} for deleted and removes them"
        return Finding(path, what, loss, why_not="only you can tell whether they were deleted")
    said = "on the disk" if name == checkpoints.RECOVERY_POINTS else "committed"
    loss = f"offsets {report.end_offset} to {offset - 1} were {said} and are not there"
    return Finding(path, what, loss, None, report.end_offset, offset - 1, None, "the records are gone")
