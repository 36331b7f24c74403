"""Reads a data folder without a broker: the contents of its files, and whether they are consistent.

Owns nothing and changes nothing: files are opened for reading, so it may run beside a broker. In this case the active segment
may end in the middle of a batch that the broker is writing; the last problem of a folder says so.

A folder that does not parse is reported and does not stop the work: every function returns the parts that it could read, and
sentences about the others.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from barnabas.cli.errors import BadInput
from barnabas.errors import BarnabasError, CorruptLog
from barnabas.protocol.records.batch_header import (
    CODEC_NAMES,
    CRC_START,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    read_header,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.storage import checkpoints
from barnabas.storage.files import OsFiles
from barnabas.storage.snapshot import decode_snapshot

PARTITION_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
SEGMENT_FILE = re.compile(r"\d{20}\.log")
OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
CHECKPOINTS = {
    "recovery_point": checkpoints.RECOVERY_POINTS,
    "log_start": checkpoints.LOG_START_OFFSETS,
    "high_watermark": checkpoints.HIGH_WATERMARKS,
}
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


class Batch(NamedTuple):
    """A batch and its position in its segment; `crc_matches` is False for a damaged batch."""

    position: int
    header: BatchHeader
    crc_matches: bool


class Segment(Struct):
    """One `.log` file with its indexes and snapshot."""

    path: Path
    base_offset: int
    size_bytes: int
    batches: list[Batch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        headers = [batch.header for batch in self.batches]
        return {
            "segment": self.path.name,
            "bytes": self.size_bytes,
            "batches": len(headers),
            "records": sum(h.records_count for h in headers),
            "first_offset": headers[0].base_offset if headers else None,
            "last_offset": headers[-1].last_offset if headers else None,
            "first_timestamp": headers[0].base_timestamp if headers else None,
            "max_timestamp": max((h.max_timestamp for h in headers), default=None),
            "codecs": sorted({codec_name(h) for h in headers}),
            "index_entries": count_entries(self.path.with_suffix(".index"), OFFSET_ENTRY),
            "time_index_entries": count_entries(self.path.with_suffix(".timeindex"), TIME_ENTRY),
            "problems": self.problems,
        }


def codec_name(header: BatchHeader) -> str:
    return CODEC_NAMES[header.compression] if header.compression < len(CODEC_NAMES) else f"codec {header.compression}"


@contextmanager
def mapped(path: Path) -> Iterator[memoryview]:
    """The bytes of a file, as a memory map: they are read only when used."""
    with path.open("rb") as file:
        if not path.stat().st_size:  # an empty file cannot be mapped
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            yield view


def read_segment(path: Path, *, check_crc: bool = True) -> Segment:
    """Read a `.log` file batch by batch, and compare its indexes with it."""
    if not SEGMENT_FILE.fullmatch(path.name):
        raise BadInput(f"{path} is not the .log file of a segment")
    segment = Segment(path, int(path.stem), path.stat().st_size)
    with mapped(path) as data:
        _walk(data, segment, check_crc)
    by_position = {batch.position: batch.header for batch in segment.batches}
    segment.problems += check_offset_index(path.with_suffix(".index"), segment.base_offset, by_position)
    segment.problems += check_time_index(path.with_suffix(".timeindex"), segment)
    return segment


def _walk(data: memoryview, segment: Segment, check_crc: bool) -> None:
    position, next_offset = 0, segment.base_offset
    while position < len(data):
        left = len(data) - position
        header = read_header(data, position) if left >= HEADER_SIZE else None
        if header is not None and header.magic != MAGIC:
            segment.problems.append(f"byte {position}: a batch of format {header.magic}; the rest was not read")
            return
        if header is None or header.size > left or header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD:
            segment.problems.append(f"byte {position}: the last {left} bytes are not a whole batch")
            return
        matches = not check_crc or crc32c(data[position + CRC_START : position + header.size]) == header.crc
        if not matches:
            segment.problems.append(f"byte {position}: the CRC of the batch at offset {header.base_offset} does not match")
        if header.base_offset < next_offset:
            segment.problems.append(f"byte {position}: offset {header.base_offset} where {next_offset} or more is expected")
        next_offset = header.next_offset
        segment.batches.append(Batch(position, header, matches))
        position += header.size


def read_entries(path: Path, layout: struct.Struct) -> list[tuple[int, int]]:
    """The entries of an index file; zeros after the last entry are space that Kafka preallocates."""
    data = path.read_bytes() if path.exists() else b""
    entries: list[tuple[int, int]] = []
    for key, value in layout.iter_unpack(data[: len(data) - len(data) % layout.size]):
        if (entries and (key, value) == (0, 0)) or (not entries and not any(data[: layout.size * 2])):
            break
        entries.append((key, value))
    return entries


def count_entries(path: Path, layout: struct.Struct) -> int:
    return len(read_entries(path, layout))


def check_offset_index(path: Path, base_offset: int, by_position: dict[int, BatchHeader]) -> list[str]:
    """Checks that each entry names the position of a batch and that batch's last offset."""
    problems = []
    previous = (-1, -1)
    for relative, position in read_entries(path, OFFSET_ENTRY):
        header = by_position.get(position)
        if header is None:
            problems.append(f"{path.name}: no batch begins at byte {position}")
        elif header.last_offset != base_offset + relative:
            problems.append(
                f"{path.name}: offset {base_offset + relative} at byte {position}, where the batch ends with {header.last_offset}"
            )
        if relative <= previous[0] or position <= previous[1]:
            problems.append(f"{path.name}: the entry for offset {base_offset + relative} is out of order")
        previous = (relative, position)
    return problems


def check_time_index(path: Path, segment: Segment) -> list[str]:
    """Checks that no batch up to an entry's offset has a later timestamp than the entry."""
    problems = []
    previous = (-1, -1)
    latest = iter(_latest_timestamps(segment))
    seen_offset, seen_timestamp = -1, -1
    for timestamp, relative in read_entries(path, TIME_ENTRY):
        offset = segment.base_offset + relative
        while seen_offset < offset and (step := next(latest, None)) is not None:
            seen_offset, seen_timestamp = step
        if seen_timestamp > timestamp and seen_offset <= offset:
            problems.append(f"{path.name}: {timestamp} at offset {offset}, though {seen_timestamp} comes before")
        if timestamp < previous[0] or relative < previous[1]:
            problems.append(f"{path.name}: the entry for offset {offset} is out of order")
        previous = (timestamp, relative)
    return problems


def _latest_timestamps(segment: Segment) -> Iterator[tuple[int, int]]:
    """For each batch its last offset, and the latest timestamp up to there."""
    latest = -1
    for batch in segment.batches:
        latest = max(latest, batch.header.max_timestamp)
        yield batch.header.last_offset, latest


class PartitionFolder(Struct):
    """A `<topic>-<partition>` folder."""

    path: Path
    topic: str
    partition: int

    def segment_paths(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if SEGMENT_FILE.fullmatch(path.name))

    def describe(self, *, check_crc: bool = True) -> dict[str, Any]:
        """All facts about the partition as plain values, with `problems`."""
        problems: list[str] = []
        segments = [read_segment(path, check_crc=check_crc) for path in self.segment_paths()]
        for earlier, later in pairwise(segments):
            if earlier.batches and earlier.batches[-1].header.next_offset > later.base_offset:
                problems.append(f"{later.path.name} begins before {earlier.path.name} ends")
        if not segments:
            problems.append("there is no segment")
        topic_id = _attempt(
            problems, lambda: checkpoints.read_partition_metadata(OsFiles(), self.path / checkpoints.PARTITION_METADATA)
        )
        epochs = _attempt(problems, lambda: checkpoints.read_leader_epochs(OsFiles(), self.path / checkpoints.LEADER_EPOCHS))
        snapshots = [
            {"snapshot": path.name, "producers": _attempt(problems, lambda path=path: read_snapshot(path)) or []}
            for path in sorted(self.path.glob("*.snapshot"))
        ]
        return {
            "topic": self.topic,
            "partition": self.partition,
            "topic_id": checkpoints.encode_uuid(topic_id) if topic_id is not None else None,
            "bytes": sum(segment.size_bytes for segment in segments),
            "start_offset": segments[0].base_offset if segments else None,
            "end_offset": end_offset_of(segments),
            "leader_epochs": [{"epoch": epoch, "start_offset": offset} for epoch, offset in epochs or []],
            "segments": [segment.summary() for segment in segments],
            "snapshots": snapshots,
            "problems": problems + [f"{s.path.name}, {p}" for s in segments for p in s.problems],
        }


def end_offset_of(segments: list[Segment]) -> int | None:
    if not segments:
        return None
    return segments[-1].batches[-1].header.next_offset if segments[-1].batches else segments[-1].base_offset


def read_snapshot(path: Path) -> list[dict[str, Any]]:
    """The producers in a `.snapshot` file; raises CorruptLog."""
    return [
        {
            "producer_id": entry.producer_id,
            "epoch": entry.epoch,
            "last_sequence": entry.batches[-1].last_sequence if entry.batches else None,
            "last_offset": entry.batches[-1].last_offset if entry.batches else None,
            "transaction_first_offset": entry.transaction_first_offset if entry.transaction_first_offset >= 0 else None,
        }
        for entry in decode_snapshot(path.read_bytes(), path)
    ]


def open_partition_folder(path: Path) -> PartitionFolder | None:
    """The partition in a folder; None if the folder's name is not that of a partition."""
    match = PARTITION_FOLDER.fullmatch(path.resolve().name)
    if match is None or not path.is_dir():
        return None
    return PartitionFolder(path, match["topic"], int(match["partition"]))


def is_data_folder(path: Path) -> bool:
    return (path / checkpoints.META_PROPERTIES).exists() or any(open_partition_folder(child) for child in path.iterdir())


def describe_data_folder(path: Path, *, check_crc: bool = False) -> dict[str, Any]:
    """A data folder as plain values: its owner, its checkpoints, its partitions and its problems."""
    problems: list[str] = []
    properties = _attempt(problems, lambda: checkpoints.read_properties(OsFiles(), path / checkpoints.META_PROPERTIES)) or {}
    offsets = {
        name: _attempt(problems, lambda file=file: checkpoints.read_offsets(OsFiles(), path / file)) or {}
        for name, file in CHECKPOINTS.items()
    }
    partitions = []
    for folder in filter(None, map(open_partition_folder, sorted(path.iterdir()))):
        described = folder.describe(check_crc=check_crc)
        described |= {name: offsets[name].get((folder.topic, folder.partition)) for name in CHECKPOINTS}
        partitions.append(described)
        problems += [f"{folder.path.name}: {problem}" for problem in described["problems"]]
    return {
        "path": str(path),
        "meta": properties,
        "clean_shutdown": (path / CLEAN_SHUTDOWN).exists(),
        "pending_deletes": sorted(child.name for child in path.iterdir() if child.name.endswith("-delete")),
        "partitions": partitions,
        "problems": problems,
    }


def _attempt(problems: list[str], read: Any) -> Any:
    try:
        return read()
    except CorruptLog as error:
        problems.append(f"{Path(error.path).name}: {error.reason}")
    except (BarnabasError, OSError, UnicodeDecodeError) as error:
        problems.append(str(error))
    return None
