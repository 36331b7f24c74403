"""The seam between tables and the log: a source reads one topic, over the wire or from a data folder.

`tests/tables/sources.py` is the conformance suite of every source.

Rules
  1. A snapshot holds committed offsets only: each partition ends at its last stable offset.
  2. A source may be read by several scans at the same time, also from several threads.
  3. A snapshot is of one topic: a later topic of the same name never gives records to it.
  4. Offsets that compaction or retention removed after the snapshot was taken have no records; this is no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from barnabas.protocol.base_message import Buffer


class Bounds(NamedTuple):
    """The offsets of a partition from `start` up to, and without, `end`."""

    start: int
    end: int


def merged(ranges: Iterable[Bounds], most: int = 0) -> list[Bounds]:
    """The offsets of all ranges, in order and none twice.

    Args:
        most: offsets between two ranges that may become part of them.
    """
    found: list[Bounds] = []
    for each in sorted(ranges):
        if found and each.start <= found[-1].end + most:
            found[-1] = Bounds(found[-1].start, max(found[-1].end, each.end))
        else:
            found.append(each)
    return found


class Snapshot(Struct, frozen=True):
    """The offsets that a reader sees, all asked for at one time.

    Args:
        topic_id: as hexadecimal digits; empty if the cluster has none. It tells a topic from a later one of the same name.
        partitions: the bounds of each.
        epochs: the leader epoch of the last record of each partition, or a later one; only of partitions whose epoch the source knows. An
            index needs them.
    """

    topic: str
    topic_id: str
    partitions: Mapping[int, Bounds]
    epochs: Mapping[int, int] = {}


class Chunk(NamedTuple):
    """Whole record batches as they are in the log, in the order of their offsets.

    Args:
        records: the bytes; the last batch may be incomplete, and the first may begin before the offset asked for. Valid until the
            next chunk is taken.
        aborted: producer id and first offset of the aborted transactions among them.
    """

    records: Buffer
    aborted: tuple[tuple[int, int], ...]


class TopicSource(Protocol):
    """Reads one topic."""

    @property
    def topic(self) -> str:
        """Its name."""

    def snapshot(self) -> Snapshot:
        """The offsets at this moment. Raises TableError if there is no such topic."""

    def offsets_from(self, snapshot: Snapshot, timestamp_ms: int) -> Mapping[int, int]:
        """For each partition of the snapshot, the first offset with this timestamp or a later one; its end if there is none."""

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        """The batches of a partition of the snapshot with records in [start, end).

        Raises:
            TableError: the partition cannot be read; also if the topic was deleted, or deleted and made again.
            ClientError, CorruptLog: the cluster or the disk gave no answer.
        """

    def end_of_epoch(self, partition: int, epoch: int) -> int:
        """The offset behind the last record of a leader epoch, or of the last earlier one that the log has; -1 if it has none.

        It is asked of sources whose snapshots have epochs."""

    def close(self) -> None:
        """Release connections and files; safe to call twice."""
