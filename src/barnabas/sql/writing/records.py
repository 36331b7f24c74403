"""Rows as records: what the encoder of record batches takes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.catalog.topics import ROW_NAME, TopicRelation
from barnabas.sql.interface import SqlError
from barnabas.sql.states import NOT_NULL
from barnabas.tables.formats import Raw
from barnabas.tables.row_names import ROW, places_in

SHOWN_VALUES = 20  # of a row in the detail of an error


def record_batch(keys: Sequence[bytes | None] | Any, values: Sequence[bytes | None] | Any) -> pa.RecordBatch:
    """Keys and values as a batch; each a list of bytes or an array."""
    made = [each if isinstance(each, pa.Array) else pa.array(each, pa.binary()) for each in (keys, values)]
    return pa.RecordBatch.from_arrays(made, names=["key", "value"])


def records_of(relation: TopicRelation, rows: pa.Table, deleted: bool = False) -> list[pa.RecordBatch]:
    """The records of rows with the relation's columns; of tombstones if `deleted`, which only need the key's columns.

    Raises:
        SqlError: a value does not fit.
        TableError: so says the format.
    """
    if relation.has_row_names:
        return [_named(relation, batch, deleted) for batch in rows.to_batches()]
    layout = relation.layout
    key_names = [each.name for each in layout.key.fields if each.name in rows.schema.names]
    value_names = [each.name for each in layout.value.fields]
    made = []
    for batch in rows.to_batches():
        keys = layout.key.encode(batch.select(key_names)) if key_names else pa.nulls(batch.num_rows, pa.binary())
        values = pa.nulls(batch.num_rows, pa.binary()) if deleted else layout.value.encode(batch.select(value_names))
        made.append(record_batch(_bytes(keys), _bytes(values)))
    return made


def _bytes(payloads: Any) -> Any:
    return payloads.combine_chunks() if isinstance(payloads, pa.ChunkedArray) else payloads


def _named(relation: TopicRelation, batch: pa.RecordBatch, deleted: bool) -> pa.RecordBatch:
    """Records of rows that may have names. A record about a row goes to the partition of its name; the name of a row without one is the
    place that its record gets, so the record has no key."""
    layout, count = relation.layout, batch.num_rows
    keys, partitions = pa.nulls(count, pa.binary()), pa.nulls(count, pa.int32())
    if ROW in batch.schema.names:
        partitions, _ = places_in(batch.column(ROW))
        names = layout.key.encode(batch.select([ROW]))
        keys = pc.if_else(partitions.is_valid(), names, pa.scalar(None, names.type))
    values = (
        pa.nulls(count, pa.binary())
        if deleted
        else layout.value.encode(batch.select([each.name for each in layout.value.fields]))
    )
    return record_batch(keys, _bytes(values)).append_column("partition", partitions)


def with_temporary_names(relation: TopicRelation, rows: pa.Table) -> pa.Table:
    """The rows of an open transaction, each with a text in ROW, if that identifies them: it tells rows apart that have no place in the log
    yet."""
    if not relation.has_row_names:
        return rows
    prefix = secrets.token_hex(8)
    made = pa.array([f"{prefix}{number:x}" for number in range(rows.num_rows)], pa.string())
    if ROW not in rows.schema.names:
        return rows.append_column(ROW_NAME, made)
    names: Any = pc.coalesce(rows.column(ROW), made)
    return rows.set_column(rows.schema.get_field_index(ROW), ROW_NAME, names)


def keys_of(relation: TopicRelation, rows: pa.Table) -> list[bytes]:
    """The keys of rows, as records have them."""
    names = [each.name for each in relation.layout.key.fields]
    found: list[bytes] = []
    for batch in rows.select(names).to_batches():
        found += relation.layout.key.encode(batch).to_pylist()
    return found


def check_rows(relation: TopicRelation, rows: pa.Table) -> None:
    """Raises SqlError 23502 for a null where the definition has none."""
    definition = relation.definition
    if definition is None:
        return
    required = [each.name for each in definition.columns if not each.nullable]
    if definition.is_keyed and isinstance(relation.layout.value, Raw):
        required += [each.name for each in relation.layout.value.fields]  # a null payload would delete the row
    for name in dict.fromkeys(required):
        if rows.column(name).null_count:
            raise _null(relation, rows, name)


def _null(relation: TopicRelation, rows: pa.Table, name: str) -> SqlError:
    place = pc.index(rows.column(name).is_null(), True).as_py()
    row = rows.slice(place, 1).to_pylist()[0]
    shown = ", ".join("null" if value is None else str(value)[:100] for value in list(row.values())[:SHOWN_VALUES])
    return SqlError(
        NOT_NULL,
        f'null value in column "{name}" of relation "{relation.name}" violates not-null constraint',
        detail=f"Failing row contains ({shown}).",
    )
