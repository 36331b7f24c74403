"""One log directory: its owner, its state after the last stop, and its checkpoints.

Owns `.lock` (held while a broker runs), `meta.properties` (cluster and broker), `.room-to-stop`, the offset checkpoints and
two marks. `.kafka_cleanshutdown` is present only between a clean stop and the next start. `.last-boot` has, in a cluster, the
boot id of the machine at the last time the broker relied on these files.

Rules
  1. The marker of a clean shutdown is removed before any log is opened: a crash right after the start must not find it.
  2. A folder of another cluster or broker is refused, and so is one that another process has locked.
  3. A directory whose disk failed (`failure`) is never written again and never marked clean: the next start checks its content
     from the disk.
  4. `.last-boot` has the current boot id only if nothing relies on records that an earlier boot may have lost: it is written
     when the marker of a clean shutdown is removed, or by `remember_boot`. It is removed when a disk fails, because a failed
     sync loses data.
  5. A stop writes indexes, snapshots and checkpoints, also on a full disk: `.room-to-stop` reserves space for them, and
     `give_up_room` frees it. If the file system cannot reserve space, a stop works without it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from barnabas.errors import CorruptLog, LogDirFailed, StorageError
from barnabas.storage import checkpoints
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.files import TEMPORARY_SUFFIX, Files
from barnabas.storage.os_errors import storage_error

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LAST_BOOT_FILE = ".last-boot"
ROOM_FILE = ".room-to-stop"
ROOM_BYTES = (
    4 * 1024 * 1024,
    1024 * 1024,
    256 * 1024,
)  # a changed log takes up to four blocks of 4 kB: the largest size is enough for about 250 logs
OWN_FILES = (CLEAN_SHUTDOWN_FILE, LAST_BOOT_FILE, checkpoints.META_PROPERTIES, *checkpoints.OFFSET_CHECKPOINTS)
PROPERTIES_VERSION = "1"
NO_BROKER_EPOCH = -1


class LogDirectory:
    """A locked log directory.

    Args:
        new_id: the `directory.id` for a directory that has none yet.
        required: whether an error of its disk is raised; otherwise it is kept in `failure`.
        boot_id: id of this boot of the machine; "" if it is unknown, None if the caller does not use `has_all`.

    Raises:
        LogDirFailed: the directory is in use, belongs to another broker, or cannot be written.
        StorageExhausted: the disk is full.
    """

    def __init__(
        self,
        path: Path,
        *,
        files: Files,
        broker_id: int,
        cluster_id: str,
        new_id: UUID,
        required: bool = True,
        boot_id: str | None = None,
    ) -> None:
        self.path = path
        self.id = new_id
        self.is_new = False  # no file named an owner, so no broker has used this directory
        self.was_clean = False
        self.last_boot: str | None = None  # the boot id that the last process left
        self.boot_id = boot_id
        self._files = files
        self.failure: LogDirFailed | None = None
        self._lock: int | None = None
        self._written: dict[str, bytes] = {}  # checkpoint file -> its content after this process's last write
        try:
            files.make_directory(path)
            self._lock = files.lock(path / LOCK_FILE)
            if self._lock is None:
                raise LogDirFailed(str(path), "another broker is using it")
            self._load_properties(broker_id, cluster_id)
            self.was_clean = files.exists(path / CLEAN_SHUTDOWN_FILE)
            self._load_boot()
            files.unlink(path / CLEAN_SHUTDOWN_FILE)
            for name in OWN_FILES:
                files.unlink(path / (name + TEMPORARY_SUFFIX))  # a write that a crash interrupted left this file
            files.sync_directory(path)
            self._take_room()
        except OSError as error:
            self.unlock()
            failure = storage_error(path, error)
            if required or not isinstance(failure, LogDirFailed):
                raise failure from error
            self.failure = failure
        except StorageError:
            self.unlock()
            raise

    def _take_room(self) -> None:
        path = self.path / ROOM_FILE
        try:
            fileno = self._files.open(path, create=True)
        except OSError:
            return
        try:
            for size in ROOM_BYTES:
                with suppress(OSError):
                    self._files.reserve(fileno, 0, size)
                    return
            self.give_up_room()
        finally:
            self._files.close(fileno)

    def give_up_room(self) -> None:
        """Free the reserved space; the stop that needs it has begun."""
        with suppress(OSError):  # if the disk cannot even do this, the next write reports the error
            self._files.unlink(self.path / ROOM_FILE)

    def _load_properties(self, broker_id: int, cluster_id: str) -> None:
        path = self.path / checkpoints.META_PROPERTIES
        found = checkpoints.read_properties(self._files, path)
        self.is_new = not found
        owner = found.get("node.id", found.get("broker.id"))
        if owner is not None and owner != str(broker_id):
            raise LogDirFailed(str(self.path), f"it belongs to broker {owner}, this is broker {broker_id}")
        if found.get("cluster.id", cluster_id) != cluster_id:
            raise LogDirFailed(str(self.path), f"it belongs to cluster {found['cluster.id']}, this is cluster {cluster_id}")
        if "directory.id" in found:
            self.id = checkpoints.decode_uuid(found["directory.id"])
        properties = {
            "version": PROPERTIES_VERSION,
            "cluster.id": cluster_id,
            "node.id": str(broker_id),
            "directory.id": checkpoints.encode_uuid(self.id),
        }
        if not properties.items() <= found.items():
            if self._files.exists(path):
                missing = ", ".join(name for name in properties if name not in found)
                logger.warning("event=meta-properties-completed file=%s missing=%r", path, missing)
            checkpoints.write_properties(self._files, path, properties)

    def _load_boot(self) -> None:
        path = self.path / LAST_BOOT_FILE
        if self.boot_id is not None and self._files.exists(path):
            self.last_boot = self._files.read_file(path).decode(errors="replace").strip()
        if self.was_clean:
            self._write_boot()

    def _write_boot(self) -> None:
        if self.boot_id is not None and self.boot_id != self.last_boot:
            self._files.replace_file(self.path / LAST_BOOT_FILE, f"{self.boot_id}\n".encode())

    @property
    def has_all(self) -> bool:
        """Whether the directory surely has everything that was written to it: it was closed, or the machine stayed up."""
        return self.was_clean or (bool(self.boot_id) and self.last_boot == self.boot_id)

    def remember_boot(self) -> None:
        """Write the current boot id: nothing relies any more on records that an earlier boot may have lost."""
        try:
            self._write_boot()
        except OSError as error:
            raise storage_error(self.path, error) from error

    def forget_boot(self) -> bool:
        """Remove the boot id, because the content is uncertain from now on. False if the disk refuses even that, or could not
        be opened; then the file keeps its content."""
        if self.boot_id is None:
            return True
        if self._lock is None:
            return False
        try:
            self._files.unlink(self.path / LAST_BOOT_FILE)
        except OSError:
            return False
        return True

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets of the checkpoint file `name`; empty if it does not parse, which a power failure may cause.

        The logs have the rest (`WITHOUT`). The file is removed, so that the error is logged once; the next checkpoint writes
        it again.
        """
        path = self.path / name
        try:
            return checkpoints.read_offsets(self._files, path)
        except CorruptLog as error:
            # Kafka leaves the cleaner's checkpoint empty if it cleaned nothing.
            level = logging.INFO if name == checkpoints.CLEANED_OFFSETS else logging.WARNING
            logger.log(
                level,
                "event=checkpoint-unreadable file=%s reason=%r consequence=%r",
                path,
                error.reason,
                checkpoints.WITHOUT[name],
            )
            self._files.unlink(path)
            return {}

    def write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write these offsets to the checkpoint file `name`, unless it has them already: an idle broker does not touch the
        disk for it."""
        data = checkpoints.encode_offsets(offsets)
        if self._written.pop(name, None) != data:
            try:
                self._files.replace_file(self.path / name, data)
            except OSError as error:
                raise storage_error(self.path, error) from error
        self._written[name] = data

    def partitions_named(self) -> set[TopicPartition]:
        """The partitions that have an entry in any checkpoint."""
        return {key for name in checkpoints.OFFSET_CHECKPOINTS for key in self.read(name)}

    def forget(self, partitions: Set[TopicPartition]) -> None:
        """Remove the entries of `partitions` from every checkpoint; writes only the checkpoints that had some."""
        if not partitions:
            return
        for name in checkpoints.OFFSET_CHECKPOINTS:
            offsets = self.read(name)
            if not partitions.isdisjoint(offsets):
                self.write(name, {key: offset for key, offset in offsets.items() if key not in partitions})

    def mark_clean(self) -> None:
        text = json.dumps({"version": 0, "brokerEpoch": NO_BROKER_EPOCH}, separators=(",", ":"))
        try:
            self._files.replace_file(self.path / CLEAN_SHUTDOWN_FILE, text.encode())
        except OSError as error:
            raise storage_error(self.path, error) from error

    def unlock(self) -> None:
        if self._lock is not None:
            self._files.close(self._lock)
            self._lock = None


def read_cluster_id(paths: Iterable[Path], files: Files) -> str | None:
    """The cluster id of log directories, from the first one that has it; None if all are new. Unreadable files are skipped."""
    for path in paths:
        with suppress(OSError):  # opening the directory meets the error again
            found = checkpoints.read_properties(files, path / checkpoints.META_PROPERTIES).get("cluster.id")
            if found is not None:
                return found
    return None


def first_partition(paths: Iterable[Path], files: Files) -> Path | None:
    """A folder in the log directories that belongs to a topic, None if there is none. Unreadable files and folders are skipped."""
    for path in paths:
        with suppress(OSError):  # opening the directory meets the error again
            for name in sorted(files.list_directory(path)):
                if files.exists(path / name / checkpoints.PARTITION_METADATA):
                    return path / name
    return None
