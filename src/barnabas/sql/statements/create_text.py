"""SHOW CREATE: the statement that makes a table, a view or a stream again."""

from __future__ import annotations

from barnabas.sql.catalog.definitions import ALWAYS, ColumnDefinition, TableDefinition
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequences import default_text
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.views.dependents import kind_of
from barnabas.tables.column_types import quoted, type_name

_SERIALS = {"smallint": "smallserial", "int": "serial", "bigint": "bigserial"}


def _column_text(table: str, each: ColumnDefinition) -> str:
    """A column as CREATE TABLE has it; one with a sequence of its own gets another there."""
    rest = "" if each.nullable else " NOT NULL"
    if each.identity:
        rest += f" GENERATED {'ALWAYS' if each.identity == ALWAYS else 'BY DEFAULT'} AS IDENTITY"
    elif each.default == default_text(f"{table}_{each.name}_seq") and not each.nullable and each.kind in _SERIALS:
        return f"{quoted(each.name)} {_SERIALS[each.kind]}"
    elif each.generated is not None:
        rest += f" GENERATED ALWAYS AS ({each.generated}) STORED"
    elif each.default is not None:
        rest += f" DEFAULT {each.default}"
    return f"{quoted(each.name)} {each.kind}{rest}"


def create_text(relation: Relation) -> str:
    """The statement that makes a table."""
    definition: TableDefinition | None = relation.definition if isinstance(relation, TopicRelation) else None
    if definition is None:
        columns = ", ".join(f"{quoted(each.name)} {type_name(each)}" for each in relation.columns)
        return f"-- no definition; as it is read:\nCREATE TABLE {quoted(relation.name)} ({columns})"
    if definition.view is not None:
        return _view_text(definition)
    if definition.stream is not None and definition.stream.query:
        return _stream_text(definition, definition.stream.query)
    lines = [f"  {_column_text(definition.name, each)}" for each in definition.columns]
    if definition.key and definition.is_keyed:
        lines.append(f"  PRIMARY KEY ({', '.join(quoted(name) for name in definition.key)})")
    lines += [f"  CONSTRAINT {quoted(each.name)} {each.text}" for each in definition.constraints]
    if definition.watermark is not None:
        lines.append(f"  {definition.watermark.text}")
    options = [f"topic = '{definition.topic}'", f"format = '{definition.format}'"]
    if definition.has_row_ids:
        options = [] if definition.topic == definition.name else [f"topic = '{definition.topic}'", "append_only = 'false'"]
    if definition.key and not definition.is_keyed:
        options.append(f"key = '{', '.join(definition.key)}'")
    if definition.mode != "permissive":
        options.append(f"mode = '{definition.mode}'")
    kind = kind_of(definition).upper()
    rest = f" WITH ({', '.join(options)})" if options else ""
    return f"CREATE {kind} {quoted(definition.name)} (\n" + ",\n".join(lines) + f"\n){rest}"


def _stream_text(definition: TableDefinition, query: str) -> str:
    columns = ", ".join(quoted(each.name) for each in definition.columns)
    options = [f"topic = '{definition.topic}'"] if definition.topic != definition.name else []
    options += [f"format = '{definition.format}'"] if definition.format != "json" else []
    options += [f"key = '{', '.join(definition.key)}'"] if definition.key else []
    given = f" WITH ({', '.join(options)})" if options else ""
    return f"CREATE STREAM {quoted(definition.name)} ({columns}){given} AS\n{query}"


def _view_text(definition: TableDefinition) -> str:
    view = definition.view
    assert view is not None
    shown = ", ".join(quoted(each.name) for each in definition.columns if each.name not in view.hidden)
    kind = kind_of(definition).upper()
    options = f" WITH (topic = '{definition.topic}')" if view.is_materialized and definition.topic != definition.name else ""
    return f"CREATE {kind} {quoted(definition.name)} ({shown}){options} AS\n{view.query}"
