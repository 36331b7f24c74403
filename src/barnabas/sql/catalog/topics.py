"""Topics as relations: the columns of a declared or an undeclared topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.incremental.interface import ROW
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.relations import KEY, META
from barnabas.tables.declared import columns_of, json_object
from barnabas.tables.declared import key_format as declared_key_format
from barnabas.tables.formats import ColumnFormat, Raw
from barnabas.tables.scan import Columns
from barnabas.tables.source import Bounds, Snapshot, TopicSource
from barnabas.tables.table import Table

ROW_ID = pa.field(ROW, pa.string(), nullable=False)
SAMPLED_RECORDS, SAMPLED_PARTITIONS = 20, 4  # looked at to tell whether a topic holds text


class TopicRelation(Struct, frozen=True):
    """A topic as a table.

    Args:
        columns: what `*` shows.
        layout: how records become columns.
        definition: None for an undeclared topic.
    """

    name: str
    topic: str
    columns: pa.Schema
    hidden: pa.Schema
    layout: Columns
    key_alias: str | None = None
    filled: Mapping[str, str] = {}
    definition: TableDefinition | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether a reader sees the newest row of each key."""
        return self.definition is not None and self.definition.is_keyed

    @property
    def is_view(self) -> bool:
        """Whether a job writes its rows."""
        return self.definition is not None and self.definition.view is not None

    @property
    def has_row_ids(self) -> bool:
        """Whether the hidden column ROW identifies the rows."""
        return self.definition is not None and self.definition.has_row_ids

    @property
    def keys(self) -> Sequence[str]:
        """The columns of the primary key; of a table without one ROW, if its rows have numbers."""
        if self.definition is None or not self.definition.is_keyed:
            return ()
        return self.definition.key or (ROW,)

    @property
    def identified(self) -> pa.Schema:
        """The columns, and ROW if it identifies them."""
        return self.columns.append(ROW_ID) if self.has_row_ids else self.columns


def undeclared(topic: str, *, is_text_key: bool, is_text_value: bool) -> TopicRelation:
    """A topic with its key and value as they are, as text if they are text."""
    key = Raw("key", pa.string() if is_text_key else pa.binary())
    value = Raw("value", pa.string() if is_text_value else pa.binary())
    columns = pa.schema([*key.fields, *value.fields])
    return TopicRelation(topic, topic, columns, pa.schema(META), Columns(key, value), key_alias="key")


def registered(topic: str, registry: RegistryAddress) -> TopicRelation | None:
    """A topic with the columns of the newest schema of its values; None if there is none. `*` does not show the columns of its key.

    Raises:
        TableError: the schema gives no columns.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """
    layout = columns_of(topic, format="auto", registry=registry)
    if isinstance(layout.value, Raw):
        return None
    hidden = pa.schema([*layout.key.fields, *META])
    return TopicRelation(topic, topic, pa.schema(list(layout.value.fields)), hidden, layout)


def holds_text(source: TopicSource, snapshot: Snapshot) -> tuple[bool, bool]:
    """Whether the keys and the values of the last records are UTF-8."""
    filled = [(partition, bounds) for partition, bounds in snapshot.partitions.items() if bounds.end > bounds.start]
    parts = {
        partition: Bounds(max(bounds.start, bounds.end - SAMPLED_RECORDS), bounds.end)
        for partition, bounds in filled[:SAMPLED_PARTITIONS]
    }
    is_text = [True, True]
    sample = Table(source, Columns(Raw("key"), Raw("value")), Snapshot(snapshot.topic, snapshot.topic_id, parts))
    for batch in sample.batches(["key", "value"]):
        for place, name in enumerate(("key", "value")):
            is_text[place] = is_text[place] and _is_text(batch.column(name))
    return is_text[0], is_text[1]


def _is_text(column: Any) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def declared(definition: TableDefinition) -> TopicRelation:
    """A topic with the columns of a definition. Raises TableError."""
    schema = definition.schema
    keys = [ROW_ID] if definition.has_row_ids else [schema.field(name) for name in definition.key]
    values = [each for each in schema if each.name not in definition.key]
    key = json_object(keys) if definition.is_key_object else key_format(keys)
    hidden = list(META) if keys else [pa.field(KEY, pa.binary()), *META]
    unseen = definition.view.hidden if definition.view is not None else ()
    hidden = [*(schema.field(name) for name in unseen), *(keys if definition.has_row_ids else ()), *hidden]
    return TopicRelation(
        definition.name,
        definition.topic,
        pa.schema([each for each in schema if each.name not in unseen]) if unseen else schema,
        pa.schema(hidden),
        Columns(key, value_format(definition.format, values), definition.mode),
        key_alias=keys[0].name if len(keys) == 1 and keys[0].name not in (*unseen, ROW) else None,
        filled={
            each.name: each.default
            for each in definition.columns
            if each.added and not each.nullable and each.default is not None
        },
        definition=definition,
    )


def key_format(fields: Sequence[pa.Field[Any]]) -> ColumnFormat:
    """One column takes the whole key; several are fields of a JSON object."""
    return declared_key_format(fields) if fields else Raw(KEY)


def value_format(name: str, fields: Sequence[pa.Field[Any]]) -> ColumnFormat:
    """The format of values: `json`, or the whole value as `text` or `raw` bytes."""
    if name == "json":
        return json_object(fields)
    return Raw(fields[0].name, pa.string() if name == "text" else pa.binary())
