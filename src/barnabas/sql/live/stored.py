"""The rows of live tables in files, so that a server that starts again reads from the topics what came since, and not everything.

Rules
  1. A file has the rows of one table with the positions behind them, and is written whole beside the old one before it takes its place.
     A server that is killed while it writes leaves an unfinished file, which the next one overwrites.
  2. A checksum ends the file, because Arrow has none, and a wrong length in a record would let it read outside of the file. The table of
     a file that is damaged, or cannot be read, is read from its topic.
  3. A file counts for AGE_S after the last look at the topic, or for less if `delete.retention.ms` is short. After that time, compaction
     removes the mark of a deletion, and rows that never meet the mark would keep what was deleted.
  4. A caller sees rows from a file only after a look at the topic with the caller's own rights, as with all live rows.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa

from barnabas import limits
from barnabas.columnar.decode import SCHEMA
from barnabas.protocol.records.crc import crc32c
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.tables.formats import ColumnFormat

logger = logging.getLogger(__name__)
AGE_S, SHARE_OF_AGE = 20 * 3600.0, 0.8  # below the 24 hours that deletions stay by default; the same for other times
LEAST_ROWS = 20_000  # fewer are read from the topic as fast
STATE, SUFFIX, UNFINISHED = b"barnabas.live", ".rows", ".unfinished"
CHECKSUM = struct.Struct("<I")  # CRC-32C of all before it
Name = tuple[str, str, str]  # a topic, its id, the format of its keys


class _State(msgspec.Struct, frozen=True):
    """The state of the rows, beside the records: `partitions` are number, position, start of the log, and batches of each."""

    name: Name
    seen_at_s: float
    is_canonical: bool
    partitions: list[tuple[int, int, int, int]]


_DECODER = msgspec.json.Decoder(_State)  # made at import, because threads must not make it at once


class StoredRows:
    """The files in one folder. Errors of the folder are told in the log; statements go on without it.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock

    def save(self, name: Name, rows: LiveRows) -> None:
        """Write the rows, unless they are few or have not been looked at for AGE_S. Nobody changes them meanwhile."""
        if sum(len(each.rows) for each in rows.partitions.values()) < LEAST_ROWS or self._is_old(rows.seen_at_s, AGE_S):
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(name, rows)
            self._remove_others()
        except (OSError, pa.ArrowException) as error:
            logger.warning("event=sql-rows-not-stored topic=%s error=%r", name[0], str(error))

    def _write(self, name: Name, rows: LiveRows) -> None:
        batches = {number: each.records(number) for number, each in rows.partitions.items() if each.rows}
        state = _State(
            name, rows.seen_at_s, rows.is_canonical,
            [(number, each.position, each.log_start, int(number in batches)) for number, each in rows.partitions.items()],
        )  # fmt: skip
        schema = SCHEMA.with_metadata({STATE: msgspec.json.encode(state)})
        path = self._path(name)
        unfinished = path.with_name(path.name + UNFINISHED)
        try:
            with open(unfinished, "wb", opener=_only_for_owner) as file:
                with pa.ipc.new_file(file, schema) as writer:
                    for batch in batches.values():
                        writer.write_batch(batch)
                file.flush()
                with pa.memory_map(str(unfinished)) as written:
                    file.write(CHECKSUM.pack(crc32c(written.read_buffer())))
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise

    def _remove_others(self) -> None:
        """Remove the oldest files, if they are many."""
        files = sorted(self._folder.glob(f"*{SUFFIX}*"), key=lambda each: each.stat().st_mtime, reverse=True)
        for each in files[limits.MAX_SQL_LIVE_TABLES :]:
            each.unlink(missing_ok=True)

    def has(self, name: Name) -> bool:
        """Whether a table has a file."""
        return self._path(name).exists()

    def load(self, name: Name, key: ColumnFormat, deletions_stay_s: float) -> LiveRows | None:
        """The rows of a table as they were stored; None without a file that counts.

        Args:
            deletions_stay_s: `delete.retention.ms` of the topic, in seconds.
        """
        path, most_s = self._path(name), min(AGE_S, deletions_stay_s * SHARE_OF_AGE)
        began = time.monotonic()
        try:
            with pa.memory_map(str(path)) as source, pa.ipc.open_file(_checked(source.read_buffer())) as reader:
                state = _DECODER.decode((reader.schema.metadata or {}).get(STATE, b""))
                if state.name != name or self._is_old(state.seen_at_s, most_s) or not reader.schema.equals(SCHEMA):
                    return None
                rows = _rows_of(reader, state, key)
        except (OSError, pa.ArrowException, msgspec.MsgspecError) as error:
            logger.warning("event=sql-rows-not-loaded topic=%s error=%r", name[0], str(error))
            return None
        logger.info("event=sql-rows-loaded topic=%s seconds=%.2f", name[0], time.monotonic() - began)
        return rows

    def _is_old(self, seen_at_s: float, most_s: float) -> bool:
        return not 0 <= self._clock() - seen_at_s < most_s

    def _path(self, name: Name) -> Path:
        return self._folder / (hashlib.sha256(msgspec.json.encode(name)).hexdigest()[:32] + SUFFIX)


def _checked(content: pa.Buffer) -> pa.Buffer:
    """The content of a file without its checksum. Raises ArrowInvalid."""
    size = content.size - CHECKSUM.size
    if size < 0 or CHECKSUM.unpack(content.slice(size))[0] != crc32c(content.slice(0, size)):
        raise pa.ArrowInvalid("the checksum is wrong")
    return content.slice(0, size)


def _only_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _rows_of(reader: pa.RecordBatchFileReader, state: _State, key: ColumnFormat) -> LiveRows:
    rows, at = LiveRows(key), 0
    for number, position, log_start, batches in state.partitions:
        part = rows.partitions[number] = LivePartition(position)
        part.log_start = log_start
        for place in range(at, at + batches):
            rows.restore(number, reader.get_batch(place))
        at += batches
    rows.is_canonical, rows.seen_at_s = state.is_canonical, state.seen_at_s
    return rows
