"""A data folder: its owner, its checkpoints, and its partitions.

Owns the checks around the partitions: before them the files of the folder itself, after them the checkpoints against the
partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from uuid import UUID

from msgspec import Struct, field

from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.partition import PartitionContext, PartitionReport
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.directory import CLEAN_SHUTDOWN_FILE, LAST_BOOT_FILE, LOCK_FILE, OWN_FILES, ROOM_FILE
from barnabas.storage.files import TEMPORARY_SUFFIX, Files
from barnabas.storage.log_move import MARKER
from barnabas.storage.startup_scan import DELETED_FOLDER, FUTURE_FOLDER, KRAFT_FOLDER, LOG_FOLDER, STRAY_FOLDER

KNOWN_NAMES = {
    LOCK_FILE,
    CLEAN_SHUTDOWN_FILE,
    LAST_BOOT_FILE,
    ROOM_FILE,
    checkpoints.META_PROPERTIES,
    "bootstrap.checkpoint",  # Kafka's file in a formatted folder
    "metadata.db",
    "metadata.db-wal",
    "metadata.db-shm",
    "metadata.db.reserve",  # reserved disk space for a stop on a full disk
    *checkpoints.OFFSET_CHECKPOINTS,
}
UNFINISHED = {name + TEMPORARY_SUFFIX for name in OWN_FILES}


class DataFolder(Struct):
    """A data folder according to its own files."""

    path: Path
    findings: list[Finding] = field(default_factory=list)
    was_clean: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)  # checkpoint file name -> its offsets
    partitions: dict[TopicPartition, Path] = field(default_factory=dict)
    # Deleted partitions whose folder still exists: folder names up to the last dot.
    deleted: set[str] = field(default_factory=set)

    def context(self, key: TopicPartition, topic_id: UUID | None, *, is_compacted: bool = False) -> PartitionContext:
        """The folder's facts about a partition; `is_compacted` comes from the metadata."""
        points = self.offsets.get(checkpoints.RECOVERY_POINTS, {})
        is_compacted = is_compacted or key in self.offsets.get(checkpoints.CLEANED_OFFSETS, {})
        starts = self.offsets.get(checkpoints.LOG_START_OFFSETS, {})
        return PartitionContext(points.get(key, 0), self.was_clean, topic_id, starts.get(key, 0), is_compacted)


def read_data_folder(files: Files, path: Path) -> DataFolder:
    """The files of the folder itself, and their findings."""
    found = DataFolder(path, was_clean=files.exists(path / CLEAN_SHUTDOWN_FILE))
    for name in files.list_directory(path):
        found.findings += _name(files, found, name)
    for name in checkpoints.OFFSET_CHECKPOINTS:
        try:
            found.offsets[name] = checkpoints.read_offsets(files, path / name)
        except CorruptLog as error:
            if name != checkpoints.CLEANED_OFFSETS or files.file_size(path / name):  # Kafka leaves this one empty
                found.findings.append(_unreadable(path / name, error.reason, checkpoints.WITHOUT[name]))
    found.findings += _properties(files, found)
    return found


def _name(files: Files, found: DataFolder, name: str) -> Iterator[Finding]:
    path = found.path / name
    is_directory = files.is_directory(path)
    if name == KRAFT_FOLDER or name in KNOWN_NAMES:
        return
    if is_directory and DELETED_FOLDER.fullmatch(name):
        loss = "nothing is lost: the next start removes it"
        found.deleted.add(name.rpartition(".")[0])
        yield Finding(path, "a deleted partition that is not removed yet", loss, repair=Repair.REMOVE_FOLDER, mended=True)
    elif is_directory and FUTURE_FOLDER.fullmatch(name):
        if found.was_clean:
            return  # a clean stop leaves this folder, and the next start continues the copy
        what, loss = (
            "an unfinished copy of a partition on its way to this folder",
            "nothing is lost: the next start copies it anew",
        )
        yield Finding(path, what, loss, why_not="by it the next start knows where the partition is to go", mended=True)
    elif STRAY_FOLDER.fullmatch(name):
        what = "a partition that Kafka put aside, because its metadata did not know it"
        yield Finding(path, what, "nothing reads it", why_not="only you can tell whether its records are wanted")
    elif match := LOG_FOLDER.fullmatch(name):
        found.partitions[match["topic"], int(match["partition"])] = path
    elif name in UNFINISHED and not is_directory:
        loss = "nothing is lost: the file that it was to replace is there"
        yield Finding(path, "an unfinished replacement of a small file", loss, repair=Repair.REMOVE_FILE, mended=True)
    else:
        yield Finding(path, "not a file of a data folder", "nothing reads it", why_not="whoever put it there may want it")


def _properties(files: Files, found: DataFolder) -> Iterator[Finding]:
    path = found.path / checkpoints.META_PROPERTIES
    found.properties = checkpoints.read_properties(files, path)
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
    return Finding(path, f"it cannot be read: {reason}", loss, why_not=NEXT_WRITE, mended=True)


def settle_moves(files: Files, folders: Sequence[DataFolder]) -> Iterator[Finding]:
    """Unfinished moves between data folders: if a partition is in two folders, the old one is not checked, because the next
    start removes it.
    """
    homes: dict[TopicPartition, list[DataFolder]] = {}
    for folder in folders:
        for key in folder.partitions:
            homes.setdefault(key, []).append(folder)
    for key, two in homes.items():
        moved = [folder for folder in two if files.exists(folder.partitions[key] / MARKER)]
        if len(two) != 2 or len(moved) != 1:
            continue
        (target,) = moved
        (source,) = (folder for folder in two if folder is not target)
        for offsets in (checkpoints.RECOVERY_POINTS, checkpoints.LOG_START_OFFSETS):
            told = source.offsets.get(offsets, {}).get(key)
            if told is not None:
                target.offsets.setdefault(offsets, {}).setdefault(key, told)
        what = f"the partition was moved to {target.path}, and this is what it left"
        yield Finding(
            source.partitions.pop(key),
            what,
            "nothing is lost: the next start removes it",
            why_not="the next start does",
            mended=True,
        )


def check_together(folders: Iterable[DataFolder]) -> Iterator[Finding]:
    """The contradictions between data folders of one broker."""
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
    """Checks the offsets in the checkpoints against the partitions."""
    for name, offsets in folder.offsets.items():
        path = folder.path / name
        for key, offset in offsets.items():
            report = reports.get(key)
            partition = f"{key[0]}-{key[1]}"
            if report is None:
                if offset > 0 and key[0] != "__cluster_metadata":
                    is_deleted = partition in folder.deleted
                    loss = "if the partition was not deleted, all of its records are gone"
                    if is_deleted:
                        loss = "nothing is lost: the partition was deleted"
                    what = f"it has offset {offset} for {partition}, of which there is no folder"
                    why_not = "the broker drops the line when it writes the file again"
                    yield Finding(path, what, loss, why_not=why_not, mended=is_deleted)
            elif offset < 0:
                yield Finding(path, f"it has offset {offset} for {partition}", "the broker takes it for 0", why_not=NEXT_WRITE)
            elif name == checkpoints.CLEANED_OFFSETS and offset > report.end_offset:
                what = f"it has offset {offset} for {partition}, which ends at {report.end_offset}"
                loss = "nothing is lost: the log is compacted from its start once more"
                yield Finding(path, what, loss, why_not=NEXT_WRITE, mended=True)
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
