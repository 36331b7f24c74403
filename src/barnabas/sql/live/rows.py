"""The newest record of each key of a topic, up to some offsets. No I/O.

Rules
  1. A key belongs to its partition, as in compaction. Records without a key have no row, and a null value deletes the key's row.
  2. The bytes of keys and values are kept; a reader decodes those that it needs.
  3. `is_canonical` says whether the table would write each key with the same bytes. Only then do the bytes of a key find its row: another
     writer may have written the number 1 as `1.0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.columnar.decode import SCHEMA
from barnabas.sql.live.few_records import Few, are_canonical
from barnabas.tables.formats import ColumnFormat

ROW_BYTES = 250  # of memory for a row, besides its key and value
MILLISECOND, CREATE_TIME = 1_000, 0


class Row(NamedTuple):
    """A record. The timestamp is in microseconds since 1970."""

    offset: int
    timestamp: int
    value: bytes


class LivePartition:
    """The rows of one partition.

    Args:
        position: the first offset that was not taken yet.
    """

    def __init__(self, position: int = 0) -> None:
        self.position, self.log_start = position, 0
        self.rows: dict[bytes, Row] = {}
        self.size = 0

    def take(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None], offsets: Sequence[int], times: Sequence[int]
    ) -> None:
        """Records in the order of their offsets."""
        rows = self.rows
        for key, value, offset, time in zip(keys, values, offsets, times, strict=True):
            if key is None:
                continue
            before = rows.pop(key, None)
            if before is not None:
                self.size -= len(key) + len(before.value) + ROW_BYTES
            if value is not None:
                rows[key] = Row(offset, time, value)
                self.size += len(key) + len(value) + ROW_BYTES

    def drop_before(self, log_start: int) -> None:
        """Forget the rows whose records were deleted."""
        if log_start <= self.log_start:
            return
        self.log_start = log_start
        for key in [key for key, row in self.rows.items() if row.offset < log_start]:
            self.size -= len(key) + len(self.rows.pop(key).value) + ROW_BYTES


class LiveRows:
    """The rows of a topic.

    Args:
        key: the format of its keys.
    """

    def __init__(self, key: ColumnFormat) -> None:
        self._key = key
        self.partitions: dict[int, LivePartition] = {}
        self.is_canonical = True
        self.changes = 0

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return sum(each.size for each in self.partitions.values())

    def take(self, partition: int, records: pa.RecordBatch) -> None:
        """Records of one partition, as `columnar.decode` has them."""
        keys = records.column("key")
        self.changes += 1
        self.is_canonical = self.is_canonical and _is_canonical(self._key, keys)
        offsets: list[Any] = records.column("offset").to_pylist()
        times: list[Any] = records.column("timestamp").cast(pa.int64()).to_pylist()
        self.partitions[partition].take(keys.to_pylist(), records.column("value").to_pylist(), offsets, times)

    def take_few(self, partition: int, few: Few) -> None:
        """The same, of few records."""
        if not few.keys:
            return
        self.changes += 1
        if self.is_canonical:
            known = are_canonical(self._key, few.keys)
            self.is_canonical = _is_canonical(self._key, pa.array(few.keys, pa.binary())) if known is None else known
        self.partitions[partition].take(few.keys, few.values, few.offsets, few.times)

    def of_key(self, key: bytes) -> pa.RecordBatch:
        """The records of one key."""
        found = [(partition, key, each.rows[key]) for partition, each in self.partitions.items() if key in each.rows]
        return records_of(found)

    def all(self) -> pa.RecordBatch:
        """All records, partition by partition."""
        parts = sorted(self.partitions.items())
        return records_of([(partition, key, row) for partition, each in parts for key, row in each.rows.items()])

    def having(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of the keys that have a row."""
        return {key for key in keys if any(key in each.rows for each in self.partitions.values())}


def records_of(rows: Iterable[tuple[int, bytes, Row]]) -> pa.RecordBatch:
    """Rows as records; each is a partition, a key and a row."""
    found = list(rows)
    columns: list[Any] = [
        pa.array([key for _, key, _ in found], pa.binary()),
        pa.array([row.value for _, _, row in found], pa.binary()),
        pa.nulls(len(found), pa.string()),
        pa.array([partition for partition, _, _ in found], pa.int32()),
        pa.array([row.offset for _, _, row in found], pa.int64()),
        pa.array([row.timestamp for _, _, row in found], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        pa.array([CREATE_TIME] * len(found), pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _is_canonical(layout: ColumnFormat, keys: Any) -> bool:
    """Whether the format writes these keys with the same bytes."""
    names = [each.name for each in layout.fields]
    decoded = layout.decode(keys, None, names)
    if decoded.reasons is not None and decoded.reasons.null_count < len(decoded.reasons):
        return False
    written = layout.encode(pa.RecordBatch.from_arrays(list(decoded.columns), schema=pa.schema(list(layout.fields))))
    return bool(written.equals(keys))
