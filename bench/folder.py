"""Creates a data folder of any size in seconds: the files have their full sizes, but mostly consist of holes.

Owns the files that it writes to the partition folders of a server (barnabas or Kafka).

A sealed segment has a few batches of megabytes each: a header, and a hole instead of the records. Their CRC is valid (for
zeros), and the indexes and snapshots are those that a server would have written. Only the last `tail_bytes` of each log are
ordinary batches: after a kill, the server reads these again if the recovery point is before them.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from bench.wire import BATCH_HEAD, record_batch

HOLE_RECORDS = 1000
HOLES_PER_SEGMENT = 2
BATCH_RECORDS = 4  # of a normal batch; one batch is before the recovery point, so that recovery reads no hole
CRC_FROM = 21
MARKER = ".kafka_cleanshutdown"
EMPTY_SNAPSHOT = struct.pack(">hIi", 1, crc32c(bytes(4)), 0)


@dataclass(frozen=True)
class Shape:
    """The content of each partition."""

    segments: int
    segment_bytes: int
    tail_bytes: int


def fill(log_dir: Path, shape: Shape, topics: Mapping[str, int]) -> int:
    """Fill the folders of `topics` (number of partitions by name) of a cleanly stopped server; returns their size in bytes."""
    builder = _Builder(shape)
    ends = {}
    for topic, partitions in topics.items():
        for index in range(partitions):
            ends[topic, index] = builder.fill(log_dir / f"{topic}-{index}")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        _write_offsets(log_dir / name, {key: end for key, (_, end) in ends.items()})
    return shape.segments * shape.segment_bytes * len(ends)


def as_after_a_kill(log_dir: Path, shape: Shape, topics: Mapping[str, int]) -> None:
    """Change a clean folder to that of a killed server: the tails are after the recovery points."""
    before_tail = shape.segments * HOLES_PER_SEGMENT * HOLE_RECORDS + BATCH_RECORDS
    path = log_dir / "recovery-point-offset-checkpoint"
    _write_offsets(path, {(topic, index): before_tail for topic, count in topics.items() for index in range(count)})
    (log_dir / MARKER).unlink(missing_ok=True)


class _Builder:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._now_ms = int(time.time() * 1000)
        self._batch = record_batch(BATCH_RECORDS, 1000, now_ms=self._now_ms)
        self._heads: dict[int, bytes] = {}

    def fill(self, folder: Path) -> tuple[int, int]:
        """Fill a partition's folder; returns the offset where the tail begins, and the log end offset."""
        shape = self._shape
        for name in os.listdir(folder):
            if name.endswith((".log", "index", ".snapshot")):
                (folder / name).unlink()
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        base = 0
        for number in range(shape.segments):
            is_last = number == shape.segments - 1
            tail = shape.tail_bytes // len(self._batch) * len(self._batch) if is_last else 0
            size = (shape.segment_bytes - tail) // HOLES_PER_SEGMENT
            end = self._segment(folder, base, [size] * HOLES_PER_SEGMENT, tail // len(self._batch))
            if not is_last:
                base = end
                (folder / f"{end:020d}.snapshot").write_bytes(EMPTY_SNAPSHOT)
        (folder / f"{end:020d}.snapshot").write_bytes(EMPTY_SNAPSHOT)
        return base + HOLES_PER_SEGMENT * HOLE_RECORDS, end

    def _segment(self, folder: Path, base: int, holes: list[int], ordinary: int) -> int:
        offset, position = base, 0
        index = bytearray()
        with (folder / f"{base:020d}.log").open("wb") as file:
            for size in holes:
                if position:
                    index += struct.pack(">ii", offset + HOLE_RECORDS - 1 - base, position)
                file.seek(position)
                file.write(struct.pack(">q", offset) + self._head(size))
                offset, position = offset + HOLE_RECORDS, position + size
            file.truncate(position)
            file.seek(position)
            for _ in range(ordinary):
                index += struct.pack(">ii", offset + BATCH_RECORDS - 1 - base, position)
                file.write(struct.pack(">q", offset) + self._batch[8:12] + bytes(4) + self._batch[16:])
                offset, position = offset + BATCH_RECORDS, position + len(self._batch)
        (folder / f"{base:020d}.index").write_bytes(index)
        (folder / f"{base:020d}.timeindex").write_bytes(struct.pack(">qi", self._now_ms, HOLE_RECORDS - 1))
        return offset

    def _head(self, size: int) -> bytes:
        """The bytes of a batch header after its base offset; the batch has `size` bytes, and its records are a hole in the
        file."""
        if size not in self._heads:
            stamp = self._now_ms
            fields = (-1, -1, -1, HOLE_RECORDS)
            head = bytearray(BATCH_HEAD.pack(0, size - 12, 0, 2, 0, 0, HOLE_RECORDS - 1, stamp, stamp, *fields))
            crc = crc32c(bytes(size - len(head)), crc32c(head[CRC_FROM:]))
            struct.pack_into(">I", head, 17, crc)
            self._heads[size] = bytes(head[8:])
        return self._heads[size]


def _write_offsets(path: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    lines = [f"{topic} {index} {offset}\n" for (topic, index), offset in offsets.items()]
    path.write_text(f"0\n{len(lines)}\n" + "".join(lines))
