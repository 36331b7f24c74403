"""Topics as relations: the columns of a declared or an undeclared topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.columnar.decode import RecordDecoder
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.relations import KEY, META
from barnabas.tables.formats import Raw
from barnabas.tables.scan import Columns
from barnabas.tables.source import Snapshot, TopicSource

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
    key: tuple[str, ...] = ()
    key_alias: str | None = None
    definition: TableDefinition | None = None


def undeclared(topic: str, *, is_text_key: bool, is_text_value: bool) -> TopicRelation:
    """A topic with its key and value as they are, as text if they are text."""
    key = Raw("key", pa.string() if is_text_key else pa.binary())
    value = Raw("value", pa.string() if is_text_value else pa.binary())
    columns = pa.schema([*key.fields, *value.fields])
    return TopicRelation(topic, topic, columns, pa.schema(META), Columns(key, value), key_alias="key")


def holds_text(source: TopicSource, snapshot: Snapshot) -> tuple[bool, bool]:
    """Whether the keys and the values of the last records are UTF-8."""
    is_text = [True, True]
    filled = [(partition, bounds) for partition, bounds in snapshot.partitions.items() if bounds.end > bounds.start]
    for partition, bounds in filled[:SAMPLED_PARTITIONS]:
        start = max(bounds.start, bounds.end - SAMPLED_RECORDS)
        decoder = RecordDecoder(snapshot.topic, partition, include_headers=False)
        for chunk in source.chunks(partition, start, bounds.end):
            for batch in decoder.decode(chunk.records, start, bounds.end, chunk.aborted):
                for place, name in enumerate(("key", "value")):
                    is_text[place] = is_text[place] and _is_text(batch.column(name))
    return is_text[0], is_text[1]


def _is_text(column: Any) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def schema_without(names: Sequence[str]) -> pa.Schema:
    """The hidden columns beside a table's own ones."""
    return pa.schema([each for each in META if each.name not in names and each.name != KEY])
