"""Records of a micro-batch as the rows of tables, and changes of a result as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from barnabas.engine.jobs import InputTable, ViewWork
from barnabas.incremental.interface import DELETED, KEY
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.tables.declared import columns_of
from barnabas.tables.errors import TableError
from barnabas.tables.memory_scan import MemoryScan
from barnabas.tables.registered_format import registered_format
from barnabas.tables.row_names import names_of

ROWS_AT_ONCE = 100_000
RECORDS = ("key", "value", "partition", "offset", "timestamp", "headers")


class TableRows:
    """Makes rows of one table."""

    def __init__(self, table: InputTable, registry: RegistryAddress | None) -> None:
        self.topic = table.topic
        self._table = table
        self._layout = columns_of(
            table.topic, format=table.format, columns=table.columns, key=table.key, registry=registry, mode=table.mode
        )
        self._layout = structs.replace(self._layout, skips_deletions=table.skips_deletions)

    @property
    def uses_headers(self) -> bool:
        return self._layout.key.uses_headers or self._layout.value.uses_headers

    def of(self, records: pa.Table) -> pa.Table:
        """The rows of the topic's records, as a `Flow` takes them. Raises BadRecord in the mode `fail`."""
        names = [self._table.renamed.get(each, each) for each in self._table.names]
        has_names = self._layout.has_row_names
        if self._table.is_keyed and not has_names:
            records = records.filter(pc.is_valid(records.column("key")))
        scans = [MemoryScan(self.topic, self._layout, names, each) for each in records.to_batches()]
        if not scans:
            return self._empty(names)
        if not self._table.is_keyed:
            return pa.concat_tables([each.table() for each in scans]).rename_columns(list(self._table.names))
        parts = [each.every_row() for each in scans]
        found = pa.concat_tables([rows for rows, _ in parts]).rename_columns(list(self._table.names))
        keys: Any = records.column("key")
        if has_names:
            keys = pa.chunked_array([names_of(each) for each in records.to_batches()], pa.binary())
        left_out = pa.chunked_array([each for _, each in parts], pa.bool_())
        return found.append_column(KEY, keys).append_column(DELETED, pc.or_(pc.is_null(records.column("value")), left_out))

    def _empty(self, names: list[str]) -> pa.Table:
        made = MemoryScan(self.topic, self._layout, names, pa.RecordBatch.from_pylist([])).table()
        made = made.rename_columns(list(self._table.names))
        if self._table.is_keyed:
            made = made.append_column(KEY, pa.array([], pa.binary())).append_column(DELETED, pa.array([], pa.bool_()))
        return made


class Decoder:
    """Makes the inputs of a step of the records of a micro-batch."""

    def __init__(self, tables: Mapping[str, InputTable], registry: RegistryAddress | None) -> None:
        self._tables = {name: TableRows(each, registry) for name, each in tables.items()}

    @property
    def uses_headers(self) -> bool:
        """Whether the headers of records are needed."""
        return any(each.uses_headers for each in self._tables.values())

    def rows(self, name: str) -> TableRows:
        """The rows of one table."""
        return self._tables[name]

    def inputs(self, records: pa.Table) -> dict[str, pa.Table]:
        """The rows by the names of the tables. Raises BadRecord."""
        if not records.num_rows:
            return {}
        names = [name for name in RECORDS if name in records.schema.names]
        found = {}
        for name, rows in self._tables.items():
            of_topic = records.filter(pc.field("topic") == rows.topic).select(names)
            if of_topic.num_rows:
                found[name] = rows.of(of_topic)
        return found


class RowEncoder:
    """Makes records of rows for a topic, in the form of its table.

    Args:
        target: its names are the columns of the rows.
    """

    def __init__(self, target: InputTable, registry: RegistryAddress | None) -> None:
        self._target = target
        self._layout = columns_of(
            target.topic, format=target.format, columns=target.columns, key=target.key, registry=registry, mode=target.mode
        )
        own = {target.renamed.get(each, each): each for each in target.names}
        self._keys = [(own[each.name], each) for each in self._layout.key.fields if each.name in own]
        self._values = [(own[each.name], each) for each in self._layout.value.fields]

    def records(self, rows: pa.Table) -> list[pa.RecordBatch]:
        """Keys, values and topics. Raises TableError."""
        made = []
        for batch in rows.to_batches(ROWS_AT_ONCE):
            none = pa.nulls(batch.num_rows, pa.binary())
            keys = self._layout.key.encode(_shaped(batch, self._keys)) if self._keys else none
            values = self._layout.value.encode(_shaped(batch, self._values))
            topics = pa.repeat(self._target.topic, batch.num_rows)
            made += pa.table({"key": keys, "value": values, "topic": topics}).combine_chunks().to_batches()
        return made


def _shaped(batch: pa.RecordBatch, columns: Sequence[tuple[str, pa.Field[Any]]]) -> pa.RecordBatch:
    fields = [each.with_nullable(True) for _, each in columns]
    arrays: list[Any] = [batch.column(name).cast(each.type) for name, each in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class Encoder:
    """Makes records of the changes of a result.

    Args:
        registry: has the schema of the values, if the work names one.

    Raises:
        TableError: it has no such schema, or there is no registry.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """

    def __init__(self, work: ViewWork, registry: RegistryAddress | None) -> None:
        self._topic = work.topic
        layout = columns_of(work.topic, format="json", columns=work.columns, key=work.key)
        self._key, self._value = layout.key, layout.value
        if work.schema_id:
            if registry is None:
                raise TableError(f"the view {work.topic} needs a schema registry: the engine has no schema.registry.url")
            self._value = registered_format(registry, work.schema_id)
        self._keys = [each.name for each in self._key.fields]
        self._values = [each.name for each in self._value.fields]

    def records(self, changes: pa.Table) -> pa.Table:
        """Keys, values and topics; a deletion has no value. Raises TableError."""
        if not changes.num_rows:
            return pa.table(
                {"key": pa.array([], pa.binary()), "value": pa.array([], pa.binary()), "topic": pa.array([], pa.string())}
            )
        batch = changes.combine_chunks().to_batches()[0]
        keys = self._key.encode(batch.select(self._keys))
        values = self._value.encode(batch.select(self._values), batch.column(DELETED))
        return pa.table({"key": keys, "value": values, "topic": pa.repeat(self._topic, batch.num_rows)})
