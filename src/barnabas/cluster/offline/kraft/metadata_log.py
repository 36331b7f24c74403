"""Reads Kafka's metadata log, as far as an adoption needs it.

Owns the records of `__cluster_metadata-0` about topics, leaders and leader epochs of partitions, settings, given-out producer
ids, and declarations about principals (`declared.py`). It replays them from the newest snapshot and the log after it. It
counts other records by kind, so that the user sees the parts that are not adopted.

A record's value is: frame version 1, kind and version as unsigned varints, then the fields in the flexible encoding (KIP-482),
tagged fields last. Source: Kafka's record schemas (metadata/src/main/resources/common/metadata), KIP-500, KIP-631.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from msgspec import Struct, field

from barnabas.cluster.offline.kraft.declared import KINDS, KraftDeclared
from barnabas.cluster.offline.kraft.reader import Reader
from barnabas.errors import CorruptLog
from barnabas.protocol.records.record import Record
from barnabas.storage.check.batches import SegmentWalk
from barnabas.storage.files import Files
from barnabas.storage.segment import LOG_SUFFIX

FOLDER = "__cluster_metadata-0"
SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
FRAME_VERSION = 1
TOPIC, PARTITION, CONFIG, PARTITION_CHANGE, REMOVE_TOPIC, PRODUCER_IDS = 2, 3, 4, 5, 9, 15
LEADER_TAG = 1  # "no leader" in a partition change
NO_LEADER_CHANGE = -2
# Other record kinds that a node with both roles writes; a single broker does not need them.
WITHOUT_LOSS = {
    0: "registrations",
    1: "unregistrations",
    7: "fences",
    8: "unfences",
    12: "feature levels",
    17: "registration changes",
    20: "no-ops",
    21: "feature level of a zk migration",
    23: "transaction begins",
    24: "transaction ends",
    25: "transaction aborts",
    27: "controller registrations",
    28: "replicas that may become leaders",
}
INT32 = struct.Struct(">i")


class KraftPartition(Struct):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]


class KraftMetadata(Struct):
    """The content of the metadata log."""

    names: dict[UUID, str] = field(default_factory=dict)
    partitions: dict[UUID, dict[int, KraftPartition]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)  # (resource type, name) -> settings
    next_producer_id: int = 0
    declared: KraftDeclared = field(default_factory=KraftDeclared)
    left_out: Counter[str] = field(default_factory=Counter)  # kinds of records that are not adopted

    def replay(self, value: bytes) -> None:
        """Replay one record.

        Raises:
            ValueError: `value` is not a metadata record.
        """
        reader = Reader(value)
        frame, kind, version = reader.unsigned(), reader.unsigned(), reader.unsigned()
        if frame != FRAME_VERSION:
            raise ValueError(f"frame version {frame}")
        if kind == TOPIC:
            name, topic_id = reader.text() or "", reader.uuid()
            self.names[topic_id] = name
        elif kind == PARTITION:
            index, topic_id = reader.int32(), reader.uuid()
            replicas = reader.int32s()
            for _ in range(3):  # in-sync, removing and adding replicas
                reader.int32s()
            leader, leader_epoch = reader.int32(), reader.int32()
            self.partitions.setdefault(topic_id, {})[index] = KraftPartition(leader, leader_epoch, replicas)
        elif kind == PARTITION_CHANGE:
            self._change(reader)
        elif kind == CONFIG:
            resource, key, setting = (reader.int8(), reader.text() or ""), reader.text() or "", reader.text()
            settings = self.configs.setdefault(resource, {})
            if setting is None:
                settings.pop(key, None)
            else:
                settings[key] = setting
        elif kind == REMOVE_TOPIC:
            topic_id = reader.uuid()
            name = self.names.pop(topic_id, "")
            self.partitions.pop(topic_id, None)
            self.configs.pop((2, name), None)
        elif kind == PRODUCER_IDS:
            reader.int32()
            reader.int64()
            self.next_producer_id = max(self.next_producer_id, reader.int64())
        elif kind in KINDS and version == 0:
            self.declared.replay(kind, reader)
        elif kind not in WITHOUT_LOSS:
            self.left_out[f"records of kind {kind} version {version}"] += 1

    def _change(self, reader: Reader) -> None:
        index, topic_id = reader.int32(), reader.uuid()
        partition = self.partitions.get(topic_id, {}).get(index)
        leader = reader.tagged().get(LEADER_TAG)
        if partition is not None and leader is not None:
            (partition.leader,) = INT32.unpack(leader)
            if partition.leader != NO_LEADER_CHANGE:
                partition.leader_epoch += 1


def read_metadata_log(files: Files, folder: Path) -> KraftMetadata:
    """Replay the metadata log in `folder`.

    Raises:
        CorruptLog: a record or a batch in it is damaged.
        OSError: the log cannot be read.
    """
    found = KraftMetadata()
    names = files.list_directory(folder)
    snapshots = [name for name in names if SNAPSHOT.fullmatch(name)]
    start = 0
    if snapshots:
        newest = max(snapshots)
        start = int(newest[:20])
        for record in _records(files, folder / newest, 0):
            _replay(found, folder / newest, record)
    for name in names:
        if name.endswith(LOG_SUFFIX):
            for record in _records(files, folder / name, int(name.removesuffix(LOG_SUFFIX))):
                if record.offset >= start:
                    _replay(found, folder / name, record)
    return found


def _replay(found: KraftMetadata, path: Path, record: Record) -> None:
    try:
        found.replay(record.value or b"")
    except (ValueError, struct.error) as error:
        raise CorruptLog(str(path), 0, f"the record at offset {record.offset} is no metadata record: {error}") from error


def _records(files: Files, path: Path, base_offset: int) -> Iterator[Record]:
    """The records of all data batches, up to a torn tail that a crash may leave."""
    walk = SegmentWalk(files, path, base_offset, None, 0)
    for batch in walk:
        if batch.whole and not batch.header.is_control:
            yield from walk.records_of(batch)
    for finding in walk.findings:
        if finding.repair is None:
            raise CorruptLog(str(path), finding.position or 0, finding.what)
