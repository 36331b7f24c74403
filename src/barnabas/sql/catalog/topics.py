"""Topics as relations: the columns of a declared or an undeclared topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct, structs

from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.relations import KEY, META
from barnabas.sql.writing.fitting import sized_columns
from barnabas.tables.declared import columns_of, json_object
from barnabas.tables.declared import key_format as declared_key_format
from barnabas.tables.errors import TableError
from barnabas.tables.formats import ColumnFormat, Raw
from barnabas.tables.registered_format import registered_format
from barnabas.tables.row_names import ROW, RowNames
from barnabas.tables.scan import Columns
from barnabas.tables.source import Bounds, Snapshot, TopicSource
from barnabas.tables.table import Table

ROW_NAME = RowNames.fields[0]
SAMPLED_RECORDS, SAMPLED_PARTITIONS = 20, 4  # looked at to tell whether a topic holds text


class TopicRelation(Struct, frozen=True):
    """A topic as a table.

    Args:
        columns: what `*` shows.
        layout: how records become columns.
        definition: None for an undeclared topic.
        is_stream: whether each record is a row that stays, also in a table with a primary key.
        sized: the columns of types with sizes, such as `varchar(3)`.
    """

    name: str
    topic: str
    columns: pa.Schema
    hidden: pa.Schema
    layout: Columns
    key_alias: str | None = None
    filled: Mapping[str, str] = {}
    definition: TableDefinition | None = None
    is_stream: bool = False
    sized: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The name of the table, which is that of the topic if nothing declares it."""
        return self.topic if self.definition is None else self.definition.name

    @property
    def is_keyed(self) -> bool:
        """Whether a reader sees the newest row of each key."""
        return self.definition is not None and self.definition.is_keyed and not self.is_stream

    @property
    def is_view(self) -> bool:
        """Whether a job alone writes its rows."""
        return self.definition is not None and self.definition.view is not None

    @property
    def has_job(self) -> bool:
        """Whether a job was created with it, and writes its rows."""
        definition = self.definition
        return self.is_view or (definition is not None and definition.stream is not None and bool(definition.stream.query))

    @property
    def has_row_names(self) -> bool:
        """Whether the hidden column ROW identifies the rows."""
        return self.definition is not None and self.definition.has_row_names and not self.is_stream

    @property
    def keys(self) -> Sequence[str]:
        """The columns of the primary key; of a table without one ROW, if its rows have names."""
        if self.definition is None or not self.is_keyed:
            return ()
        return self.definition.key or (ROW,)

    @property
    def identified(self) -> pa.Schema:
        """The columns, and ROW if it identifies them."""
        return self.columns.append(ROW_NAME) if self.has_row_names else self.columns


def as_stream(relation: TopicRelation) -> TopicRelation:
    """The same topic with a row of each record. Of a table whose rows can change, deletions are left out; where rows have names, changes
    of rows too, so that a row comes once."""
    if relation.is_stream:
        return relation
    layout = structs.replace(relation.layout, skips_deletions=relation.is_keyed)
    return structs.replace(relation, name=f"STREAM({relation.name})", layout=layout, is_stream=True)


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


def declared(definition: TableDefinition, registry: RegistryAddress | None = None) -> TopicRelation:
    """A topic with the columns of a definition.

    Args:
        registry: has the schema of values, if the definition names one. A definition that names none yet gets columns only.

    Raises:
        TableError: so say the columns, or there is no registry.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """
    if definition.is_keyed and not definition.key and not definition.has_row_names:
        raise TableError(
            f'the table "{definition.name}" was made by an earlier version, whose rows without a key had another form: '
            "DROP TABLE, and make it again"
        )
    schema = definition.schema
    keys = [schema.field(name) for name in definition.key]
    values = [each for each in schema if each.name not in definition.key]
    names = definition.stored_names
    key = (
        json_object(keys, names)
        if definition.is_key_object
        else RowNames()
        if definition.has_row_names
        else key_format(keys, names)
    )
    hidden = list(META) if keys else [pa.field(KEY, pa.binary()), *META]
    unseen = definition.view.hidden if definition.view is not None else ()
    hidden = [*(schema.field(name) for name in unseen), *([ROW_NAME] if definition.has_row_names else []), *hidden]
    return TopicRelation(
        definition.name,
        definition.topic,
        shown_columns(definition) if unseen else schema,
        pa.schema(hidden),
        Columns(key, value_of(definition, values, registry), definition.mode),
        key_alias=keys[0].name if len(keys) == 1 and keys[0].name not in unseen else None,
        filled={each.name: each.default for each in definition.columns if each.is_filled and each.default is not None},
        definition=definition,
        sized=sized_columns(schema),
    )


def shown_columns(definition: TableDefinition) -> pa.Schema:
    """The columns that `*` shows. Raises TableError."""
    unseen = definition.view.hidden if definition.view is not None else ()
    return pa.schema([each for each in definition.schema if each.name not in unseen])


def key_format(fields: Sequence[pa.Field[Any]], names: Mapping[str, str]) -> ColumnFormat:
    """One column takes the whole key; several are fields of a JSON object."""
    return declared_key_format(fields, names) if fields else Raw(KEY)


def value_of(definition: TableDefinition, fields: Sequence[pa.Field[Any]], registry: RegistryAddress | None) -> ColumnFormat:
    """The format of a table's values. Raises TableError, RegistryError, RegistryUnreachable."""
    if not definition.is_registered:
        return value_format(definition.format, fields, definition.stored_names)
    if not definition.schema_id:
        return json_object(fields)
    if registry is None:
        raise TableError(f"the table {definition.name} needs a schema registry, and this server knows none")
    return registered_format(registry, definition.schema_id)


def value_format(name: str, fields: Sequence[pa.Field[Any]], names: Mapping[str, str]) -> ColumnFormat:
    """The format of values: `json`, or the whole value as `text` or `raw` bytes."""
    if name == "json":
        return json_object(fields, names)
    return Raw(fields[0].name, pa.string() if name == "text" else pa.binary())
