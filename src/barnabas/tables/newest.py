"""The newest row of each key, without deletions.

Owns two passes over each partition. The first reads keys alone and finds the offset of the newest record of each key. The second
reads the rows at these offsets.

Rules
  1. Memory is that of the keys of one partition, and one batch.
  2. A key belongs to its partition, as in compaction. Records without a key have no row, and a null value deletes the key's row.
  3. Only conditions on the partition and the key make a pass read less: a condition on anything else is applied to the newest rows.
  4. Where rows have names in place of keys, the newest row of each name counts, and rule 2 is that of `row_names`.
  5. Compaction may remove the newest record of the snapshot, once a newer one was written. The row then comes from the newer record,
     so that no key is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from barnabas.tables.errors import TableError
from barnabas.tables.expression import kept_conditions
from barnabas.tables.formats import ColumnFormat, Raw
from barnabas.tables.key_index import KeyIndex
from barnabas.tables.newest_names import NewestNames
from barnabas.tables.predicate import Among, Comparison, Every, Predicate, Some, Unknown
from barnabas.tables.row_names import located
from barnabas.tables.scan import KEY, OFFSET, PARTITION, VALUE, Columns, Scan
from barnabas.tables.source import Bounds, Snapshot, TopicSource

MARK = "mark"
MERGED_ROWS = 1 << 18  # rows that are collected before they are merged with the keys found so far
MAX_SHORT_BYTES = 1 << 30  # of keys with offsets of 32 bits, which are grouped 20 times as fast as those with 64 bits
MAX_GAP = 1 << 16  # offsets without a newest record that are read, rather than asked for another range
MAX_RANGES = 32  # of one partition in the second pass
MAX_ROUNDS = 5  # searches for keys whose newest record compaction removed
RAW_COLUMNS = Columns(Raw(KEY), Raw("value"))

Offsets = npt.NDArray[np.int64]


class NewestKeys:
    """The newest mark of each key. A mark is twice the offset, plus one if the record has a value."""

    def __init__(self) -> None:
        self._found = pa.table({KEY: pa.array([], pa.binary()), MARK: pa.array([], pa.int64())})
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Records with the columns of KEY, OFFSET and VALUE."""
        keys = batch.column(KEY)
        has_value = pc.cast(batch.column(VALUE).is_valid(), pa.int64())
        marks = pc.add(pc.multiply(batch.column(OFFSET), 2), has_value)
        self._waiting.append(pa.table({KEY: keys, MARK: marks}).filter(keys.is_valid()))
        self._rows += batch.num_rows
        if self._rows >= max(MERGED_ROWS, self._found.num_rows):
            self._merge()

    def _merge(self) -> None:
        if self._waiting:
            is_large = self._found.nbytes + sum(each.nbytes for each in self._waiting) > MAX_SHORT_BYTES
            kind = pa.large_binary() if is_large else self._found.schema.field(KEY).type
            schema = pa.schema([(KEY, kind), (MARK, pa.int64())])
            whole = pa.concat_tables([each.cast(schema) for each in (self._found, *self._waiting)])
            self._found = whole.group_by(KEY).aggregate([(MARK, "max")]).rename_columns([KEY, MARK])
            self._waiting, self._rows = [], 0

    def only(self, keys: Any) -> None:
        """Forget all other keys."""
        self._merge()
        kept = pa.table([keys.column(KEY).cast(self._found.schema.field(KEY).type)], names=[KEY])
        self._found = self._found.join(kept, KEY, join_type="inner")

    def marks(self) -> Offsets:
        """The marks of all keys, ascending."""
        self._merge()
        return np.sort(self._found.column(MARK).to_numpy())

    def at(self, offsets: Offsets) -> pa.Table:
        """The keys whose newest record is at one of these offsets."""
        self._merge()
        halves = pc.bit_wise_and(self._found.column(MARK), ~1)
        return self._found.filter(pc.is_in(halves, value_set=pa.array(offsets * 2, pa.int64())))


class NewestRows:
    """The newest row of each key of a snapshot; see the module."""

    def __init__(
        self,
        source: TopicSource,
        snapshot: Snapshot,
        columns: Columns,
        names: Sequence[str],
        predicate: Predicate,
        index: KeyIndex | None = None,
    ) -> None:
        self._source, self._snapshot, self._columns, self._index = source, snapshot, columns, index
        self._names = list(names)
        key_names = [each.name for each in columns.key.fields]
        self.condition = kept_conditions(predicate, [PARTITION, *key_names])
        has_names = columns.has_row_names
        self._raw_condition = located(self.condition) if has_names else with_raw_keys(self.condition, columns.key, key_names)
        self.schema = self._scan(snapshot, columns, names, Some()).schema
        self.report = self._scan(snapshot, RAW_COLUMNS, [KEY], self._raw_condition).report

    def _scan(self, snapshot: Snapshot, columns: Columns, names: Sequence[str], predicate: Predicate) -> Scan:
        return Scan(self._source, snapshot, columns, names, predicate, self._index)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, partition by partition in the order of offsets. Raises BadRecord in the mode `fail`."""
        for partition in self.report.planned:
            yield from self._partition(partition, self._snapshot)

    def count(self) -> int:
        """The number of rows that `batches` gives; one pass where no format may refuse a record."""
        if self._columns.mode != "permissive" or self.condition != Every():
            return sum(batch.num_rows for batch in self.batches())
        marks = (self._newest(partition, self._snapshot).marks() for partition in self.report.planned)
        return sum(int(np.count_nonzero(each & 1)) for each in marks)

    def _partition(self, partition: int, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        newest = self._newest(partition, snapshot)
        for _ in range(MAX_ROUNDS):
            marks = newest.marks()
            wanted = marks[marks & 1 == 1] >> 1
            seen = np.zeros(len(wanted), np.bool_)
            yield from self._rows(partition, snapshot, wanted, seen)
            lost = self._lost(partition, snapshot, wanted[~seen])
            if not len(lost):
                return
            keys, end = newest.at(lost), snapshot.partitions[partition].end
            now = self._source.snapshot()
            if partition not in now.partitions:
                return
            later = Bounds(max(end, now.partitions[partition].start), now.partitions[partition].end)
            snapshot = replace(now, partitions={partition: later})
            newest = self._newest(partition, snapshot)
            newest.only(keys)
        raise TableError(f"{snapshot.topic}-{partition}: compaction removes records faster than they are read")

    def _newest(self, partition: int, snapshot: Snapshot) -> NewestKeys | NewestNames:
        newest = NewestNames(partition) if self._columns.has_row_names else NewestKeys()
        for batch in self._read(_of(snapshot, partition), RAW_COLUMNS, [KEY, OFFSET, VALUE], self._raw_condition):
            newest.add(batch)
        return newest

    def _rows(self, partition: int, snapshot: Snapshot, wanted: Offsets, seen: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """The rows at these offsets, which are ascending; `seen` becomes true for those that were found."""
        if not len(wanted):
            return
        names = list(dict.fromkeys([*self._names, OFFSET]))
        condition = Every((self.condition, _ranges(wanted)))
        for batch in self._read(_of(snapshot, partition), self._columns, names, condition, counts_bad=True):
            offsets = batch.column(OFFSET).to_numpy()
            places = np.searchsorted(wanted, offsets)
            is_newest = wanted[np.minimum(places, len(wanted) - 1)] == offsets
            seen[places[is_newest]] = True
            if is_newest.any():
                yield batch.filter(pa.array(is_newest)).select(self._names)

    def _lost(self, partition: int, snapshot: Snapshot, missing: Offsets) -> Offsets:
        """Those of the offsets that have no record any more; the others have rows that the table leaves out."""
        if not len(missing):
            return missing
        found = [
            batch.column(OFFSET).to_numpy()
            for batch in self._read(_of(snapshot, partition), RAW_COLUMNS, [OFFSET], _ranges(missing))
        ]
        return np.setdiff1d(missing, np.concatenate(found)) if found else missing

    def _read(
        self, snapshot: Snapshot, columns: Columns, names: Sequence[str], predicate: Predicate, *, counts_bad: bool = False
    ) -> Iterator[pa.RecordBatch]:
        scan = self._scan(snapshot, columns, names, predicate)
        bytes_before, rows_before, bad_before = self.report.bytes, self.report.rows, self.report.bad
        for batch in scan.batches():
            self.report.bytes, self.report.rows = bytes_before + scan.report.bytes, rows_before + scan.report.rows
            if counts_bad:
                self.report.bad = bad_before + scan.report.bad
            yield batch


def _of(snapshot: Snapshot, partition: int) -> Snapshot:
    return replace(snapshot, partitions={partition: snapshot.partitions[partition]})


def _ranges(wanted: Offsets) -> Predicate:
    """Ranges with all these offsets, which are ascending and at least one; few, and with few others."""
    gaps = np.diff(wanted)
    cuts = np.flatnonzero(gaps > MAX_GAP)
    if len(cuts) >= MAX_RANGES:
        cuts = np.sort(cuts[np.argsort(gaps[cuts])[-(MAX_RANGES - 1) :]])
    firsts, lasts = wanted[np.concatenate(([0], cuts + 1))], wanted[np.concatenate((cuts, [len(wanted) - 1]))]
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return Some(tuple(Every((Comparison(OFFSET, ">=", low), Comparison(OFFSET, "<=", high))) for low, high in pairs))


def with_raw_keys(predicate: Predicate, layout: ColumnFormat, columns: Sequence[str]) -> Predicate:
    """The predicate with conditions on the bytes of the key in place of those on its columns."""
    match predicate:
        case Comparison(column, "=", value) if column in columns:
            return _raw([layout.payload_of(column, value)])
        case Among(column, values) if column in columns:
            return _raw([layout.payload_of(column, each) for each in values])
        case Comparison(column) if column in columns:
            return Unknown()
        case Every(parts):
            return Every(tuple(with_raw_keys(part, layout, columns) for part in parts))
        case Some(parts):
            return Some(tuple(with_raw_keys(part, layout, columns) for part in parts))
        case _:
            return predicate


def _raw(payloads: Sequence[Any]) -> Predicate:
    return Unknown() if None in payloads else Among(KEY, tuple(payloads))
