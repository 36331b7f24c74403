"""The sink of files: writes the records of topics to a folder or an object store, each record in one file.

A file is `TOPICS_DIR/TOPIC/FOLDER/TOPIC+PARTITION+OFFSET.EXTENSION` with the offset of its first record, as Confluent's sinks name them.
Offsets are committed when the files of a window are whole (`windows.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Config, Identity, Sink
from barnabas.connect.errors import BadRecords, ConnectError
from barnabas.connect.plugins.files import sink_config
from barnabas.connect.plugins.files.file_formats import format_of
from barnabas.connect.plugins.files.partitioners import Folders, partitioner_of, times_of
from barnabas.connect.plugins.files.places import opened
from barnabas.connect.plugins.files.windows import File, Gathering, Rules

NEEDED = ("topic", "partition", "offset", "timestamp", "value")
Place = tuple[str, int]


class FileSink(Sink):
    """Writes files, exactly once by their names."""

    families: ClassVar[tuple[str, ...]] = ("store.",)
    config = sink_config.CONFIG

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """The tasks share the partitions."""
        return [{}] * most

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return sink_config.errors(config)

    def open(self, config: Config) -> None:
        self._config = config
        self._storage = opened(*sink_config.place_of(config))
        self._format = format_of(sink_config.FORMATS[sink_config.short(config["format.class"], "Format").lower()], config)
        self._partitioner = partitioner_of(sink_config.short(config["partitioner.class"], "Partitioner"), config)
        self._extractor = sink_config.short(config["timestamp.extractor"], "TimestampExtractor")
        interval_ms = config["rotate.interval.ms"]
        self._rules = Rules(config["flush.size"], interval_ms if interval_ms > 0 else None, config["file.max.bytes"])
        self._gatherings: dict[Place, Gathering] = {}
        self._schedule_s = config["rotate.schedule.interval.ms"] / 1000
        self._due_s = self._next_due_s()

    def write(self, records: pa.Table, identity: Identity) -> None:
        if missing := [each for each in NEEDED if each not in records.column_names]:
            raise ConnectError(f"the transforms leave no column {missing[0]}, which the files need")
        self._refuse_nulls(records)
        parts = [(place, end, self._folders(records, place)) for place, (_, end) in identity.ranges.items()]
        known = sum(some.num_rows for _, _, (some, _, _) in parts)
        if known + records.column("value").null_count != records.num_rows:
            raise ConnectError(
                "the transforms change the topic, the partition or the offset of records, by which files are named"
            )
        for place, end, (some, times_ms, folders) in parts:
            self._gatherings.setdefault(place, Gathering(self._rules)).add(some, times_ms, folders, end)
        self._bound()

    def _refuse_nulls(self, records: pa.Table) -> None:
        nulls = np.flatnonzero(records.column("value").is_null().to_numpy())
        if len(nulls) and self._config["behavior.on.null.values"] == "fail":
            raise BadRecords(
                dict.fromkeys(nulls.tolist(), "it has no value (behavior.on.null.values=ignore leaves such records out)")
            )

    def _folders(self, records: pa.Table, place: Place) -> tuple[pa.Table, Any, Folders]:
        """The records of a topic partition in the order of their offsets, their times, and their folders. Raises BadRecords."""
        topics: Any = records.column("original_topic" if "original_topic" in records.column_names else "topic")
        partitions: Any = records.column("partition")
        wanted: Any = pc.and_(pc.equal(topics, pa.scalar(place[0])), pc.equal(partitions, pa.scalar(place[1], pa.int32())))
        rows = np.flatnonzero(pc.and_(wanted, records.column("value").is_valid()).to_numpy())
        some = records.take(pa.array(rows, pa.int64())).combine_chunks()
        offsets = some.column("offset").to_numpy()
        if (np.diff(offsets) < 0).any():
            order = np.argsort(offsets, kind="stable")
            rows, some = rows[order], some.take(pa.array(order, pa.int64())).combine_chunks()
        try:
            times_ms = self._times_ms(some)
            return some, times_ms, _with_topics(some, self._partitioner(some, times_ms))
        except BadRecords as error:
            raise BadRecords({int(rows[each]): reason for each, reason in error.reasons.items()}) from None

    def _times_ms(self, records: pa.Table) -> Any:
        if self._extractor == "Wallclock":
            return np.full(records.num_rows, time.time_ns() // 1_000_000)
        return times_of(records, self._config["timestamp.field"] if self._extractor == "RecordField" else None)

    def _bound(self) -> None:
        """Keep to the memory that a task may take."""
        while sum(each.size_bytes for each in self._gatherings.values()) > self._config["buffer.memory"]:
            max(self._gatherings.values(), key=lambda each: each.size_bytes).end()

    def pre_commit(self, offsets: Mapping[Place, int]) -> Mapping[Place, int]:
        if time.time() >= self._due_s:
            for each in self._gatherings.values():
                each.end()
            self._due_s = self._next_due_s()
        for place, gathering in self._gatherings.items():
            if gathering.ended:  # one window before each commit
                self._write(place, gathering)
        return {place: self._gatherings[place].durable if place in self._gatherings else end for place, end in offsets.items()}

    def _next_due_s(self) -> float:
        if self._schedule_s <= 0:
            return float("inf")
        due_s: float = (time.time() // self._schedule_s + 1) * self._schedule_s
        return due_s

    def _write(self, place: Place, gathering: Gathering) -> None:
        """Write the files of the first window that has ended; if one fails, all of them come again at the next call."""
        for file in gathering.ended[0].files():
            self._storage.put(self._name(place, file), self._format.file(file.records.column("value").combine_chunks()))
        del gathering.ended[0]

    def _name(self, place: Place, file: File) -> str:
        folder, delimiter = self._config["topics.dir"].strip("/"), self._config["file.delim"]
        topic, _, below = file.folder.partition("/")
        offset = f"{file.start:0{self._config['filename.offset.zero.pad.width']}d}"
        path = f"{topic}/{below}/{delimiter.join((topic, str(place[1]), offset))}{self._format.extension}"
        return f"{folder}/{path}" if folder else path

    def close(self) -> None:
        """Records of windows that are open come again: their offsets are not committed."""


def _with_topics(records: pa.Table, folders: Folders) -> Folders:
    """The folders below those of their topics, which transforms may have renamed."""
    topics: Any = records.column("topic").combine_chunks().dictionary_encode()
    names = [quote(each, safe="") for each in topics.dictionary.to_pylist()]
    count = max(len(folders.names), 1)
    pairs, codes = np.unique(topics.indices.to_numpy() * count + folders.codes, return_inverse=True)
    return Folders([f"{names[pair // count]}/{folders.names[pair % count]}" for pair in pairs.tolist()], codes)
