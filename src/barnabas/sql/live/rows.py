"""The newest record of each key of a topic, up to some offsets. No I/O.

Rules
  1. A key belongs to its partition, as in compaction. Records without a key have no row, and a null value deletes the key's row.
  2. The bytes of keys and values are kept; a reader decodes those that it needs.
  3. `is_canonical` says whether the table would write each key with the same bytes. Only then do the bytes of a key find its row: another
     writer may have written the number 1 as `1.0`.
  4. Where rows have names in place of keys, the newest record of each name counts; the records keep their own keys (`tables.row_names`).
  5. Rows are in the order of their records. A record whose key got a newer one goes when such records are more than the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.columnar.decode import SCHEMA
from barnabas.columnar.few_records import Few
from barnabas.sql.live.canonical import are_canonical
from barnabas.sql.live.slots import Slots
from barnabas.tables.formats import ColumnFormat
from barnabas.tables.row_names import RowNames, name_of, names_of

ROW_BYTES = 180  # of memory for a row, besides its record and its key
SPARE = 10_000  # records that are no rows which are kept in any case


class LivePartition:
    """The rows of one partition: the slot of each key's record.

    Args:
        position: the first offset that was not taken yet.
    """

    def __init__(self, position: int = 0) -> None:
        self.position, self.log_start = position, 0
        self.rows: dict[bytes, int] = {}
        self._slots = Slots()
        self._key_bytes = 0

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self._slots.size + self._key_bytes + ROW_BYTES * len(self.rows)

    @property
    def first(self) -> int:
        """The slot of the first record; another one when records that are no rows were forgotten."""
        return self._slots.first

    @property
    def next(self) -> int:
        """The slot of the next record."""
        return self._slots.next

    def take_few(self, few: Few, keys: Sequence[bytes | None] | None = None) -> None:
        """Records in the order of their offsets.

        Args:
            keys: of their rows; by default those of the records.
        """
        keys = few.keys if keys is None else keys
        first = self._slots.next
        self._slots.add_few(few.keys, few.values, few.offsets, few.times)
        self._point(keys, [value is None for value in few.values], first)

    def take(self, records: pa.RecordBatch, of_rows: Any = None) -> None:
        """Records in the order of their offsets, as `columnar.decode` has them.

        Args:
            of_rows: the keys of their rows, `pa.binary()`; by default those of the records.
        """
        of_rows = records.column("key") if of_rows is None else of_rows
        first, values = self._slots.next, records.column("value")
        keys: list[bytes | None] = of_rows.to_pylist()
        times = records.column("timestamp").view(pa.int64())
        self._slots.add(records.column("key"), values, records.column("offset"), times)
        if values.null_count:
            deleted: list[Any] = values.is_null().to_pylist()
            self._point(keys, deleted, first)
        elif of_rows.null_count or not self._point_fresh(keys, first):
            self._point(keys, [False] * len(keys), first)

    def _point_fresh(self, keys: Sequence[Any], first: int) -> bool:
        """Let keys that have no row point to their records; whether that is so, and none comes twice."""
        rows, before = self.rows, len(self.rows)
        if before and not rows.keys().isdisjoint(keys):
            return False
        rows.update(zip(keys, range(first, first + len(keys)), strict=True))
        if len(rows) == before + len(keys):
            self._key_bytes += sum(map(len, keys))
            return True
        for key in keys:
            rows.pop(key, None)
        return False

    def _point(self, keys: Sequence[bytes | None], deleted: Sequence[bool], first: int) -> None:
        rows = self.rows
        for slot, (key, is_deleted) in enumerate(zip(keys, deleted, strict=True), first):
            if key is None:
                continue
            if rows.pop(key, None) is not None:
                self._key_bytes -= len(key)
            if not is_deleted:
                rows[key] = slot
                self._key_bytes += len(key)
        self._tidy()

    def _tidy(self) -> None:
        """Forget records that are no rows, if they are many."""
        if self._slots.next - self._slots.first > 2 * len(self.rows) + SPARE:
            self._slots = self._slots.only(self._all())
            self.rows = dict(zip(self.rows, range(self._slots.first, self._slots.next), strict=True))

    def _all(self) -> Any:
        return np.fromiter(self.rows.values(), np.int64, len(self.rows))

    def records(self, number: int, slots: Sequence[int] | None = None) -> pa.RecordBatch:
        """The records of slots, or of all rows.

        Args:
            number: of the partition.
        """
        return self._slots.records(number, self._all() if slots is None else np.array(slots, np.int64))

    def drop_before(self, log_start: int) -> None:
        """Forget the rows whose records were deleted."""
        if log_start <= self.log_start:
            return
        self.log_start = log_start
        gone = []
        for key, slot in self.rows.items():
            if self._slots.offset(slot) >= log_start:
                break
            gone.append(key)
        for key in gone:
            del self.rows[key]
            self._key_bytes -= len(key)
        self._tidy()


class LiveRows:
    """The rows of a topic.

    Args:
        key: the format of its keys.
    """

    def __init__(self, key: ColumnFormat) -> None:
        self._key, self._has_names = key, isinstance(key, RowNames)
        self.partitions: dict[int, LivePartition] = {}
        self.is_canonical = True
        self.changes = 0
        self.seen_at_s = 0.0  # when a look that has succeeded began, in seconds since 1970

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return sum(each.size for each in self.partitions.values())

    def take(self, partition: int, records: pa.RecordBatch) -> None:
        """Records of one partition, as `columnar.decode` has them."""
        self.changes += 1
        if self._has_names:
            self.partitions[partition].take(records, names_of(records))
            return
        self.is_canonical = self.is_canonical and _is_canonical(self._key, records.column("key"))
        self.partitions[partition].take(records)

    def restore(self, partition: int, records: pa.RecordBatch) -> None:
        """Records that rows had before; `is_canonical` stays."""
        self.partitions[partition].take(records, names_of(records) if self._has_names else None)

    def take_few(self, partition: int, few: Few) -> None:
        """The same as `take`, of few records."""
        if not few.keys:
            return
        self.changes += 1
        if self._has_names:
            places = zip(few.keys, few.offsets, strict=True)
            self.partitions[partition].take_few(few, [name_of(key, partition, offset) for key, offset in places])
            return
        if self.is_canonical:
            known = are_canonical(self._key, few.keys)
            self.is_canonical = _is_canonical(self._key, pa.array(few.keys, pa.binary())) if known is None else known
        self.partitions[partition].take_few(few)

    def of_key(self, key: bytes) -> pa.RecordBatch:
        """The records of one key."""
        found = [each.records(number, [each.rows[key]]) for number, each in self.partitions.items() if key in each.rows]
        return together(found)

    def of_keys(self, keys: Iterable[bytes]) -> pa.RecordBatch:
        """The records of some keys; all records if the bytes of a key do not find its row."""
        if not self.is_canonical:
            return self.all()
        wanted = set(keys)
        parts = [(number, each, wanted & each.rows.keys()) for number, each in sorted(self.partitions.items())]
        return together([each.records(number, sorted(each.rows[key] for key in found)) for number, each, found in parts if found])

    def all(self) -> pa.RecordBatch:
        """All records, partition by partition."""
        return together([each.records(number) for number, each in sorted(self.partitions.items()) if each.rows])

    def having(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of the keys that have a row."""
        return {key for key in keys if any(key in each.rows for each in self.partitions.values())}


Choice = Callable[[LiveRows], pa.RecordBatch]  # the records of the rows that a plan needs, and perhaps of others
NO_CHOICE: Mapping[str, Choice] = MappingProxyType({})


def together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Records as one batch."""
    if len(batches) == 1:
        return batches[0]
    found = pa.Table.from_batches(batches, SCHEMA).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], SCHEMA)


def _is_canonical(layout: ColumnFormat, keys: Any) -> bool:
    """Whether the format writes these keys with the same bytes."""
    names = [each.name for each in layout.fields]
    decoded = layout.decode(keys, None, names)
    if decoded.reasons is not None and decoded.reasons.null_count < len(decoded.reasons):
        return False
    written = layout.encode(pa.RecordBatch.from_arrays(list(decoded.columns), schema=pa.schema(list(layout.fields))))
    return bool(written.equals(keys))
