"""What a source yields, as the columns of records; and the bytes of records, as a sink takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Batch
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.converters.interface import Converter, Metadata
from barnabas.connect.converters.json_schema import NAME, VERSION
from barnabas.connect.errors import ConnectError

ROWS_AT_ONCE = 50_000


def records_of(batch: Batch, topic: str | None) -> pa.Table:
    """The records of a batch.

    Args:
        topic: of a batch that names none.

    Raises:
        ConnectError: the batch has no form that can be a record.
    """
    rows = batch.rows
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif not isinstance(rows, pa.Table):
        rows = _table(rows)
    if batch.is_records:
        if "value" not in rows.column_names:
            raise ConnectError("a batch of records needs a column value")
        found = rows
    else:
        found = _shaped(rows, batch.key)
    if batch.name is not None:
        value = found.schema.field("value").with_metadata({NAME: batch.name.encode(), VERSION: b""})
        found = found.set_column(found.column_names.index("value"), value, found.column("value"))
    if "topic" not in found.column_names:
        name = batch.topic or topic
        if not name:
            raise ConnectError("the records have no topic: neither the source nor its config names one")
        found = found.append_column("topic", pa.repeat(name, found.num_rows))
    if "timestamp" in found.column_names:
        times = _times(found.column("timestamp"))
        found = found.set_column(found.column_names.index("timestamp"), "timestamp", times)
    return found


def _table(rows: Sequence[Any]) -> pa.Table:
    if not rows:
        return pa.table({})
    try:
        found: Any = pa.array(list(rows))  # takes the fields of all rows; `from_pylist` those of the first
        if found.null_count:
            raise TypeError("a row is None")
        return pa.Table.from_struct_array(found)
    except (pa.ArrowException, TypeError) as error:
        raise ConnectError(f"rows are dictionaries whose values have one type for each name: {error}") from None


def _shaped(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    whole = rows.combine_chunks()
    if missing := [name for name in key if name not in whole.column_names]:
        raise ConnectError(f"the rows have no field {missing[0]} for the key")
    value: Any = whole.to_struct_array() if whole.num_columns else pa.nulls(0, pa.struct([]))
    made = pa.table({"value": value})
    if len(key) == 1:
        return made.append_column("key", whole.column(key[0]))
    return made.append_column("key", whole.select(list(key)).to_struct_array()) if key else made


def encoded(records: pa.Table, key: Converter, value: Converter) -> list[pa.RecordBatch]:
    """Records as the sink of pipelines takes them: keys and values as bytes. Raises ConnectError."""
    made = []
    for topic, some in _by_topic(records):
        for batch in some.combine_chunks().to_batches(ROWS_AT_ONCE):
            names = batch.schema.names
            keys = batch.column("key") if "key" in names else pa.nulls(batch.num_rows)
            columns: dict[str, Any] = {
                "key": key.encode(keys, topic, _metadata(batch, "key"))
                if not pa.types.is_null(keys.type)
                else keys.cast(pa.binary()),
                "value": value.encode(batch.column("value"), topic, _metadata(batch, "value")),
                "topic": pa.repeat(topic, batch.num_rows),
            }
            if "partition" in names:
                columns["partition"] = batch.column("partition").cast(pa.int32())
            if "timestamp" in names:
                columns["timestamp"] = _times(batch.column("timestamp"))
            if "headers" in names:
                columns["headers"] = batch.column("headers").cast(HEADERS)
            made.append(pa.record_batch(columns))
    return made


def _metadata(batch: pa.RecordBatch, name: str) -> Metadata:
    return batch.schema.field(name).metadata if name in batch.schema.names else None


def _times(column: Any) -> Any:
    """The times of records. Raises ConnectError."""
    kind = column.type
    if pa.types.is_integer(kind):
        column = column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
    elif not (pa.types.is_timestamp(kind) or pa.types.is_null(kind)):
        raise ConnectError(f"the timestamps of records are times, or numbers of milliseconds since 1970; these are {kind}")
    if (pc.min(column.cast(pa.timestamp("us")).cast(pa.int64())).as_py() or 0) < 0:
        raise ConnectError("Invalid record timestamp: it is before 1970. Timestamps should be non-negative or null")
    return column.cast(pa.timestamp("ms", "UTC"), safe=False)


def _by_topic(records: pa.Table) -> list[tuple[str, pa.Table]]:
    topics: Any = records.column("topic")
    names = pc.unique(topics).to_pylist()
    return [(name, records if len(names) == 1 else records.filter(pc.equal(topics, name))) for name in names]
