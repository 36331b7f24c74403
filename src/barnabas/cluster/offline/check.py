"""Verifies the metadata of a data folder offline: `metadata.db` itself, and its topics against the existing folders.

Owns reading the store without opening it in place: the file is copied first, so that the check changes nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import UUID

from msgspec import Struct, field

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import COORDINATED_TOPICS, Topic
from barnabas.cluster.store.embedded import FILE_NAME, FORMAT
from barnabas.cluster.store.interface import Entry
from barnabas.protocol.values import ResourceType
from barnabas.storage.check.directory import DataFolder
from barnabas.storage.check.finding import Finding
from barnabas.storage.check.partition import PartitionReport
from barnabas.storage.checkpoints import TopicPartition

LOSS = "the broker does not start with it; the topics' settings are in it, the records are not"


class StoredMetadata(Struct):
    """The content of a `metadata.db`; empty if there is none."""

    path: Path
    exists: bool = False
    cluster_id: str | None = None
    topics: dict[str, Topic] = field(default_factory=dict)
    compacted: set[str] = field(default_factory=lambda: set(COORDINATED_TOPICS))  # topics whose own cleanup.policy has `compact`
    deleted: set[UUID] = field(default_factory=set)  # deleted topics whose folders may still exist
    findings: list[Finding] = field(default_factory=list)


def read_metadata(folder: Path) -> StoredMetadata:
    """The metadata in a data folder and what is wrong with the file."""
    found = StoredMetadata(folder / FILE_NAME)
    found.exists = found.path.exists()
    if not found.exists:
        return found
    with tempfile.TemporaryDirectory(prefix="barnabas-check-") as scratch:
        for name in (FILE_NAME, FILE_NAME + "-wal"):
            if (folder / name).exists():
                shutil.copyfile(folder / name, Path(scratch) / name)
        try:
            _read(Path(scratch) / FILE_NAME, found)
        except sqlite3.Error as error:
            found.findings.append(_fault(found.path, str(error)))
        except (ValueError, KeyError, TypeError) as error:  # valid JSON with unexpected content
            found.findings.append(_fault(found.path, f"an entry of it does not parse: {error}"))
    return found


def _read(path: Path, found: StoredMetadata) -> None:
    database = sqlite3.connect(path)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, FORMAT):
            found.findings.append(_fault(found.path, f"it has format {version}; this version reads {FORMAT}"))
            return
        for (fault,) in database.execute("PRAGMA integrity_check"):
            if fault != "ok":
                found.findings.append(_fault(found.path, fault))
                return
        if version == 0:
            return
        entries = [Entry(*row) for row in database.execute("SELECT path, value, version FROM entry ORDER BY path")]
    finally:
        database.close()
    prefixes = store_entries.TOPICS, store_entries.PARTITIONS, store_entries.CONFIGS, store_entries.DELETED_TOPICS
    by_prefix = {prefix: [e for e in entries if e.path.startswith(prefix)] for prefix in prefixes}
    topics = store_entries.decode_topics(by_prefix[store_entries.TOPICS], by_prefix[store_entries.PARTITIONS])
    found.topics = {topic.name: topic for topic in topics}
    configs = dict(map(store_entries.decode_config, by_prefix[store_entries.CONFIGS]))
    found.compacted |= {
        name for (kind, name), settings in configs.items()
        if kind is ResourceType.TOPIC and "compact" in settings.get("cleanup.policy", "")
    }  # fmt: skip
    found.deleted = {store_entries.decode_deletion(entry)[0] for entry in by_prefix[store_entries.DELETED_TOPICS]}
    cluster = next((e for e in entries if e.path == store_entries.CLUSTER), None)
    found.cluster_id = None if cluster is None else str(store_entries.decode(cluster.value)["id"])


def check_topics(
    metadata: StoredMetadata, reports: Mapping[TopicPartition, PartitionReport], folders: Sequence[DataFolder]
) -> Iterator[Finding]:
    """Compares the topics of the metadata with the partitions' folders of all data folders."""
    if not metadata.exists or metadata.findings:
        return
    was_killed = not all(folder.was_clean for folder in folders)
    had_records = {key for folder in folders for offsets in folder.offsets.values() for key in offsets}
    for topic in metadata.topics.values():
        for index in range(len(topic.partitions)):
            if (topic.name, index) not in reports:
                yield Finding(
                    metadata.path,
                    f"partition {index} of topic {topic.name} has no folder in the data folders that were named",
                    "if it had records, they are not here; the next start begins an empty log",
                    why_not="name all data folders of the broker, or restore the folder",
                    mended=was_killed and (topic.name, index) not in had_records,  # the kill came before the folder was created
                )
    for (name, index), report in reports.items():
        known = metadata.topics.get(name)
        is_deleted = report.topic_id in metadata.deleted
        if is_deleted and (known is None or known.topic_id != report.topic_id):
            loss = "nothing is lost: the next start removes it"
            yield Finding(report.folder, f"topic {name} was deleted", loss, why_not="the next start does", mended=True)
        elif known is None or index >= len(known.partitions):
            loss = "the records are there, but no client can reach them"
            why_not = "create the topic, or adopt the folder by `barnabas broker adopt`"
            yield Finding(report.folder, f"the metadata has no partition {index} of topic {name}", loss, why_not=why_not)
        elif report.topic_id is not None and report.topic_id != known.topic_id:
            what = f"its topic id is {report.topic_id}, in the metadata it is {known.topic_id}"
            loss = "the next start takes it for a deleted topic of the same name and removes it"
            yield Finding(report.folder, what, loss, why_not="nothing tells which one is right")


def _fault(path: Path, what: str) -> Finding:
    return Finding(path, what, LOSS, why_not="it is not written anywhere else")
