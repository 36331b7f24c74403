"""A scan: the rows of a snapshot for which a predicate may hold, as Arrow batches.

Owns the choice of what to read, and the columns of a batch. It does not apply the filter; `table` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from barnabas.columnar.count import RecordCounter
from barnabas.columnar.decode import HEADER_TYPE, RecordDecoder
from barnabas.tables.errors import BadRecord, UnknownColumn
from barnabas.tables.formats import ColumnFormat, Decoded
from barnabas.tables.predicate import LOWEST, Every, Predicate, Region, regions_of
from barnabas.tables.source import Bounds, Snapshot, TopicSource

PARTITION, OFFSET, TIMESTAMP, HEADERS, VALUE = "_partition", "_offset", "_timestamp", "_headers", "_value"
META_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field(PARTITION, pa.int32(), nullable=False),
    pa.field(OFFSET, pa.int64(), nullable=False),
    pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC")),
)
EXTRA_FIELDS: tuple[pa.Field[Any], ...] = (pa.field(HEADERS, HEADER_TYPE), pa.field(VALUE, pa.binary()))
MODES = ("permissive", "drop", "fail")


class Columns(Struct, frozen=True):
    """The columns of a table.

    Args:
        key, value: the formats of both parts of a record.
        mode: of records that do not fit: `permissive` (their columns are null), `drop` or `fail`.
    """

    key: ColumnFormat
    value: ColumnFormat
    mode: str = "permissive"

    @property
    def schema(self) -> pa.Schema:
        """Columns of the value, columns of the key, partition, offset and timestamp."""
        return pa.schema([*self.value.fields, *self.key.fields, *META_FIELDS])

    @property
    def full_schema(self) -> pa.Schema:
        """Also the columns that only a scan that names them has: headers, and the bytes of the value."""
        return pa.schema([*self.schema, *EXTRA_FIELDS])


class ScanReport(Struct):
    """Counts of one scan; complete at its end.

    Args:
        planned: for each partition the ranges of offsets that are read.
        offsets: in the snapshot.
        skipped_offsets: of them, those that were not asked for.
        bytes: of record batches that were read.
        rows: that were decoded.
        bad: records that do not fit the table.
    """

    planned: dict[int, list[Bounds]] = {}
    offsets: int = 0
    skipped_offsets: int = 0
    bytes: int = 0
    rows: int = 0
    bad: int = 0


class Scan:
    """One reading of a table.

    Args:
        names: of the columns, in their order.
        predicate: rows outside of it may be left out.
    """

    def __init__(
        self,
        source: TopicSource,
        snapshot: Snapshot,
        columns: Columns,
        names: Sequence[str],
        predicate: Predicate | None = None,
    ) -> None:
        self._source, self._snapshot, self._columns = source, snapshot, columns
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

    def _plan(self, predicate: Predicate) -> dict[int, list[Bounds]]:
        regions = regions_of(predicate, [each.name for each in self._columns.key.fields])
        starts = {low: self._source.offsets_from(self._snapshot, -(-low // 1000)) for low in _times(regions)}
        plan: dict[int, list[Bounds]] = {}
        for partition, whole in self._snapshot.partitions.items():
            found = []
            for region in regions:
                if not region.partitions.low <= partition <= region.partitions.high:
                    continue
                low = max(whole.start, region.offsets.low)
                if region.timestamps.low in starts:
                    low = max(low, starts[region.timestamps.low][partition])
                high = min(whole.end, region.offsets.high + 1)
                if low < high:
                    found.append(Bounds(low, high))
            if found:
                plan[partition] = _merged(found)
        return plan

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, partition by partition in the order of offsets. Raises BadRecord in the mode `fail`."""
        for partition, ranges in self.report.planned.items():
            needs_headers = HEADERS in self._names or self._columns.value.uses_headers or self._columns.key.uses_headers
            decoder = RecordDecoder(self._snapshot.topic, partition, include_headers=needs_headers)
            for start, end in ranges:
                for chunk in self._source.chunks(self._snapshot, partition, start, end):
                    self.report.bytes += len(chunk.records)
                    for records in decoder.decode(chunk.records, start, end, chunk.aborted):
                        batch = self._batch(records)
                        self.report.rows += batch.num_rows
                        yield batch

    def count(self) -> int:
        """The number of rows that `batches` gives, by batch headers alone where no format may refuse a record."""
        if self._columns.mode != "permissive":
            return sum(batch.num_rows for batch in self.batches())
        total = 0
        for partition, ranges in self.report.planned.items():
            counter = RecordCounter(self._snapshot.topic, partition)
            for start, end in ranges:
                for chunk in self._source.chunks(self._snapshot, partition, start, end):
                    self.report.bytes += len(chunk.records)
                    total += counter.count(chunk.records, start, end, chunk.aborted)
        self.report.rows += total
        return total

    def _batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        headers = records.column("headers") if "headers" in records.schema.names else None
        keys = self._decoded(self._columns.key, records.column("key"), headers, self._key_names)
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
        batch = pa.RecordBatch.from_arrays([made[name] for name in self._names], schema=self.schema)
        return self._without_bad(batch, records, [each.reasons for each in (keys, values) if each.reasons is not None])

    def _decoded(self, layout: ColumnFormat, payloads: Any, headers: Any, names: Sequence[str]) -> Decoded:
        wanted = names if names or self._columns.mode == "permissive" else [layout.fields[0].name] if layout.fields else []
        found = layout.decode(payloads, headers, wanted)
        return found if names else Decoded([], found.reasons)

    def _without_bad(self, batch: pa.RecordBatch, records: pa.RecordBatch, reasons: list[Any]) -> pa.RecordBatch:
        if not reasons:
            return batch
        reason = pc.coalesce(*reasons)
        is_bad = reason.is_valid()
        bad = pc.sum(is_bad).as_py() or 0
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


def _merged(ranges: list[Bounds]) -> list[Bounds]:
    """The same offsets, in order, none twice."""
    merged: list[Bounds] = []
    for each in sorted(ranges):
        if merged and each.start <= merged[-1].end:
            merged[-1] = Bounds(merged[-1].start, max(merged[-1].end, each.end))
        else:
            merged.append(each)
    return merged
