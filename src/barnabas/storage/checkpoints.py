"""The small text files of a log directory and of a partition's folder.

Owns their formats, which are Kafka's:

    recovery-point-offset-checkpoint, log-start-offset-checkpoint, replication-offset-checkpoint: a version line "0", the number
        of entries, then `topic partition offset` a line
    leader-epoch-checkpoint: the same with `epoch start-offset`
    partition.metadata: "version: 0" and "topic_id: " with the id in URL-safe base64 without padding
    meta.properties: a Java properties file

Rules
  1. The files are replaced as a whole, so a reader sees either the old text or the new one.
  2. A file that does not parse raises `CorruptLog` and never counts as empty: the caller decides how to rebuild it. A file
     without its last line break was cut off, perhaps in the middle of a number.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

from barnabas.errors import CorruptLog
from barnabas.storage.files import Files

VERSION = "0"

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANED_OFFSETS)
WITHOUT = {  # consequence for logs without an entry in the checkpoint file
    RECOVERY_POINTS: "nothing is lost: after a crash every segment is checked",
    LOG_START_OFFSETS: "logs begin with their first segment: records in it that were deleted can be read again",
    HIGH_WATERMARKS: "nothing is lost: replicas find out anew what is committed",
    CLEANED_OFFSETS: "nothing is lost: compacted logs are looked at from their start once more",
}
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"

TopicPartition = tuple[str, int]


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _encode_lines((f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()), len(offsets))


def read_offsets(files: Files, path: Path) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint; none if there is no such file."""
    offsets: dict[TopicPartition, int] = {}
    for line in _read_lines(files, path):
        words = line.split()
        if len(words) != 3:
            raise _corrupt(path, line)
        offsets[words[0], _number(path, words[1])] = _number(path, words[2])
    return offsets


def write_leader_epochs(files: Files, path: Path, entries: list[tuple[int, int]]) -> None:
    files.replace_file(path, encode_leader_epochs(entries))


def encode_leader_epochs(entries: list[tuple[int, int]]) -> bytes:
    return _encode_lines((f"{epoch} {offset}" for epoch, offset in entries), len(entries))


def read_leader_epochs(files: Files, path: Path) -> list[tuple[int, int]]:
    entries = []
    for line in _read_lines(files, path):
        words = line.split()
        if len(words) != 2:
            raise _corrupt(path, line)
        entries.append((_number(path, words[0]), _number(path, words[1])))
    return entries


def write_partition_metadata(files: Files, path: Path, topic_id: UUID) -> None:
    files.replace_file(path, encode_partition_metadata(topic_id), sync=False)


def encode_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: {VERSION}\ntopic_id: {encode_uuid(topic_id)}".encode()


def read_partition_metadata(files: Files, path: Path) -> UUID | None:
    """The topic's id; None if there is no such file."""
    if not files.exists(path):
        return None
    for line in _text(files, path).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "topic_id":
            try:
                return decode_uuid(value.strip())
            except (ValueError, binascii.Error):
                raise _corrupt(path, line) from None
    raise _corrupt(path, "no topic_id")


def write_properties(files: Files, path: Path, properties: Mapping[str, str]) -> None:
    lines = [f"{name}={value}\n" for name, value in properties.items()]
    files.replace_file(path, "".join(lines).encode())


def read_properties(files: Files, path: Path) -> dict[str, str]:
    """Names and values; none if there is no such file. A last line without a line break was cut off and is ignored."""
    if not files.exists(path):
        return {}
    lines = [line.strip() for line in _text(files, path).splitlines(keepends=True) if line.endswith("\n")]
    pairs = (line.partition("=") for line in lines if line and not line.startswith(("#", "!")))
    return {name.strip(): value.strip().replace("\\", "") for name, _, value in pairs}


def encode_uuid(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _encode_lines(lines: Iterable[str], count: int) -> bytes:
    return ("\n".join([VERSION, str(count), *lines]) + "\n").encode()


def _read_lines(files: Files, path: Path) -> list[str]:
    if not files.exists(path):
        return []
    text = _text(files, path)
    lines = text.splitlines()
    if len(lines) < 2 or lines[0].strip() != VERSION:
        raise _corrupt(path, lines[0] if lines else "an empty file")
    if not text.endswith("\n"):
        raise _corrupt(path, lines[-1])
    count = _number(path, lines[1])
    if count != len(lines) - 2:
        raise _corrupt(path, f"{count} entries announced, {len(lines) - 2} found")
    return lines[2:]


def _text(files: Files, path: Path) -> str:
    """The text of the file; invalid bytes become characters that no line contains."""
    return files.read_file(path).decode(errors="replace")


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _corrupt(path, text) from None


def _corrupt(path: Path, what: str) -> CorruptLog:
    return CorruptLog(str(path), 0, f"not a line of it: {what!r}")
