"""A scan: the rows of a snapshot for which a predicate may hold, as Arrow batches.

Owns the choice of what to read, and the columns of a batch. It does not apply the filter; `table` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from barnabas.columnar.count import RecordCounter
from barnabas.columnar.decode import HEADER_TYPE, RecordDecoder
from barnabas.limits import MAX_INDEXED_KEYS
from barnabas.tables.errors import BadRecord, UnknownColumn
from barnabas.tables.formats import ColumnFormat, Decoded
from barnabas.tables.key_index import KeyIndex
from barnabas.tables.key_lookup import KeyLookup
from barnabas.tables.parallel import interleaved
from barnabas.tables.predicate import LOWEST, Every, Predicate, Region, regions_of
from barnabas.tables.row_names import RowNames, are_own, located, names_of, own_keys
from barnabas.tables.source import Bounds, Chunk, Snapshot, TopicSource, merged

PARTITION, OFFSET, TIMESTAMP, HEADERS, VALUE = "_partition", "_offset", "_timestamp", "_headers", "_value"
KEY = "_key"
META_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field(PARTITION, pa.int32(), nullable=False),
    pa.field(OFFSET, pa.int64(), nullable=False),
    pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC")),
)
EXTRA_FIELDS: tuple[pa.Field[Any], ...] = (pa.field(HEADERS, HEADER_TYPE), pa.field(VALUE, pa.binary()))
BAD_SCHEMA = pa.schema([
    *META_FIELDS[:2], pa.field(KEY, pa.binary()), pa.field(VALUE, pa.binary()), pa.field("_reason", pa.string(), nullable=False)
])  # fmt: skip
MODES = ("permissive", "drop", "fail")
THREADS = 2
PARALLEL_OFFSETS = 100_000  # of all partitions but the largest: threads save some 5 ms there, and cost 0.2 ms
T = TypeVar("T")


class Columns(Struct, frozen=True):
    """The columns of a table.

    Args:
        key, value: the formats of both parts of a record.
        mode: of records that do not fit: `permissive` (columns that cannot be made of them are null), `drop` or `fail`. With `drop` and
            `fail` a record must fit all columns, also those that a scan does not ask for.
        skips_deletions: whether records without a key or a value are left out. Of rows with names, so are all records that change one.
    """

    key: ColumnFormat
    value: ColumnFormat
    mode: str = "permissive"
    skips_deletions: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Columns of the value, columns of the key, partition, offset and timestamp."""
        return pa.schema([*self.value.fields, *self.key.fields, *META_FIELDS])

    @property
    def has_row_names(self) -> bool:
        """Whether rows have names in place of keys; then `_key` is a column beside the format of keys."""
        return isinstance(self.key, RowNames)

    @property
    def full_schema(self) -> pa.Schema:
        """Also the columns that only a scan that names them has: headers, the bytes of the value, and those of a key beside a name."""
        return pa.schema([*self.schema, *EXTRA_FIELDS, *((pa.field(KEY, pa.binary()),) if self.has_row_names else ())])


class ScanReport(Struct):
    """Counts of one scan; complete at its end.

    Args:
        planned: for each partition the ranges of offsets that are read.
        offsets: in the snapshot.
        skipped_offsets: of them, those that were not asked for.
        indexed_offsets: of them, those for which the index of keys was asked.
        bytes: of record batches that were read.
        rows: that were decoded.
        bad: records that do not fit the columns; with `permissive`, those that the scan asked for.
    """

    planned: dict[int, list[Bounds]] = {}
    offsets: int = 0
    skipped_offsets: int = 0
    indexed_offsets: int = 0
    bytes: int = 0
    rows: int = 0
    bad: int = 0


class Scan:
    """One reading of a table.

    Args:
        names: of the columns, in their order.
        predicate: rows outside of it may be left out.
        index: of keys, for a predicate with keys. A scan that reads everything extends it.
    """

    def __init__(
        self,
        source: TopicSource,
        snapshot: Snapshot,
        columns: Columns,
        names: Sequence[str],
        predicate: Predicate | None = None,
        index: KeyIndex | None = None,
    ) -> None:
        self._source, self._snapshot, self._columns = source, snapshot, columns
        self._lock = threading.Lock()  # of the report
        self._lookup = None if index is None else KeyLookup(index, snapshot, source.end_of_epoch)
        fields = {each.name: each for each in columns.full_schema}
        for name in names:
            if name not in fields:
                raise UnknownColumn(snapshot.topic, name, list(fields))
        self._names = list(names)
        self.schema = pa.schema([fields[name] for name in names])
        self._value_names = [each.name for each in columns.value.fields if each.name in self._names]
        self._key_names = [each.name for each in columns.key.fields if each.name in self._names]
        self.report = ScanReport(planned=self._plan(predicate or Every()))
        self.report.offsets = sum(bounds.end - bounds.start for bounds in snapshot.partitions.values())
        asked = sum(bounds.end - bounds.start for ranges in self.report.planned.values() for bounds in ranges)
        self.report.skipped_offsets = self.report.offsets - asked
        if self._lookup is not None:
            self._lookup.prepare(self.report.planned)
            self.report.indexed_offsets = self._lookup.indexed_offsets

    def _plan(self, predicate: Predicate) -> dict[int, list[Bounds]]:
        if self._columns.has_row_names:
            predicate = located(predicate)
        regions = regions_of(predicate, [each.name for each in self._columns.key.fields])
        starts = {low: self._source.offsets_from(self._snapshot, -(-low // 1000)) for low in _times(regions)}
        payloads = [self._payloads(each) for each in regions]
        plan: dict[int, list[Bounds]] = {}
        for partition, whole in self._snapshot.partitions.items():
            found: list[Bounds] = []
            for region, keys in zip(regions, payloads, strict=True):
                if not region.partitions.low <= partition <= region.partitions.high:
                    continue
                low = max(whole.start, region.offsets.low)
                if region.timestamps.low in starts:
                    low = max(low, starts[region.timestamps.low][partition])
                high = min(whole.end, region.offsets.high + 1)
                if low < high:
                    found += self._with_keys(partition, Bounds(low, high), keys)
            if found:
                plan[partition] = merged(found)
        return plan

    def _payloads(self, region: Region) -> list[bytes] | None:
        """The keys of a region as they are in the log; None if the index cannot look for them."""
        if self._lookup is None or region.keys is None or len(region.keys) > MAX_INDEXED_KEYS:
            return None
        payloads = [self._columns.key.payload_of(column, value) for column, value in region.keys]
        known = [each for each in payloads if each is not None]
        return known if len(known) == len(payloads) else None

    def _with_keys(self, partition: int, bounds: Bounds, keys: list[bytes] | None) -> Sequence[Bounds]:
        """The parts of the bounds in which the keys may be."""
        if self._lookup is None or keys is None or partition not in self._snapshot.epochs:
            return [bounds]
        return self._lookup.ranges(partition, bounds, keys)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; those of one partition are in the order of offsets. Raises BadRecord in the mode `fail`.

        Partitions follow each other in a small scan. In a large one two threads read and decode a partition each.
        """
        return self._each_partition(self._batches_of)

    def bad_records(self, limit: int | None = None) -> pa.Table:
        """The records of the scan that do not fit the table's columns, in any mode: partition, offset, key, value and reason.

        Args:
            limit: the most rows.
        """
        found: list[pa.RecordBatch] = []
        rows = 0
        for records in self._records():
            reason = self._reasons(records)
            if reason is None:
                continue
            columns = [*(records.column(name) for name in ("partition", "offset", "key", "value")), reason]
            bad = pa.RecordBatch.from_arrays(columns, schema=BAD_SCHEMA).filter(reason.is_valid())
            found.append(bad if limit is None else bad.slice(0, limit - rows))
            rows += found[-1].num_rows
            if rows == limit:
                break
        return pa.Table.from_batches(found, BAD_SCHEMA)

    def _reasons(self, records: pa.RecordBatch) -> Any:
        """Why each record does not fit; None if all do."""
        headers = records.column("headers") if "headers" in records.schema.names else None
        found = []
        parts = [(self._columns.key, "key")] if not self._columns.has_row_names else []
        for layout, name in (*parts, (self._columns.value, "value")):
            reasons = layout.decode(records.column(name), headers, [each.name for each in layout.fields]).reasons
            if reasons is not None:
                found.append(reasons)
        if len(found) < 2:
            return found[0] if found else None
        return pc.coalesce(pc.binary_join_element_wise(*found, "; "), *found)

    def _records(self) -> Iterator[pa.RecordBatch]:
        for partition, ranges in self.report.planned.items():
            yield from self._records_of(partition, ranges)

    def count(self) -> int:
        """The number of rows that `batches` gives, by batch headers alone where no format may refuse a record."""
        if self._columns.mode != "permissive" or self._columns.skips_deletions:
            return sum(batch.num_rows for batch in self.batches())
        total = sum(self._each_partition(self._counts_of))
        self.report.rows += total
        return total

    def _each_partition(self, read: Callable[[int, list[Bounds]], Iterator[T]]) -> Iterator[T]:
        planned = self.report.planned
        parts = [partial(read, partition, ranges) for partition, ranges in planned.items()]
        sizes = sorted(sum(end - start for start, end in ranges) for ranges in planned.values())
        if len(parts) > 1 and sum(sizes[:-1]) >= PARALLEL_OFFSETS:
            yield from interleaved(parts, THREADS)
        else:
            for part in parts:
                yield from part()

    def _batches_of(self, partition: int, ranges: list[Bounds]) -> Iterator[pa.RecordBatch]:
        for records in self._records_of(partition, ranges):
            batch = self._batch(records)
            with self._lock:
                self.report.rows += batch.num_rows
            yield batch

    def _records_of(self, partition: int, ranges: list[Bounds]) -> Iterator[pa.RecordBatch]:
        needs_headers = HEADERS in self._names or self._columns.value.uses_headers or self._columns.key.uses_headers
        decoder = RecordDecoder(self._snapshot.topic, partition, include_headers=needs_headers)
        for chunk, start, end in self._chunks_of(partition, ranges):
            for records in decoder.decode(chunk.records, start, end, chunk.aborted):
                if self._lookup is not None:
                    self._lookup.observe(partition, records)
                yield records
        if self._lookup is not None:
            self._lookup.finish(partition)

    def _counts_of(self, partition: int, ranges: list[Bounds]) -> Iterator[int]:
        counter = RecordCounter(self._snapshot.topic, partition)
        for chunk, start, end in self._chunks_of(partition, ranges):
            yield counter.count(chunk.records, start, end, chunk.aborted)

    def _chunks_of(self, partition: int, ranges: list[Bounds]) -> Iterator[tuple[Chunk, int, int]]:
        for start, end in ranges:
            for chunk in self._source.chunks(self._snapshot, partition, start, end):
                with self._lock:
                    self.report.bytes += len(chunk.records)
                yield chunk, start, end

    def _batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        has_names = self._columns.has_row_names
        if self._columns.skips_deletions:
            is_kept = are_own(records) if has_names else pc.is_valid(records.column("key"))
            records = records.filter(pc.and_(is_kept, pc.is_valid(records.column("value"))))
        headers = records.column("headers") if "headers" in records.schema.names else None
        needs_names = has_names and (self._key_names or self._columns.mode != "permissive")
        payloads = names_of(records) if needs_names else records.column("key")
        keys = self._decoded(self._columns.key, payloads, headers, self._key_names)
        values = self._decoded(self._columns.value, records.column("value"), headers, self._value_names)
        made = dict(zip(self._value_names, values.columns, strict=True))
        made |= zip(self._key_names, keys.columns, strict=True)
        made |= {
            PARTITION: records.column("partition"),
            OFFSET: records.column("offset"),
            TIMESTAMP: records.column("timestamp"),
            HEADERS: headers,
            VALUE: records.column("value"),
        }
        if has_names and KEY in self._names:
            made[KEY] = own_keys(records)
        batch = pa.RecordBatch.from_arrays([made[name] for name in self._names], schema=self.schema)
        return self._without_bad(batch, records, [each.reasons for each in (keys, values) if each.reasons is not None])

    def _decoded(self, layout: ColumnFormat, payloads: Any, headers: Any, names: Sequence[str]) -> Decoded:
        if self._columns.mode == "permissive":
            return layout.decode(payloads, headers, names)
        wanted = [each.name for each in layout.fields]
        found = layout.decode(payloads, headers, wanted)
        made = dict(zip(wanted, found.columns, strict=True))
        return Decoded([made[name] for name in names], found.reasons)

    def _without_bad(self, batch: pa.RecordBatch, records: pa.RecordBatch, reasons: list[Any]) -> pa.RecordBatch:
        if not reasons:
            return batch
        reason = pc.coalesce(*reasons)
        is_bad = reason.is_valid()
        bad = pc.sum(is_bad).as_py() or 0
        with self._lock:
            self.report.bad += bad
        if not bad or self._columns.mode == "permissive":
            return batch
        if self._columns.mode == "drop":
            return batch.filter(pc.invert(is_bad))
        first = pc.index(is_bad, True).as_py()
        partition, offset = (records.column(name)[first].as_py() for name in ("partition", "offset"))
        raise BadRecord(self._snapshot.topic, partition, offset, reason[first].as_py())


def _times(regions: Sequence[Region]) -> set[int]:
    return {each.timestamps.low for each in regions if each.timestamps.low != LOWEST}
